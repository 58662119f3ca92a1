"""The effective request: script, then arguments, then pins; per option the last one wins."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from slurm_agent_tools.jobscript import options
from slurm_agent_tools.model import Directive, Evidence, JobRequest, Pin
from slurm_agent_tools.units import parse_array, parse_memory, parse_time_limit

_ORDER = {"script": 0, "argument": 1, "pinned": 2}


def _count(text: str) -> int:
    match = re.fullmatch(r"\+?(\d{1,9})", text.strip())
    if match is None:
        raise ValueError(f"not a count: {text!r}")
    return int(match[1])


def _nodes(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,7})([km]?)(?:-(\d{1,7})([km]?))?", text.strip(), re.IGNORECASE)
    if match is None:
        raise ValueError(f"not a number of nodes: {text!r} (write 1 or 2-4)")
    factor = {"": 1, "k": 1024, "m": 1024 * 1024}
    low = int(match[1]) * factor[match[2].lower()]
    return low, int(match[3]) * factor[(match[4] or "").lower()] if match[3] else low


def _gpus(text: str) -> int:
    """`4`, `a100:4`, `a100:2,h100:1`."""
    return sum(_gpu_item(item, text) for item in text.strip().split(","))


def _gpu_item(item: str, whole: str) -> int:
    match = re.fullmatch(r"(?:([A-Za-z][\w.-]*):)?(\d{1,6})|([A-Za-z][\w.-]*)", item.strip())
    if match is None:
        raise ValueError(f"not a number of GPUs: {whole!r}")
    return int(match[2]) if match[2] is not None else 1


_GRES = re.compile(
    r"(?:gres[:/])?([A-Za-z_][\w.-]*)(?:[:/]([A-Za-z_][\w.-]*))?(?:[:=](\d{1,6})([kmg]?))?", re.IGNORECASE
)


def _gres(text: str) -> int | None:
    """GPUs in a --gres or --tres-per-task value; None when it names no GPU."""
    if text.strip().lower() in {"none", ""}:
        return None
    found: dict[str, int] = {}
    for item in text.split(","):
        match = _GRES.fullmatch(item.strip())
        if match is None:
            raise ValueError(f"not a list of generic resources: {text!r} (write gpu:2 or gpu:a100:2)")
        name, kind, count, unit = match.groups()
        if name.lower() == "gpu":
            factor = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3}[(unit or "").lower()]
            found[kind or ""] = (int(count) if count is not None else 1) * factor
    return sum(found.values()) if found else None


_READ: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "job-name": ("name", str),
    "partition": ("partition", str),
    "time": ("time_limit", parse_time_limit),
    "mem": ("memory_per_node", parse_memory),
    "mem-per-cpu": ("memory_per_cpu", parse_memory),
    "mem-per-gpu": ("memory_per_gpu", parse_memory),
    "gpus": ("gpus", _gpus),
    "gpus-per-node": ("gpus_per_node", _gpus),
    "gpus-per-task": ("gpus_per_task", _gpus),
    "gpus-per-socket": ("gpus_per_socket", _gpus),
    "ntasks": ("ntasks", _count),
    "ntasks-per-node": ("ntasks_per_node", _count),
    "ntasks-per-gpu": ("ntasks_per_gpu", _count),
    "cpus-per-task": ("cpus_per_task", _count),
    "cpus-per-gpu": ("cpus_per_gpu", _count),
    "array": ("array", parse_array),
    "dependency": ("dependency", str),
    "qos": ("qos", str),
    "chdir": ("chdir", str),
    "output": ("output", str),
    "error": ("error", str),
    "export": ("export", str),
}


def effective(directives: Sequence[Directive]) -> JobRequest:
    """The request that these options make together. A value that cannot be read becomes a problem."""
    ordered = sorted(directives, key=lambda directive: _ORDER[directive.source])
    last = {directive.option: directive for directive in ordered}
    values: dict[str, Any] = {}
    problems: list[Evidence] = []
    for option, directive in sorted(last.items(), key=lambda item: item[0] == "gres"):  # --gres beats --gpus-per-node
        try:
            values |= _values(option, directive.value or "")
        except ValueError as error:
            place = directive.evidence
            problems.append(Evidence(place.file, place.line, f"--{option}: {error}"))
    memory = [option for option in ("mem", "mem-per-cpu", "mem-per-gpu") if option in last]
    if len(memory) > 1:
        place = last[memory[-1]].evidence
        problems.append(Evidence(place.file, place.line, f"--{' and --'.join(memory)} exclude each other"))
    requeue = [directive for directive in ordered if directive.option in {"requeue", "no-requeue"}]
    if requeue:
        values["requeue"] = requeue[-1].option == "requeue"
    return JobRequest(directives=tuple(ordered), problems=tuple(problems), **values)


def _values(option: str, text: str) -> dict[str, Any]:
    if option == "nodes":
        low, high = _nodes(text)
        return {"nodes": low, "nodes_max": high}
    if option == "gres":
        number = _gres(text)
        return {} if number is None else {"gpus_per_node": number}
    if option == "tres-per-task":
        number = _gres(text)
        return {} if number is None else {"gpus_per_task": number}
    if option not in _READ:
        return {}
    name, read = _READ[option]
    return {name: read(text)}


def arguments_to_directives(arguments: Mapping[str, str]) -> tuple[Directive, ...]:
    """Options that the caller puts on the command line, by their long names."""
    return tuple(
        Directive(name, value, "argument", Evidence("command line", 0, f"--{name}={value}"))
        for name, value in arguments.items()
    )


def pins_to_directives(pins: Sequence[Pin]) -> tuple[Directive, ...]:
    """Options that the guard puts on the command line."""
    return tuple(
        Directive(option.name, value, "pinned", Evidence("command line", 0, pin.option))
        for pin in pins
        for option, value in options.read([pin.option])
    )
