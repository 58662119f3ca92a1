"""What a configuration is, and what its stages showed: smoke, pilot, production. Pure, over records.

A configuration is what a job runs less its length: the script without its directives, its arguments, the project's
files that it reads, and its layout; neither memory nor time limit nor where it waits. A script says in its head, where
its directives stand, which numbers are its length and which files it writes:

    #SMOKE length: --steps STEPS trainer.max_steps
    #SMOKE writes: checkpoints/last.pt
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from slurm_agent_tools.models.arguments import Stage
from slurm_agent_tools.models.job import ACTIVE_STATES, JobView
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest

# --- What a script declares -------------------------------------------------------------------------------------------

_LINE = re.compile(r"#SMOKE\b(.*)")

_FIELD = re.compile(r"\s*+(length|writes)\s*+:(.*)")

_LENGTH = re.compile(r"(?:--?|\+{0,2})[A-Za-z_][\w.\-]{2,80}", re.ASCII)

_WRITTEN = re.compile(r"[\w./@+=-]{1,200}", re.ASCII)

_LAYOUT = re.compile(
    r"node|task|gpu|cpu|core|proc|rank|device|thread|worker|world|mem|partition|array|parallel|batch|seed|path|file"
    r"|config|data|size|dim|width|height|depth|hidden|layer|head|channel|resolution|grid|mesh|rate|^-{0,2}lr$|^(?:--?)?(?:time|exit|sleep|true|false|return)$",
    re.IGNORECASE,
)
"""What is no length: where a job runs, what it works on, and commands of the shell."""

_NUMBER = r"[0-9]{1,18}(?:\.[0-9]{1,9})?(?:[eE]\+?[0-9]{1,3})?(?:ns|ps|fs|us|ms|[kKMG])?"

_MOST = 20

FORM = "#SMOKE length: --steps STEPS trainer.max_steps"


@dataclass(frozen=True, slots=True)
class Declaration:
    """What a script says of its smoke run. `lengths`: names of numbers; `writes`: files; `problem`: what is wrong."""

    lengths: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    problem: str | None = None


def declared(text: str) -> Declaration:
    """The declaration in the head of a script: the comment lines before its first command."""
    found: dict[str, list[str]] = {"length": [], "writes": []}
    for line in text.split("\n"):
        if line.strip() and not line.lstrip().startswith("#"):
            break
        stated = _LINE.match(line)
        if stated is None:
            continue
        field = _FIELD.fullmatch(stated[1])
        if field is None:
            return Declaration(problem=f"the line `{line.strip()[:120]}` cannot be read; write it like `{FORM}`")
        found[field[1]] += re.split(r"[\s,]+", said) if (said := field[2].strip()) else []
    lengths, writes = (tuple(dict.fromkeys(names)) for names in found.values())
    problem = next((f"`{name}` is no name of a length{_why(name)}" for name in lengths if not _is_length(name)), None)
    problem = problem or next((f"`{name}` is no file inside the project" for name in writes if not _inside(name)), None)
    if max(len(lengths), len(writes)) > _MOST:
        problem = f"more than {_MOST} names are declared"
    return Declaration(lengths, writes, problem)


def _is_length(name: str) -> bool:
    return _LENGTH.fullmatch(name) is not None and _LAYOUT.search(name.rpartition(".")[2]) is None


def _why(name: str) -> str:
    word = _LAYOUT.search(name.rpartition(".")[2])
    return "" if word is None else f": `{word[0]}` says where it runs, what it works on, or what the shell does"


def _inside(name: str) -> bool:
    return _WRITTEN.fullmatch(name) is not None and not name.startswith("/") and ".." not in name.split("/")


def without_lengths(text: str, lengths: Iterable[str], *, apart: bool = False) -> str:
    """The text with each declared number as `*`: `NAME=100`, of an option also `--name 100`.

    `apart`: a file of settings or input, where a line `NAME 100` or `NAME: 100` is the same.
    """
    for name in lengths:
        sign = "=" if not name.startswith("-") else r"(?:=|[ \t]+)"
        text = re.sub(rf"(?<![\w.+$-])({re.escape(name)}{sign}[\"']?){_NUMBER}(?![\w.])", r"\1*", text)
        if apart:
            last = re.escape(name.lstrip("+-").rpartition(".")[2])
            line = rf"(?m)^([ \t]*[\"']?{last}[\"']?[ \t]*+(?:[:=]|(?<=[ \t]))[ \t]*+[\"']?){_NUMBER}(?![\w.])"
            text = re.sub(line, r"\1*", text)
    return text


# --- What a configuration is made of ----------------------------------------------------------------------------------

_NEUTRAL = frozenset(
    {
        "time", "time-min", "mem", "mem-per-cpu", "mem-per-gpu", "partition", "qos", "account", "reservation", "nice",
        "priority", "begin", "deadline", "delay-boot", "dependency", "kill-on-invalid-dep", "job-name", "comment",
        "output", "error", "open-mode", "mail-type", "mail-user", "array", "exclude", "nodelist", "requeue",
        "no-requeue", "wckey", "verbose", "quiet", "parsable", "hold",
    }
)  # fmt: skip
"""Options that say how much memory, how long, when and where, or what the job is called: not what it does."""

_ENVIRONMENT = ("CONDA_DEFAULT_ENV", "CONDA_PREFIX", "VIRTUAL_ENV")
"""Variables of the caller that decide which programs run."""


def parts_of(
    text: str,
    request: JobRequest,
    args: Sequence[str],
    *,
    layout: Mapping[str, int],
    files: Mapping[str, str],
    environment: Mapping[str, str],
) -> dict[str, str]:
    """A configuration by its parts, each with its value or hash. `files`: path -> hash of what the job reads.

    `layout`: how many nodes, tasks, CPUs and GPUs, as the request itself says. Raises ValueError for a declaration
    that cannot be read.
    """
    declaration = declared(text)
    if declaration.problem is not None:
        raise ValueError(declaration.problem)
    options = [
        f"{one.option}={one.value}" for one in request.directives
        if one.source != "pinned" and one.option not in _NEUTRAL
    ]  # fmt: skip
    kept = "\n".join(_without_directives(text, request))
    return {
        "the script": _sha256(without_lengths(kept, declaration.lengths)),
        "the arguments": json.dumps(_arguments(args, declaration.lengths)),
        "the options": " ".join(sorted(options)),
        "the layout": ", ".join(f"{name}={layout[name]}" for name in sorted(layout)),
        "an array": "yes" if request.array is not None else "no",
        "the environment": json.dumps({name: environment.get(name, "") for name in _ENVIRONMENT}),
        **{path: files[path] for path in sorted(files)},
    }


def _without_directives(text: str, request: JobRequest) -> list[str]:
    """The script's lines but for those of sbatch's options, which count by what they say."""
    stated = {one.evidence.line for one in request.directives if one.source == "script"}
    return [line for number, line in enumerate(text.split("\n"), start=1) if number not in stated]


def _arguments(args: Sequence[str], lengths: Iterable[str]) -> list[str]:
    """The script's arguments, a declared number as `*`: `NAME=100`, or `100` behind `NAME`."""
    names, found = set(lengths), list[str]()
    for index, word in enumerate(args):
        name, sign, value = word.partition("=")
        if sign and name in names and re.fullmatch(_NUMBER, value):
            word = f"{name}=*"  # noqa: PLW2901 - its value is its length
        elif index and args[index - 1] in names and re.fullmatch(_NUMBER, word):
            word = "*"  # noqa: PLW2901 - as above
        found.append(word)
    return found


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def configuration(parts: Mapping[str, str]) -> str:
    """The hash of a configuration."""
    return _sha256(json.dumps(dict(parts), sort_keys=True))


def differing(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """The parts in which two configurations differ."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


# --- What the stages of a configuration showed ------------------------------------------------------------------------

StageState = Literal["passed", "failed", "active", "unknown", "cancelled"]


@dataclass(frozen=True, slots=True)
class StageRun:
    """One stage that was tried. `why`: what keeps it from having passed."""

    job_id: str
    stage: Stage
    configuration: str
    submitted: datetime
    state: StageState
    why: str = ""
    parts: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Ladder:
    """What is known of one configuration and of its script's others. `runs`: newest first.

    `problem`: why the configuration cannot be told, which closes everything. `smoke_partition`: where a smoke run
    costs least, None where no partition can run it. `lengths`: what the script declares.
    """

    configuration: str = ""
    parts: Mapping[str, str] | None = None
    runs: tuple[StageRun, ...] = ()
    smoke_partition: str | None = None
    lengths: tuple[str, ...] = ()
    problem: str | None = None

    def newest(self, stage: Stage) -> StageRun | None:
        """The last run of a stage of this configuration that says something: a cancelled one does not."""
        return next(
            (run for run in self.runs if run.stage == stage and self._own(run) and run.state != "cancelled"), None
        )

    @property
    def validated(self) -> StageRun | None:
        """A run of this very configuration that passed."""
        return next((run for run in self.runs if self._own(run) and run.state == "passed"), None)

    @property
    def failed_before(self) -> StageRun | None:
        """The pilot of an earlier version of the script that failed, where none has passed since."""
        pilots = [run for run in self.runs if run.stage == "pilot" and run.state in {"passed", "failed"}]
        return pilots[0] if pilots and pilots[0].state == "failed" else None

    @property
    def nearest(self) -> StageRun | None:
        """The passed run of another configuration of the script that differs in the fewest parts."""
        others = [run for run in self.runs if not self._own(run) and run.state == "passed" and run.parts]
        return min(others, key=lambda run: len(differing(run.parts or {}, self.parts or {})), default=None)

    def _own(self, run: StageRun) -> bool:
        return run.configuration == self.configuration


_GOOD = "COMPLETED"


def end_of(view: JobView) -> tuple[bool | None, str | None]:
    """Whether a job passed by Slurm's record of it: every part and every step COMPLETED with exit code 0, and why not.

    None where it is not over, or where a part of the record is missing.
    """
    if not view.over:
        return None, None
    for part in (view.job, *view.tasks):
        if part.state != _GOOD or part.exit_code or part.signal:
            return False, f"it ended {_end(part.state, part.exit_code, part.signal)}"
        for step in part.steps:
            if step.state in ACTIVE_STATES:
                return None, f"the accounting does not tell the end of its step {step.step_id} yet"
            if step.state != _GOOD or step.exit_code or step.signal:
                return False, f"its step {step.step_id} ended {_end(step.state, step.exit_code, step.signal)}"
    return (None, view.missing) if view.missing is not None else (True, None)


def never_began(view: JobView) -> bool:
    """Whether somebody cancelled it: that says nothing of what it would have shown."""
    return all(part.state == "CANCELLED" for part in (view.job, *view.tasks))


def _end(state: str, exit_code: int | None, signal: int | None) -> str:
    told = [f"exit code {exit_code}"] if exit_code else []
    told += [f"signal {signal}"] if signal else []
    return f"{state} ({', '.join(told)})" if told else state


# --- Where a smoke run costs least ------------------------------------------------------------------------------------

_FOR_TESTS = re.compile(r"test|debug|smoke|dev(?:el)?(?:$|[^i])|short|quick|express|interactive", re.IGNORECASE)


_RANKS = {"testing": 0, "production": 1, "long": 2}


def cheapest(
    partitions: Mapping[str, Partition], asked: Resources, seconds: int, purposes: Mapping[str, str] | None = None
) -> str | None:
    """The partition where a trial of this size costs least: one for tests first, then the smallest that can run it.

    `purposes`: what partitions are for, by their name, as a page says; of others the name tells.
    """
    fitting = [one for one in partitions.values() if _can_run(one, asked, seconds)]
    return min(fitting, key=lambda one: _cost(one, asked, purposes or {})).name if fitting else None


def _can_run(partition: Partition, asked: Resources, seconds: int) -> bool:
    nodes, gpus, cpus = asked.nodes or 1, asked.gpus or 0, asked.cpus or 1
    per_node = asked.memory_per_node_bytes or 0
    most = partition.max_time_seconds
    return (
        partition.state == "UP"
        and (most is None or most >= seconds)
        and nodes <= min(partition.nodes, partition.max_nodes or partition.nodes)
        and gpus <= partition.gpus_per_node * nodes
        and (not partition.cpus_per_node or cpus <= partition.cpus_per_node * nodes)
        and (not partition.memory_per_node or per_node <= partition.memory_per_node)
    )


def _cost(partition: Partition, asked: Resources, purposes: Mapping[str, str]) -> tuple[int, int, int, int, str]:
    """Sorts a partition for tests first, then what holds fewer GPUs than are not asked for, then the shorter one."""
    idle_gpus = 0 if asked.gpus else partition.gpus_per_node
    longest = partition.max_time_seconds if partition.max_time_seconds is not None else 10**9
    guessed = "testing" if _FOR_TESTS.search(partition.name) else "production"
    rank = _RANKS.get(purposes.get(partition.name, guessed), 1)
    return rank, idle_gpus, longest, partition.nodes, partition.name
