"""How a job of the fake Slurm ends: as the test says, else as far as its script can be read."""

from __future__ import annotations

import re
import shlex
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Fate = Literal["exit", "out_of_memory", "node_fail", "not_set_up", "preempted"]


@dataclass(frozen=True, slots=True)
class StepEnding:
    """One step that the script started with srun. `memory`: bytes that it used at most."""

    name: str = "step"
    exit_code: int = 0
    signal: int = 0
    out_of_memory: bool = False
    after: float = 0.0
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """What a job does once it has started.

    `after`: seconds that it runs, None until something else ends it. `fate`: what ends it. `output` and `errors` are
    written to its log files when it starts; a list holds (seconds after the start, text). `memory`: bytes that its
    script used at most, None for what Slurm's version shows of a job that is too short to be sampled.
    """

    after: float | None = 0.0
    exit_code: int = 0
    signal: int = 0
    fate: Fate = "exit"
    output: str | Sequence[tuple[float, str]] = ""
    errors: str = ""
    steps: tuple[StepEnding, ...] = ()
    memory: int | None = None

    def pieces(self) -> list[tuple[float, str]]:
        """The output as pieces by time."""
        if isinstance(self.output, str):
            return [(0.0, self.output)] if self.output else []
        return list(self.output)


_ECHO = re.compile(r"echo\s+(.*?)\s*(>&2)?\s*", re.DOTALL)

_TASK = re.compile(r"\[ \$\{?SLURM_ARRAY_TASK_ID\}? (!=|=|-ne|-eq) (\d+) \] (\|\||&&) (.*)", re.DOTALL)

_KILL = re.compile(r"kill -(\w+) \$\$")


def read_script(script: bytes, variables: Mapping[str, str], args: Sequence[str] = ()) -> Ending:
    """What a simple script does; a command that is not known here takes no time and succeeds.

    Known: `echo`, `sleep`, `exit`, `true`, `false`, `kill -SIGNAL $$`, `srun` before one of these, and
    `[ $SLURM_ARRAY_TASK_ID != 2 ] ||` before one of them.
    """
    found = Ending(0.0)
    text = script.decode("utf-8", "replace")
    if "\n" in text and text.startswith("#!") and not _exists(text):
        return Ending(0.0, exit_code=127, errors="slurmstepd: error: execve(): No such file or directory\n")
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        for command in re.split(r"\s*;\s*", line.strip()):
            found, over = _command(found, command, variables, args)
            if over:
                return found
    return found


def _exists(text: str) -> bool:
    return "nonexistent" not in text.partition("\n")[0]


_Made = tuple[Ending, bool]


def _command(so_far: Ending, command: str, variables: Mapping[str, str], args: Sequence[str]) -> _Made:
    test = _TASK.fullmatch(command)
    if test is not None:
        same = variables.get("SLURM_ARRAY_TASK_ID", "") == test[2]
        true = same is (test[1] in {"=", "-eq"})
        if true is (test[3] == "||"):
            return replace(so_far, exit_code=0 if true else 1), False
        command = test[4]
    word, _, rest = command.partition(" ")
    maker = _COMMANDS.get(word)
    if word == "echo":
        return _echo(so_far, command, variables, args), False
    return (replace(so_far, exit_code=_missing(word)), False) if maker is None else maker(so_far, rest, command)


def _missing(word: str) -> int:
    return 127 if "nonexistent" in word else 0


def _echo(so_far: Ending, command: str, variables: Mapping[str, str], args: Sequence[str]) -> Ending:
    found = _ECHO.fullmatch(command)
    words = found[1] if found is not None else ""
    try:
        text = " ".join(shlex.split(words)) if "'" in words or '"' in words else words
    except ValueError:
        text = words
    text = re.sub(r"\$\{?([A-Za-z_]\w*)\}?", lambda match: variables.get(match[1], ""), text)
    text = text.replace("$@", " ").replace("$*", " ".join(args)) if not args else text.replace("$@", " ".join(args))
    line = f"{text}\n"
    if found is not None and found[2]:
        return replace(so_far, errors=so_far.errors + line, exit_code=0)
    return replace(so_far, output=[*so_far.pieces(), (so_far.after or 0.0, line)], exit_code=0)


def _sleep(so_far: Ending, rest: str, _: str) -> _Made:
    seconds = None if rest == "infinity" else float(rest)
    after = None if seconds is None or so_far.after is None else so_far.after + seconds
    return replace(so_far, after=after, exit_code=0), after is None


def _exit(so_far: Ending, rest: str, _: str) -> _Made:
    return replace(so_far, exit_code=int(rest or so_far.exit_code) & 255), True


def _kill(so_far: Ending, _: str, command: str) -> _Made:
    found = _KILL.fullmatch(command)
    if found is None:
        return so_far, False
    number = int(found[1]) if found[1].isdigit() else signal.Signals[f"SIG{found[1].removeprefix('SIG')}"].value
    return replace(so_far, signal=number), True


def _srun(so_far: Ending, rest: str, _: str) -> _Made:
    inner, _over = _command(replace(so_far, output=(), errors="", after=0.0, exit_code=0, steps=()), rest, {}, ())
    name = rest.split(maxsplit=1)[0].rpartition("/")[2] if rest.split() else "step"
    step = StepEnding(name, inner.exit_code, inner.signal, after=inner.after or 0.0)
    after = None if so_far.after is None else so_far.after + (inner.after or 0.0)
    return replace(so_far, after=after, steps=(*so_far.steps, step), exit_code=inner.exit_code), False


_COMMANDS: Mapping[str, Callable[[Ending, str, str], _Made]] = {
    "sleep": _sleep,
    "exit": _exit,
    "kill": _kill,
    "srun": _srun,
    "true": lambda so_far, _rest, _all: (replace(so_far, exit_code=0), False),
    "false": lambda so_far, _rest, _all: (replace(so_far, exit_code=1), False),
}
