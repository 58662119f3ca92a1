"""The `slurm:` section of a configuration, as the batch header that asks for the same. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from slurm_agent_tools.configs.reading import Config
from slurm_agent_tools.jobscript.headers import directive

_OPTIONS = {
    "memory": "mem", "mem_gb": "mem", "time_limit": "time", "walltime": "time", "timeout": "time", "name": "job-name",
    "cpus": "cpus-per-task", "tasks": "ntasks", "gpu": "gpus", "num_gpus": "gpus", "log": "output", "stdout": "output",
    "stderr": "error",
}  # fmt: skip


def slurm_section(config: Config) -> dict[str, object] | None:
    """What stands under `slurm:`, or None where there is no such mapping."""
    section = config.value.get("slurm") if isinstance(config.value, Mapping) else None
    return {str(key): value for key, value in section.items()} if isinstance(section, Mapping) else None


def slurm_script(section: Mapping[str, object]) -> str:
    """A batch header that asks for the same, for the guard to judge. What no line can say is among the problems."""
    lines = [_line(key, section[key]) or "" for key in written(section)]
    return "\n".join(["#!/bin/bash", *lines, "true"]) + "\n"


def written(section: Mapping[str, object]) -> list[str]:
    """The keys that have a line in that header, in the order of the lines, the first of which is line 2."""
    return [key for key, value in section.items() if _fault(key, value) is None and _line(key, value) is not None]


def problems(config: Config) -> Iterator[tuple[str, str, str]]:
    """(place, message, remedy) of what in the section cannot be an option of sbatch, or not the one that was meant."""
    section = slurm_section(config)
    if section is None and isinstance(config.value, Mapping) and config.value.get("slurm") is not None:
        yield "slurm", "slurm is not a mapping of sbatch options.", "Write `option: value` lines below it."
    for key, value in (section or {}).items():
        place = f"slurm.{key}"
        fault = _fault(key, value)
        if fault is not None:
            yield place, f"{place} {fault}.", "Write it as sbatch takes it."
        if place in config.clocks:
            written = config.clocks[place]
            message = f"YAML reads {written} as the number {value}, which Slurm takes for minutes."
            yield place, message, f'Put it in quotes: "{written}".'


def option(key: str) -> str:
    """The option of sbatch that a key means."""
    return _OPTIONS.get(key, key.replace("_", "-"))


def _line(key: str, value: object) -> str | None:
    """The directive; None for a switch that is off. Raises ValueError for a text that one line cannot hold."""
    if value is None or value is False:
        return None
    if value is True:
        return directive(option(key))
    text = ",".join(str(item) for item in value) if isinstance(value, list) else str(value)
    return directive(option(key), f"{text}G" if key == "mem_gb" else text)


def _fault(key: str, value: object) -> str | None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z-]*", option(key)):
        return "is not the name of an option"
    if isinstance(value, Mapping):
        return "is a mapping, not the value of one option"
    try:
        _line(key, value)
    except ValueError as error:
        return f"is {error}"
    return None
