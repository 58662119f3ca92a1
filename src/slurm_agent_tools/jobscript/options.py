"""The options of sbatch, 22.05 to 26.05: long name, short flag, and whether a value follows (sbatch(1))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Takes = Literal["value", "optional", "nothing"]

_VALUE = """
account=A acctg-freq array=a batch bb bbf begin=b chdir=D cluster-constraint clusters=M comment constraint=C
container container-id container-type consolidate-segments core-spec=S cores-per-socket cpu-freq cpus-per-gpu
cpus-per-task=c deadline delay-boot dependency=d distribution=m error=e exclude=x export export-file extra
extra-node-info=B gid gpu-bind gpu-freq gpus=G gpus-per-node gpus-per-socket gpus-per-task gres gres-flags
hint input=i job-name=J licenses=L mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu
mem-update mincpus network nodefile=F nodelist=w nodes=N ntasks=n ntasks-per-core ntasks-per-gpu
ntasks-per-node ntasks-per-socket oom-kill-step open-mode output=o partition=p power prefer priority profile
qos=q reservation resources segment signal sockets-per-node switches tasks-per-node thread-spec
threads-per-core time=t time-min tmp tres-bind tres-per-task uid wait-all-nodes wckey wrap
"""
_OPTIONAL = "exclusive get-user-env kill-on-invalid-dep nice no-kill=k propagate requeue"
_NOTHING = """
contiguous disable-stdout-job-summary external help=h hold=H ignore-pbs no-requeue overcommit=O
oversubscribe=s parsable quiet=Q reboot resv-ports share spread-job spread-segments stepmgr test-only usage
use-min-nodes verbose=v version=V wait=W
"""
_SAME = {"tasks-per-node": "ntasks-per-node", "share": "oversubscribe"}


@dataclass(frozen=True, slots=True)
class Option:
    """One option by its canonical long name."""

    name: str
    takes: Takes


def _table() -> tuple[dict[str, Option], dict[str, Option]]:
    long: dict[str, Option] = {}
    short: dict[str, Option] = {}
    groups: tuple[tuple[str, Takes], ...] = ((_VALUE, "value"), (_OPTIONAL, "optional"), (_NOTHING, "nothing"))
    for words, takes in groups:
        for word in words.split():
            name, _, flag = word.partition("=")
            option = Option(_SAME.get(name, name), takes)
            long[name] = option
            if flag:
                short[flag] = option
    # Documented to take a value that is always there, but declared optional by getopt.
    long["kill-on-invalid-dep"] = Option("kill-on-invalid-dep", "value")
    return long, short


LONG, SHORT = _table()


def find_long(word: str) -> Option:
    """The option that a name or unambiguous prefix means, as getopt_long finds it. ValueError otherwise."""
    if word in LONG:
        return LONG[word]
    found = sorted(name for name in LONG if name.startswith(word)) if word else []
    if not found:
        raise ValueError(f"--{word} is no option of sbatch")
    if len({LONG[name] for name in found}) > 1:
        raise ValueError(f"--{word} is ambiguous: {', '.join('--' + name for name in found[:4])}")
    return LONG[found[0]]


def find_short(flag: str) -> Option:
    """The option of a short flag. ValueError when there is none."""
    if flag not in SHORT:
        raise ValueError(f"-{flag} is no option of sbatch")
    return SHORT[flag]


def read(words: list[str]) -> list[tuple[Option, str | None]]:
    """Options from an argument vector, as getopt_long reads them. ValueError at the first that does not fit."""
    found: list[tuple[Option, str | None]] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            if next(rest, None) is not None:
                raise ValueError("there are words behind `--`")
        elif word.startswith("--"):
            name, sign, value = word[2:].partition("=")
            option = find_long(name)
            found.append((option, _value(option, f"--{name}", value if sign else None, rest)))
        elif word.startswith("-") and len(word) > 1:
            found += _cluster(word[1:], rest)
        else:
            raise ValueError(f"{word!r} is not an option")
    return found


def _value(option: Option, shown: str, glued: str | None, rest: object) -> str | None:
    if option.takes == "nothing" and glued is not None:
        raise ValueError(f"{shown} takes no value")
    if option.takes == "value" and glued is None:
        following = next(rest, None)  # type: ignore[call-overload]
        if following is None:
            raise ValueError(f"{shown} needs a value")
        return str(following)
    return glued


def _cluster(letters: str, rest: object) -> list[tuple[Option, str | None]]:
    found: list[tuple[Option, str | None]] = []
    while letters:
        option, letters = find_short(letters[0]), letters[1:]
        if option.takes == "nothing":
            found.append((option, None))
            continue
        glued = letters or None
        found.append((option, _value(option, f"-{option.name}", glued, rest)))
        break
    return found
