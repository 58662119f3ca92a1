"""Values of sbatch's options as sbatch reads them: text in, numbers out, ValueError for what it would refuse.

Spellings that some versions of Slurm read differently from others are refused as well.
"""

from __future__ import annotations

import re

from slurm_agent_tools.units import UNLIMITED, parse_memory, parse_time_limit

_FACTOR = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}

_MAX_MINUTES = 2**31 // 60


def memory(text: str) -> int:
    """Bytes; blanks in front and a plus sign are allowed, blanks behind and a lone `B` are not."""
    if not re.fullmatch(r"\s*\+?\d+([KMGT]B?)?", text, re.IGNORECASE):
        raise ValueError(f"not a memory size: {text!r} (write 512M, 16G or 1T)")
    return parse_memory(text)


def time_limit(text: str) -> int:
    """Seconds, -1 for no limit; `1-` is one day. Numbers that wrap around in Slurm are refused."""
    word = f"{text}0" if re.fullmatch(r"\d+-", text) else text
    if word != word.strip():
        raise ValueError(f"not a time limit: {text!r} (write MINUTES, HH:MM:SS or D-HH:MM:SS)")
    seconds = parse_time_limit(word)
    if seconds != UNLIMITED and seconds > _MAX_MINUTES * 60:
        raise ValueError(f"time limit out of range: {text!r}")
    return seconds


def count(text: str) -> int:
    """A positive decimal number."""
    match = re.fullmatch(r"\s*\+?(\d{1,9})", text)
    if match is None or int(match[1]) == 0:
        raise ValueError(f"not a count of 1 or more: {text!r}")
    return int(match[1])


def nodes(text: str) -> tuple[int, int]:
    """(fewest, most) of `2`, `2-4`, `1k`; from 23.02 also of `1,5,9` and `2-8:2`, where the ends count."""
    spans = [_node_span(item, text) for item in text.split(",")]
    low, high = min(span[0] for span in spans), max(span[1] for span in spans)
    if low < 1 or any(span[1] < span[0] for span in spans):
        raise ValueError(f"not a number of nodes: {text!r} (write 1 or 2-4)")
    return low, high


def _node_span(item: str, whole: str) -> tuple[int, int]:
    match = re.fullmatch(r"\+?(\d{1,7})([km]?)(?:-(\d{1,7})([km]?)(?::\d{1,7})?)?", item.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"not a number of nodes: {whole!r} (write 1 or 2-4)")
    low = int(match[1]) * _FACTOR[match[2].lower()]
    return low, int(match[3]) * _FACTOR[match[4].lower()] if match[3] else low


def node_list(text: str) -> str:
    """Names of nodes; sbatch takes what holds a slash for a file of them."""
    if "/" in text:
        raise ValueError(f"names a file of nodes, which was not checked: {text!r} (write the nodes' names)")
    return text


def gpus(text: str) -> int:
    """GPUs of `4`, `a100:4`, `a100:2,h100:1`, `a100` (--gpus and its relatives)."""
    return gres(",".join(f"gpu:{item}" for item in text.split(","))) or 0


_ITEM = re.compile(r"(?:gres[:/])?(?P<name>[A-Za-z_][\w.-]*)(?P<rest>.*)", re.IGNORECASE)

_COUNT = re.compile(r"(\d{1,6})([kmg]?)", re.IGNORECASE)

_TYPE = re.compile(r"[A-Za-z_][\w.-]*|\d[\w.-]*[A-Za-z_][\w.-]*")


def gres(text: str) -> int | None:
    """GPUs in a list of generic resources; None when it names no GPU. The same key twice: the last one counts."""
    if text.strip().lower() in {"", "none"}:
        return None
    found: dict[str, int] = {}
    for item in text.split(","):
        match = _ITEM.fullmatch(item.strip())
        if match is None:
            raise ValueError(f"not a list of generic resources: {text!r} (write gpu:2 or gpu:a100:2)")
        if match["name"].lower() == "gpu":
            kind, number = _gpu(match["rest"], text)
            found[kind] = number
    if "" in found and len(found) > 1:
        raise ValueError(f"GPUs with and without a type: {text!r}")
    return sum(found.values()) if found else None


def _gpu(rest: str, whole: str) -> tuple[str, int]:
    """(type, number) of what stands behind `gpu`: nothing, `:2`, `:a100`, `:a100:2`."""
    if "=" in rest:
        raise ValueError(f"`=` in {whole!r} reads differently in different versions of Slurm; write gpu:2")
    parts = rest.split(":")[1:]
    if rest and (not rest.startswith(":") or len(parts) > 2):
        raise ValueError(f"not a list of generic resources: {whole!r} (write gpu:2 or gpu:a100:2)")
    number = _COUNT.fullmatch(parts[-1]) if parts else None
    kind = parts[0] if parts and (len(parts) == 2 or number is None) else ""
    if (kind and not _TYPE.fullmatch(kind)) or (len(parts) == 2 and number is None):
        raise ValueError(f"not a number of GPUs: {whole!r} (write 2 or a100:2)")
    return kind, 1 if number is None else int(number[1]) * _FACTOR[number[2].lower()]


def per_task(text: str) -> tuple[int | None, int | None]:
    """(CPUs, GPUs) of --tres-per-task: `cpu=4,gres/gpu=2`, `cpu:4,gres/gpu:a100:2`; None where it names none."""
    cpus: int | None = None
    found: list[str] = []
    for item in text.split(","):
        match = re.fullmatch(r"\s*(cpu|(?:gres/)?gpu(?:[:/][A-Za-z_][\w.-]*)?|[A-Za-z_/][\w./-]*)[:=](\w+)\s*", item)
        if match is None:
            raise ValueError(f"not a list of resources per task: {text!r} (write cpu=4,gres/gpu=1)")
        if match[1] == "cpu":
            cpus = count(match[2])
        elif re.match(r"(?:gres/)?gpu", match[1]):
            found.append(f"{match[1].removeprefix('gres/').replace('/', ':')}:{match[2]}")
    return cpus, gres(",".join(found)) if found else None


def sockets_cores_threads(text: str) -> tuple[int | None, int | None, int | None]:
    """The numbers of -B; None for `*`, for nothing and for what is left out. Of a range the first counts."""
    parts = text.split(":")
    if len(parts) > 3:
        raise ValueError(f"not sockets:cores:threads: {text!r}")
    found = [None if part.strip() in {"", "*"} else count(part.split("-")[0]) for part in parts]
    sockets, cores, threads = [*found, None, None, None][:3]
    return sockets, cores, threads
