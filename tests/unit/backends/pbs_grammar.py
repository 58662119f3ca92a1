"""A strict reading of PBS Pro job scripts, from its documented options: whatever is not known here is an error.

No judge of PBS scripts exists that could be installed. Names and forms are those of the PBS Professional user's guide:
qsub's options, the resources of a chunk, and how durations, sizes and arrays are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

HOST_LEVEL = {"ncpus", "mpiprocs", "ompthreads", "ngpus", "mem", "vmem", "host", "vnode", "arch"}
JOB_WIDE = {"walltime", "min_walltime", "max_walltime", "place", "select", "software"}


class NotPBS(Exception):
    """What a line of a PBS script must not be."""


@dataclass
class PBSScript:
    """What a script asks for: options by their letter, the chunks, the resources of the whole job."""

    options: dict[str, str] = field(default_factory=dict)
    chunks: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    resources: dict[str, str] = field(default_factory=dict)


def _matches(pattern: str) -> Callable[[str], bool]:
    return lambda value: re.fullmatch(pattern, value) is not None


_VALUES: dict[str, Callable[[str], bool]] = {
    "N": _matches(r"[A-Za-z][A-Za-z0-9+._-]{0,229}"),
    "q": _matches(r"[A-Za-z][A-Za-z0-9_-]{0,14}(@[A-Za-z0-9.-]+)?"),
    "j": _matches(r"oe|eo|n"),
    "o": _matches(r"[^\s,]+"),
    "e": _matches(r"[^\s,]+"),
    "r": _matches(r"y|n"),
    "S": _matches(r"/[\w/]+"),
    "m": _matches(r"n|[abe]+|[abej]+"),
    "M": _matches(r"[\w.+-]+(@[\w.-]+)?(,[\w.+-]+(@[\w.-]+)?)*"),
    "A": _matches(r"[^\s]+"),
    "P": _matches(r"[^\s]+"),
    "p": lambda value: re.fullmatch(r"[+-]?\d+", value) is not None and abs(int(value)) <= 1024,
}


def _array(value: str) -> bool:
    """X-Y[:Z][%N]: at least two subjobs, and a number of them at once."""
    found = re.fullmatch(r"(\d+)-(\d+)(?::([1-9]\d*))?(?:%([1-9]\d*))?", value)
    return found is not None and int(found[2]) - int(found[1]) >= int(found[3] or 1)


_VALUES["J"] = _array

_SIZE = re.compile(r"[1-9]\d*(b|w|kb|kw|mb|mw|gb|gw|tb|tw)")
_DURATION = re.compile(r"(?:\d+:)?(?:[0-5]?\d:)?[0-5]?\d|\d+")
_PLACE = re.compile(r"(free|pack|scatter|vscatter)?(:?(excl|shared|exclhost))?(:?group=\w+)?")


def read(text: str) -> PBSScript:
    """The script's request. Raises NotPBS for anything that PBS would refuse, ignore or take otherwise."""
    lines = text.splitlines()
    if not lines or not lines[0].startswith("#!"):
        raise NotPBS("no interpreter in the first line")
    script, ended = PBSScript(), False
    for line in lines[1:]:
        if line.startswith("#PBS"):
            if ended:
                raise NotPBS(f"a directive behind the first command is ignored: {line}")
            _directive(line, script)
        elif line.strip() and not line.startswith("#"):
            ended = True
    if not script.chunks:
        raise NotPBS("no chunk is selected")
    if not ended:
        raise NotPBS("nothing runs")
    return script


def _directive(line: str, script: PBSScript) -> None:
    found = re.fullmatch(r"#PBS -([A-Za-z])(?: (\S+))?(?: -([A-Za-z]) (\S+))?", line)
    if found is None:
        raise NotPBS(f"cannot be read: {line}")
    for letter, value in ((found[1], found[2]), (found[3], found[4])):
        if letter is None:
            continue
        if letter == "l":
            _resources(value or "", script)
        elif letter not in _VALUES or not _VALUES[letter](value or ""):
            raise NotPBS(f"not an option of qsub, or not its value: {line}")
        elif script.options.setdefault(letter, value) != value:
            raise NotPBS(f"given twice: {line}")


def _resources(value: str, script: PBSScript) -> None:
    name, _, rest = value.partition("=")
    if name not in JOB_WIDE or name in script.resources:
        raise NotPBS(f"no resource of a whole job, or named twice: {value}")
    script.resources[name] = rest
    if name == "walltime" and _DURATION.fullmatch(rest) is None:
        raise NotPBS(f"no duration: {value}")
    if name == "place" and (not rest or _PLACE.fullmatch(rest) is None):
        raise NotPBS(f"no placement: {value}")
    if name == "select":
        script.chunks += [_chunk(one) for one in rest.split("+")]


def _chunk(text: str) -> tuple[int, dict[str, str]]:
    count, *parts = text.split(":")
    if re.fullmatch(r"[1-9]\d*", count) is None:
        raise NotPBS(f"no number of chunks: {text}")
    resources: dict[str, str] = {}
    for part in parts:
        name, sign, value = part.partition("=")
        if name not in HOST_LEVEL or not sign or name in resources:
            raise NotPBS(f"no resource of a chunk, or named twice: {part}")
        number = name in {"ncpus", "mpiprocs", "ompthreads", "ngpus"}
        if number and re.fullmatch(r"[1-9]\d*", value) is None:
            raise NotPBS(f"no number: {part}")
        if name in {"mem", "vmem"} and _SIZE.fullmatch(value) is None:
            raise NotPBS(f"no size: {part}")
        resources[name] = value
    if int(resources.get("mpiprocs", "1")) > int(resources.get("ncpus", "1")):
        raise NotPBS(f"more processes than CPUs: {text}")
    return int(count), resources


def size(text: str) -> int:
    """Bytes of a size: 16gb."""
    found = re.fullmatch(r"(\d+)([kmgt])b", text)
    assert found is not None, text
    return int(found[1]) * 2 ** (10 * ("kmgt".index(found[2]) + 1))
