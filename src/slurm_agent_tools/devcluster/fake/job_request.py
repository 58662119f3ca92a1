"""What sbatch makes of an argument vector and a script: one request for each component, or its own words of refusal."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.models import sbatch_options
from slurm_agent_tools.units import format_duration, indices, parse_memory, parse_time_limit

_MB = 2**20

_LARGEST_TASK = 20_000  # MaxArraySize - 1 of the devcluster

Reader = Callable[["FakeRequest", str], None]

_GPU = re.compile(r"(?:gres[:/])?gpu(?::([A-Za-z]\w*))?(?:[:=](\d+))?")

_KINDS = re.compile(r"(?:([A-Za-z]\w*):)?(\d+)")


class SbatchRefused(Exception):
    """sbatch itself says no: exit code and standard error."""

    def __init__(self, text: str, exit_code: int = 255) -> None:
        super().__init__(text)
        self.text, self.exit_code = text, exit_code


@dataclass(slots=True)
class FakeRequest:
    """One component of a request. Memory in MB, times in seconds; None: not stated."""

    given: dict[str, str | None] = field(default_factory=dict)
    name: str = "sbatch"
    partitions: tuple[str, ...] = ()
    time_limit: int | None = None
    nodes_min: int | None = None
    nodes_max: int | None = None
    tasks: int | None = None
    tasks_per_node: int | None = None
    cpus_per_task: int = 1
    cpus_per_gpu: int | None = None
    memory_per_node: int | None = None
    memory_per_cpu: int | None = None
    memory_per_gpu: int | None = None
    gpus: int | None = None
    gpus_per_node: int | None = None
    gpus_per_task: int | None = None
    gpu_type: str = ""
    exclusive: bool = False
    nodelist: tuple[str, ...] = ()
    hold: bool = False
    requeue: bool = True
    nice: int = 0
    qos: str = "normal"
    account: str = "lab"
    comment: str | None = None
    dependency: str | None = None
    begin: float | None = None  # seconds from the submission
    deadline: float | None = None
    tasks_of_array: tuple[int, ...] = ()
    throttle: int | None = None
    output: str | None = None
    error: str | None = None
    chdir: str | None = None
    append: bool = False
    script: bytes = b""
    args: tuple[str, ...] = ()
    line: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Asked:
    """An sbatch command: its components, and the flags of the command itself."""

    parts: tuple[FakeRequest, ...]
    parsable: bool
    test_only: bool
    verbose: bool


def read_sbatch(words: Sequence[str], stdin: bytes, version: tuple[int, int], find: Mapping[str, bytes]) -> Asked:
    """Read the words behind `sbatch`. `find`: scripts by path, for a test that names a file instead of stdin."""
    groups: list[dict[str, str | None]] = [{}]
    rest = list(words)
    while rest:
        if rest[0] == ":":
            rest.pop(0)
            groups.append({})
        elif rest[0].startswith("-") and len(rest[0]) > 1:
            _take(rest, groups[-1], version)
        else:
            break
    name, args = (rest[0], tuple(rest[1:])) if rest else ("/dev/stdin", ())
    script = stdin if name == "/dev/stdin" else find.get(name)
    if script is None:
        raise SbatchRefused(f"sbatch: error: Unable to open file {name}\n", 1)
    if not script.startswith(b"#!"):
        raise SbatchRefused(_NO_SHELL if script.strip() else "sbatch: error: Batch script is empty!\n", 1)
    parts = _components(script, groups, version)
    first = groups[0]
    made = tuple(_request(part, script, args, ("sbatch", *words)) for part in parts)
    for one in made:
        one.name = one.given.get("job-name") or (name.rpartition("/")[2] if rest else "sbatch")
        one.hold = one.hold or made[0].hold
    return Asked(made, "parsable" in first, "test-only" in first, "verbose" in first)


_NO_SHELL = """\
sbatch: error: This does not look like a batch script.  The first
sbatch: error: line must start with #! followed by the path to an interpreter.
sbatch: error: For instance: #!/bin/sh
"""


def _take(rest: list[str], found: dict[str, str | None], version: tuple[int, int]) -> None:
    """One word of options, and the next where it is its value."""
    size = 2 if len(rest) > 1 else 1
    for count in range(1, size + 1):
        try:
            given = sbatch_options.read(rest[:count])
        except ValueError:
            continue
        for option, value in given:
            if not any(row.name == option.name and row.since <= version < row.until for row in sbatch_options.TABLE):
                break
            _keep(found, option.name, value)
        else:
            del rest[:count]
            return
    shown = rest[0].partition("=")[0] if rest[0].startswith("--") and "=" not in rest[0] else rest[0]
    raise SbatchRefused(f"sbatch: unrecognized option '{shown}'\nTry \"sbatch --help\" for more information\n")


def _keep(found: dict[str, str | None], name: str, value: str | None) -> None:
    for other in _INSTEAD.get(name, ()):
        found.pop(other, None)
    found.pop(name, None)
    found[name] = value


_MEMORY = frozenset({"mem", "mem-per-cpu", "mem-per-gpu"})

_INSTEAD = {name: tuple(_MEMORY - {name}) for name in _MEMORY} | {
    "requeue": ("no-requeue",), "no-requeue": ("requeue",), "exclusive": ("oversubscribe",),
    "oversubscribe": ("exclusive",),
}  # fmt: skip


def _components(
    script: bytes, line: Sequence[Mapping[str, str | None]], version: tuple[int, int]
) -> list[dict[str, str | None]]:
    """The script's directives, then the command line, for each component."""
    groups: list[dict[str, str | None]] = [{}]
    for text in script.decode("utf-8", "surrogateescape").splitlines()[1:]:
        if text.startswith("#SBATCH hetjob"):
            groups.append({})
        elif text.startswith("#SBATCH"):
            words = shlex.split(text.removeprefix("#SBATCH"), comments=True)
            while words:
                if not words[0].startswith("-"):
                    break
                _take(words, groups[-1], version)
        elif text.strip() and not text.lstrip().startswith("#"):
            break
    count = max(len(groups), len(line))
    padded = [*groups, *({} for _ in range(count - len(groups)))]
    for index, given in enumerate(line):
        for name, value in given.items():
            _keep(padded[index], name, value)
    return padded


def _request(given: dict[str, str | None], script: bytes, args: tuple[str, ...], line: tuple[str, ...]) -> FakeRequest:
    made = FakeRequest(given=given, script=script, args=args, line=line)
    for name, value in given.items():
        reader = _READERS.get(name)
        if reader is None:
            continue
        try:
            reader(made, value or "")
        except (ValueError, TypeError):
            said = _REFUSALS.get(name, f"sbatch: error: Invalid --{name} specification\n")
            raise SbatchRefused(said, 1 if name in _REFUSALS else 255) from None
    return made


_REFUSALS = {"array": "sbatch: error: Batch job submission failed: Invalid job array specification\n"}


def _memory(text: str) -> int:
    return parse_memory(text) // _MB


def _gres(made: FakeRequest, text: str) -> None:
    for item in text.split(","):
        found = _GPU.fullmatch(item.strip())
        if found is None:
            raise SbatchRefused("sbatch: error: Invalid generic resource (gres) specification\n", 1)
        made.gpu_type = found[1] or made.gpu_type
        made.gpus_per_node = (made.gpus_per_node or 0) + int(found[2] or 1)


def _kinds(made: FakeRequest, text: str) -> int:
    total = 0
    for item in text.split(","):
        found = _KINDS.fullmatch(item.strip())
        if found is None:
            raise ValueError(text)
        made.gpu_type = found[1] or made.gpu_type
        total += int(found[2])
    return total


def _nodes(made: FakeRequest, text: str) -> None:
    least, _, most = text.partition("-")
    made.nodes_min, made.nodes_max = int(least), int(most or least)


def _array(made: FakeRequest, text: str) -> None:
    listed, _, most = text.partition("%")
    made.tasks_of_array = tuple(sorted(indices(listed)))
    made.throttle = int(most) if most else None
    if made.tasks_of_array[-1] > _LARGEST_TASK:
        raise ValueError(text)


def _from_now(text: str) -> float:
    found = re.fullmatch(r"now(?:\+(\d+)(seconds?|minutes?|hours?|days?|weeks?)?)?", text)
    if found is None:
        raise ValueError(text)
    unit = (found[2] or "second").removesuffix("s")
    return int(found[1] or 0) * {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}[unit]


def _number(made: FakeRequest, field_name: str, text: str) -> None:
    value = int(text)
    if value < 1:
        raise SbatchRefused(f'sbatch: error: Invalid numeric value "{text}" for --{field_name}.\n', 1)
    setattr(made, _FIELDS[field_name], value)


_FIELDS = {
    "ntasks": "tasks", "ntasks-per-node": "tasks_per_node", "cpus-per-task": "cpus_per_task",
    "cpus-per-gpu": "cpus_per_gpu",
}  # fmt: skip


def _set(name: str, value: Callable[[str], object]) -> Reader:
    return lambda made, text: setattr(made, name, value(text))


def _flag(name: str, *, on: bool) -> Reader:
    return lambda made, _: setattr(made, name, on)


def _count(name: str) -> Reader:
    return lambda made, text: _number(made, name, text)


_READERS: Mapping[str, Reader] = {
    "partition": _set("partitions", lambda text: tuple(text.split(","))),
    "time": _set("time_limit", parse_time_limit),
    "nodes": _nodes,
    "mem": _set("memory_per_node", _memory),
    "mem-per-cpu": _set("memory_per_cpu", _memory),
    "mem-per-gpu": _set("memory_per_gpu", _memory),
    "gres": _gres,
    "gpus": lambda made, text: setattr(made, "gpus", _kinds(made, text)),
    "gpus-per-node": lambda made, text: setattr(made, "gpus_per_node", _kinds(made, text)),
    "gpus-per-task": lambda made, text: setattr(made, "gpus_per_task", _kinds(made, text)),
    "exclusive": _flag("exclusive", on=True),
    "nodelist": _set("nodelist", lambda text: tuple(text.split(","))),
    "hold": _flag("hold", on=True),
    "no-requeue": _flag("requeue", on=False),
    "requeue": _flag("requeue", on=True),
    "nice": _set("nice", lambda text: int(text or 100)),
    "qos": _set("qos", str),
    "account": _set("account", str),
    "comment": _set("comment", str),
    "dependency": _set("dependency", str),
    "begin": _set("begin", _from_now),
    "deadline": _set("deadline", _from_now),
    "array": _array,
    "output": _set("output", str),
    "error": _set("error", str),
    "chdir": _set("chdir", str),
    "open-mode": _set("append", lambda text: text.startswith("a")),
    **{name: _count(name) for name in _FIELDS},
}


def shown_options(made: FakeRequest, cwd: str) -> str:
    """What `sbatch -v` prints of the options that it read."""
    rows = sorted((name, _shown(name, value, cwd)) for name, value in made.given.items() if name not in _SILENT)
    rule = f"sbatch: {'-' * 20} {'-' * 20}\n"
    body = "".join(f"sbatch: {name:<20}: {text}\n" for name, text in rows)
    return f"sbatch: defined options\n{rule}{body}{rule}sbatch: end of defined options\n"


_SILENT = frozenset[str]({"parsable"})

_BARE = {"exclusive": "exclusive", "nice": "100", "propagate": "ALL", "no-requeue": "no-requeue", "requeue": "requeue",
         "oversubscribe": "oversubscribe", "verbose": "1"}  # fmt: skip


def _shown(name: str, value: str | None, cwd: str) -> str:
    if value is None:
        return _BARE.get(name, "set")
    if name in {"time", "time-min"}:
        return format_duration(parse_time_limit(value))
    if name in {"output", "error", "input", "chdir"} and not value.startswith("/"):
        return "/dev/null" if value.lower() == "none" else f"{cwd}/{value}"
    return f"gres:{value}" if name == "gres" else value
