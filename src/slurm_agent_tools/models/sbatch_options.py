"""The options of sbatch, 22.05 to 26.05, and how getopt_long reads an argument vector of them (sbatch(1))."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from typing import Literal

from slurm_agent_tools.units import UNLIMITED, parse_memory, parse_time_limit

Takes = Literal["value", "optional", "nothing"]

Version = tuple[int, int]

VERSIONS: tuple[Version, ...] = ((22, 5), (23, 2), (23, 11), (24, 5), (24, 11), (25, 5), (25, 11), (26, 5))

_FIRST, _NEVER = VERSIONS[0], (99, 0)

# name=short flag
_VALUE = """
account=A acctg-freq array=a batch bb bbf begin=b chdir=D cluster cluster-constraint clusters=M comment constraint=C
container context core-spec=S cores-per-socket cpu-freq cpus-per-gpu cpus-per-task=c deadline delay-boot
dependency=d distribution=m error=e exclude=x export export-file extra-node-info=B gid gpu-bind gpu-freq gpus=G
gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input=i job-name=J kill-on-invalid-dep licenses=L
mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile=F nodelist=w nodes=N
ntasks=n ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output=o
partition=p power prefer priority profile qos=q reservation signal sockets-per-node switches tasks-per-node
thread-spec threads-per-core time=t time-min tmp uid wait-all-nodes wckey wrap
"""

_OPTIONAL = "exclusive get-user-env nice no-kill=k propagate"

_NOTHING = """
contiguous help=h hold=H ignore-pbs no-requeue overcommit=O oversubscribe=s parsable quiet=Q reboot requeue
spread-job test-only usage use-min-nodes verbose=v version=V wait=W
"""

# Options that came, went or changed after 22.05: name, kind, first version, first version without it.
_CHANGED: tuple[tuple[str, Takes, Version, Version], ...] = (
    ("autocomplete", "value", (23, 2), _NEVER), ("container-id", "value", (23, 2), _NEVER),
    ("extra", "value", (23, 2), _NEVER), ("tres-per-task", "value", (23, 2), _NEVER),
    ("tres-bind", "value", (23, 11), _NEVER), ("segment", "value", (24, 5), _NEVER),
    ("resv-ports", "optional", (24, 5), _NEVER), ("stepmgr", "nothing", (24, 5), _NEVER),
    ("oom-kill-step", "optional", (24, 11), _NEVER), ("external", "nothing", (25, 5), _NEVER),
    ("consolidate-segments", "nothing", (25, 11), _NEVER), ("resources", "value", (25, 11), _NEVER),
    ("spread-segments", "nothing", (25, 11), _NEVER), ("requeue", "optional", (25, 11), _NEVER),
    ("container-type", "value", (26, 5), _NEVER), ("mem-update", "value", (26, 5), _NEVER),
    ("get-user-env", "optional", _FIRST, (25, 11)), ("power", "value", _FIRST, (24, 5)),
)  # fmt: skip

# sbatch reads these from its command line only, and ignores them in a script.
EARLY = frozenset({"help", "quiet", "usage", "verbose", "version", "wrap"})

MOST_OPTIONS = 200
"""Of one script or command line: twice as many as there are. Each is looked at by every rule."""

_SAME = {"tasks-per-node": "ntasks-per-node", "cluster": "clusters"}


@dataclass(frozen=True, slots=True)
class SbatchOption:
    """One spelling of an option. `name` is the canonical long name; it exists from `since` until before `until`."""

    name: str
    takes: Takes
    spelled: str
    since: Version = _FIRST
    until: Version = _NEVER


@dataclass(frozen=True, slots=True)
class OptionWord:
    """One word of an argument vector and the line that it stands on."""

    text: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class GivenOption:
    """An option as it was given; `line` is where its name stands, `value_line` where its value stands."""

    option: SbatchOption
    value: str | None
    line: int
    value_line: int


class BadOptions(ValueError):
    """An argument vector that sbatch refuses, or that different versions read differently."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def _table() -> tuple[tuple[SbatchOption, ...], dict[str, SbatchOption]]:
    changed = {name: (takes, since, until) for name, takes, since, until in _CHANGED}
    rows: list[SbatchOption] = []
    short: dict[str, SbatchOption] = {}
    groups: tuple[tuple[str, Takes], ...] = ((_VALUE, "value"), (_OPTIONAL, "optional"), (_NOTHING, "nothing"))
    for words, takes in groups:
        for word in words.split():
            name, _, flag = word.partition("=")
            _, since, until = changed.get(name, (takes, _FIRST, _NEVER))
            # A row that changes its kind later ends where the changed row begins.
            end = until if since == _FIRST else since
            row = SbatchOption(_SAME.get(name, name), takes, name, until=end)
            rows.append(row)
            if flag:
                short[flag] = row
    rows += [SbatchOption(name, takes, name, since) for name, takes, since, _ in _CHANGED if since != _FIRST]
    return tuple(rows), short


TABLE, SHORT = _table()

NAMES = frozenset(row.name for row in TABLE)


@cache
def find_long(word: str) -> SbatchOption:
    """The option that a name, or an unambiguous prefix of one, means. ValueError otherwise.

    A word that means different options in different versions of Slurm is refused: the check would not hold there.
    """
    means = {version: _in_version(word, version) for version in VERSIONS}
    meanings = {rows[0].name: rows[0] for rows in means.values() if len(rows) == 1}
    if len(meanings) > 1:
        raise ValueError(f"--{word} is --{' or --'.join(sorted(meanings))}, depending on Slurm's version; write it out")
    if meanings:
        return next(iter(meanings.values()))
    several = sorted({row.spelled for rows in means.values() for row in rows})
    if not several:
        raise ValueError(f"--{word} is no option of sbatch")
    raise ValueError(f"--{word} is ambiguous: {', '.join('--' + name for name in several[:4])}")


def _in_version(word: str, version: Version) -> list[SbatchOption]:
    """Candidates in one version: the exact name alone, else every name that begins so (spellings of one count once)."""
    rows = [row for row in TABLE if row.since <= version < row.until and row.spelled.startswith(word)]
    exact = [row for row in rows if row.spelled == word]
    return exact or list({row.name: row for row in rows}.values()) if word else []


def find_short(flag: str) -> SbatchOption:
    """The option of a short flag. ValueError when there is none."""
    if flag not in SHORT:
        raise ValueError(f"-{flag} is no option of sbatch")
    return SHORT[flag]


def read(words: Sequence[str]) -> list[tuple[SbatchOption, str | None]]:
    """Each option of an argument vector with its value. ValueError at the first word that does not fit."""
    options, failure = read_words([OptionWord(word) for word in words])
    if failure is not None:
        raise failure
    return [(option.option, option.value) for option in options]


def read_words(words: Sequence[OptionWord]) -> tuple[list[GivenOption], BadOptions | None]:
    """Options of an argument vector, as getopt_long with a leading `+` reads it, up to the first that does not fit.

    A required value may be the next word whatever it looks like, also when that word stands on the next line.
    """
    options: list[GivenOption] = []
    rest = iter(words)
    for word in rest:
        try:
            if word.text == "--":
                _nothing_behind(next(rest, None))
            elif word.text.startswith("--"):
                options.append(_long(word, rest))
            elif word.text.startswith("-") and len(word.text) > 1:
                options += _cluster(word, rest)
            else:
                raise ValueError(f"{word.text!r} is not an option")  # noqa: TRY301 - one place turns all into BadOptions
        except ValueError as error:
            return options, BadOptions(str(error), word.line)
        if len(options) > MOST_OPTIONS:
            return options[:MOST_OPTIONS], BadOptions(f"more than {MOST_OPTIONS} options are given", word.line)
    return options, None


def _nothing_behind(word: OptionWord | None) -> None:
    if word is not None:
        raise ValueError(f"{word.text!r} stands behind `--`")


def _long(word: OptionWord, rest: Iterator[OptionWord]) -> GivenOption:
    name, sign, value = word.text[2:].partition("=")
    option = find_long(name)
    if option.takes == "nothing" and sign:
        raise ValueError(f"--{name} takes no value")
    return _given(option, f"--{name}", value if sign else None, word, rest)


def _cluster(word: OptionWord, rest: Iterator[OptionWord]) -> list[GivenOption]:
    """`-Hn4`: flags until one that takes a value, which takes what is left of the word."""
    options: list[GivenOption] = []
    for position in range(1, len(word.text)):
        option = find_short(word.text[position])
        if option.takes == "nothing":
            options.append(GivenOption(option, None, word.line, word.line))
            continue
        glued = word.text[position + 1 :] or None
        options.append(_given(option, f"-{word.text[position]}", glued, word, rest))
        break
    return options


def _given(
    option: SbatchOption, shown: str, glued: str | None, word: OptionWord, rest: Iterator[OptionWord]
) -> GivenOption:
    if option.takes != "value" or glued is not None:
        return GivenOption(option, glued, word.line, word.line)
    following = next(rest, None)
    if following is None:
        raise ValueError(f"{shown} needs a value")
    return GivenOption(option, following.text, word.line, following.line)


# --- Values, as sbatch reads them: text in, numbers out ---------------------------------------------------------------


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


def names(text: str) -> str:
    """One name or several behind commas. sbatch takes an empty one for none, which a ticket cannot be for."""
    if not text.strip(", \t"):
        raise ValueError(f"an empty word names nothing: {text!r} (write a name, or delete the option)")
    return text


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


_UNCOUNTED = 10**9


@lru_cache(maxsize=16)
def listed_nodes(text: str) -> int:
    """How many nodes `a,b[1-3,7]` names; 1 where it cannot be told. A list is counted once, for all partitions."""
    total = 0
    depth, start = 0, 0
    items = []
    for position, sign in enumerate(f"{text},"):
        depth += (sign == "[") - (sign == "]")
        if sign == "," and depth == 0:
            items.append(text[start:position])
            start = position + 1
    try:
        for item in filter(None, items):
            total += prod(_ranges(part.split("]")[0]) for part in item.split("[")[1:])
    except ValueError:  # a number of thousands of digits
        return _UNCOUNTED
    return max(total, 1)


def _ranges(text: str) -> int:
    ends = [part.partition("-") for part in text.split(",")]
    return sum(
        max(1, int(last) - int(first) + 1) if first.isdecimal() and last.isdecimal() else 1 for first, _, last in ends
    )


def gpus(text: str) -> int:
    """GPUs of `4`, `a100:4`, `a100:2,h100:1`, `a100` (--gpus and its relatives)."""
    return gres(",".join(f"gpu:{item}" for item in text.split(","))) or 0


_ITEM = re.compile(r"(?:gres[:/])?(?P<name>[A-Za-z_][\w.-]*+)(?P<rest>.*)", re.IGNORECASE)

_COUNT = re.compile(r"(\d{1,6})([kmg]?)", re.IGNORECASE)

_TYPE = re.compile(r"(?!\d+[kmgtp](?:i?b)?$)(?:[A-Za-z_][\w.-]*|\d(?=[\w.-]*[A-Za-z_])[\w.-]+)", re.IGNORECASE)
"""Not what Slurm reads as a number with a unit: `8kb` is 8000 GPUs, and a number that is long enough overflows."""


def gres(text: str) -> int | None:
    """GPUs in a list of generic resources; None when it names no GPU. The same key twice: the last one counts."""
    if text.strip().lower() in {"", "none"}:
        return None
    counts: dict[str, int] = {}
    for item in text.split(","):
        match = _ITEM.fullmatch(item.strip())
        if match is None:
            raise ValueError(f"not a list of generic resources: {text!r} (write gpu:2 or gpu:a100:2)")
        if match["name"].lower() == "gpu":
            kind, number = _gpu(match["rest"], text)
            counts[kind] = number
    if "" in counts and len(counts) > 1:
        raise ValueError(f"GPUs with and without a type: {text!r}")
    if len(counts) > 1 and len({*map(_type_number, counts)}) < len(counts):
        raise ValueError(f"Slurm takes two of the types of GPUs for one: {text!r}")
    return sum(counts.values()) if counts else None


def _type_number(name: str) -> int:
    """The number by which Slurm tells types of GPUs apart, of the bytes of a name (gres_build_id of its gres.c)."""
    return sum(byte << 8 * (place % 4) for place, byte in enumerate(name.encode())) % 2**32


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
    gpu_items: list[str] = []
    for item in text.split(","):
        match = re.fullmatch(r"\s*(cpu|(?:gres/)?gpu(?:[:/][A-Za-z_][\w.-]*)?|[A-Za-z_/][\w./-]*)[:=](\w+)\s*", item)
        if match is None or "gres" in match[1].removeprefix("gres/"):  # which Slurm finds wherever it stands
            raise ValueError(f"not a list of resources per task: {text!r} (write cpu=4,gres/gpu=1)")
        if match[1] == "cpu":
            cpus = count(match[2])
        elif re.match(r"(?:gres/)?gpu", match[1]):
            gpu_items.append(f"{match[1].removeprefix('gres/').replace('/', ':')}:{match[2]}")
        elif match[1].startswith("gres/"):  # beside --gres they would make tasks
            raise ValueError(f"{item.strip()} is of no GPUs: ask for it with --gres")
    return cpus, gres(",".join(gpu_items)) if gpu_items else None


def sockets_cores_threads(text: str) -> tuple[int | None, int | None, int | None]:
    """The numbers of -B; None for `*`, for nothing and for what is left out. Of a range the first counts."""
    parts = text.split(":")
    if len(parts) > 3:
        raise ValueError(f"not sockets:cores:threads: {text!r}")
    numbers = [None if part.strip() in {"", "*"} else count(part.split("-")[0]) for part in parts]
    sockets, cores, threads = [*numbers, None, None, None][:3]
    return sockets, cores, threads
