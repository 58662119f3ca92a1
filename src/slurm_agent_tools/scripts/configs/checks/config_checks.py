"""Checks that hold for any experiment, and its `slurm:` section as the batch header that asks for the same. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import NamedTuple

from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.request import Evidence
from slurm_agent_tools.models.submission_answer import Complaint
from slurm_agent_tools.scripts.configs.experiment_config import Config, is_input, leaf, walk
from slurm_agent_tools.scripts.directive_lines import directive_line

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
    lines = [_line(key, section[key]) or "" for key in written_keys(section)]
    return "\n".join(["#!/bin/bash", *lines, "true"]) + "\n"


def written_keys(section: Mapping[str, object]) -> list[str]:
    """The keys that have a line in that header, in the order of the lines, the first of which is line 2."""
    return [key for key, value in section.items() if _fault(key, value) is None and _line(key, value) is not None]


def section_problems(config: Config) -> Iterator[tuple[str, str, str]]:
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


def option_name(key: str) -> str:
    """The option of sbatch that a key means."""
    return _OPTIONS.get(key, key.replace("_", "-"))


def _line(key: str, value: object) -> str | None:
    """The directive; None for a switch that is off. Raises ValueError for a text that one line cannot hold."""
    if value is None or value is False:
        return None
    if value is True:
        return directive_line(option_name(key))
    text = ",".join(str(item) for item in value) if isinstance(value, list) else str(value)
    return directive_line(option_name(key), f"{text}G" if key == "mem_gb" else text)


def _fault(key: str, value: object) -> str | None:
    if not re.fullmatch(r"[A-Za-z][A-Za-z-]*", option_name(key)):
        return "is not the name of an option"
    if isinstance(value, Mapping):
        return "is a mapping, not the value of one option"
    if isinstance(value, float) and not math.isfinite(value):
        return f"is {value}, no number that Slurm knows"
    try:
        _line(key, value)
    except ValueError as error:
        return f"is {error}"
    return None


# --- Checks that hold for any experiment: numbers in their range, typing slips, fixed devices, paths that exist -------


class _Range(NamedTuple):
    """What a number may be."""

    says: str
    holds: Callable[[float], bool]
    whole: bool = False


_POSITIVE = _Range("a number above 0", lambda n: n > 0)

_NOT_NEGATIVE = _Range("a number of 0 or more", lambda n: n >= 0)

_SHARE = _Range("a number from 0 to 1", lambda n: 0 <= n <= 1)

_COUNT = _Range("a whole number of 1 or more", lambda n: n >= 1, whole=True)

_COUNT_OR_0 = _Range("a whole number of 0 or more", lambda n: n >= 0, whole=True)

_ANY_WHOLE = _Range("a whole number", lambda _: True, whole=True)

_RANGES: Mapping[str, _Range] = {
    **dict.fromkeys(("learning_rate", "lr", "temperature", "epsilon", "eps"), _POSITIVE),
    **dict.fromkeys(("weight_decay", "momentum", "grad_clip", "gradient_clip", "max_grad_norm"), _NOT_NEGATIVE),
    **dict.fromkeys(
        ("dropout", "warmup_ratio", "val_split", "validation_split", "test_split", "label_smoothing"), _SHARE
    ),
    **dict.fromkeys(
        ("batch_size", "epochs", "num_epochs", "max_epochs", "max_steps", "num_layers", "hidden_size", "patience",
         "gradient_accumulation_steps", "num_nodes"),
        _COUNT,
    ),
    **dict.fromkeys(("num_workers", "warmup_steps", "gpus", "num_gpus"), _COUNT_OR_0),
    "seed": _ANY_WHOLE,
}  # fmt: skip

_UNLIMITED = {"epochs", "num_epochs", "max_epochs", "max_steps"}  # where -1 is a usual way to say: no limit

_DEVICE = re.compile(r"\b(?:cuda|xpu|hip):\d+\b|/GPU:\d+|/device:GPU:\d+", re.IGNORECASE)

_VISIBLE = re.compile(r"\b(?:CUDA|NVIDIA|HIP|ROCR)_VISIBLE_DEVICES\b|\bGPU_DEVICE_ORDINAL\b|\bZE_AFFINITY_MASK\b")

_AUTO = "Leave the choice to Slurm: write `cuda`, or use Accelerator().device in the program."


def check_config(
    config: Config, present: Mapping[str, bool], *, shaped: bool = False
) -> tuple[list[Complaint], list[Complaint], dict[str, object]]:
    """(errors, warnings, summary). `present`: which of `paths(config)` exist.

    `shaped`: the project has a schema, which alone says what keys there are and what they may hold.
    """
    if not isinstance(config.value, Mapping):
        problem = f"holds {type(config.value).__name__} instead of keys and values"
        return [Complaint(path="", line=1, message=f"The file {problem}.", remedy="Write `key: value` lines.")], [], {}
    errors: list[Complaint] = []
    warnings: list[Complaint] = []
    for place, value in walk(config.value):
        errors += _complaints(config, place, _fixed(place, value))
        warnings += _complaints(config, place, _odd(config, place, value, present))
        if not shaped:
            errors += _complaints(config, place, _wrong(place, value))
            warnings += _complaints(config, place, _misspelt(place))
    errors += [
        Complaint(path=place, line=config.lines.get(place), message=message, remedy=remedy)
        for place, message, remedy in section_problems(config)
    ]
    summary: dict[str, object] = {
        "kind": "experiment config",
        "format": config.format,
        "keys": [str(key) for key in config.value],
    }
    return errors, warnings, summary


_Problem = tuple[str, str]  # message, remedy


def _complaints(config: Config, place: str, problems: Iterator[_Problem]) -> list[Complaint]:
    line = config.lines.get(place)
    return [Complaint(path=place, line=line, message=message, remedy=remedy) for message, remedy in problems]


def _fixed(place: str, value: object) -> Iterator[_Problem]:
    name = leaf(place)
    if _VISIBLE.search(name) or (isinstance(value, str) and _VISIBLE.search(value)):
        yield f"{place} names GPUs by a variable that only Slurm may set.", "Remove it: Slurm gives the job its GPUs."
    elif isinstance(value, str) and _DEVICE.search(value):
        yield f"{place} is the fixed device {value!r}, which may be another job's.", _AUTO


def _wrong(place: str, value: object) -> Iterator[_Problem]:
    name = leaf(place)
    limits = _RANGES.get(name)
    if limits is None or value is None or isinstance(value, Mapping | list) or place.startswith("slurm."):
        return
    if value == -1 and name in _UNLIMITED:
        return
    if isinstance(value, str) and not _numeric(value):
        if name not in {"batch_size", "lr", "learning_rate", "gpus"} or value != "auto":
            yield f"{place} is the text {value!r} instead of {limits.says}.", f"Write {limits.says}."
    elif isinstance(value, str):
        yield f"{place} is the text {value!r}, not a number.", _as_number(value)
    elif not _fits(value, limits):
        yield f"{place} is {value!r} instead of {limits.says}.", f"Write {limits.says}."


def _numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _as_number(text: str) -> str:
    if re.fullmatch(r"[-+]?\d+[eE][-+]?\d+", text):
        mantissa, exponent = re.split("[eE]", text)
        sign = exponent if exponent[0] in "+-" else f"+{exponent}"
        return f"Write {mantissa}.0e{sign}: YAML takes {text} for text."
    return f"Write {text} without quotes."


def _fits(value: object, limits: _Range) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (not limits.whole or isinstance(value, int)) and limits.holds(value)


def _odd(config: Config, place: str, value: object, present: Mapping[str, bool]) -> Iterator[_Problem]:
    name = leaf(place)
    if place in config.clocks and not place.startswith("slurm."):
        yield (
            f"YAML reads {config.clocks[place]} as the number {value}.",
            f'Put it in quotes: "{config.clocks[place]}".',
        )
    if (
        name in {"gpu_ids", "device_ids", "gpu_id", "device_id"}
        and value not in (None, "auto")
        and not place.endswith("]")
    ):
        yield f"{place} chooses GPUs by number, which may be another job's.", _AUTO
    if isinstance(value, str) and present.get(value) is False and is_input(place, value):
        yield f"{place} names {value}, which does not exist here.", "Correct the path, or check it on a compute node."


def _misspelt(place: str) -> Iterator[_Problem]:
    name = leaf(place)
    if name not in _RANGES and len(name) > 3 and not place.startswith("slurm.") and not place.endswith("]"):
        near = get_close_matches(name, _RANGES, n=1, cutoff=0.85)
        if near:
            yield f"{place} is not a known key.", f"Did you mean {near[0]}?"


# --- What the guard says about the header made of a `slurm:` section, told by the section's own keys and lines --------


_STEP = re.compile(r"(Replace|Delete) ((?:line \d+(?:, )?)+) \(`.*`\)(?: by:|\.)$")

_ALL = re.compile(r"--([a-z-]+)(?:=(\"(?:[^\"\\]|\\.)*\"|\S+))?")

_SAFE = re.compile(r"[A-Za-z][\w@%+=./-]*|\d+[A-Za-z]+|[1-9]\d*")  # what YAML takes for the text that it is

_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"})

_REASON = "Note: more than is free needs a written reason: give it when you submit, submit_job has justification."

_OTHER_UNIT = frozenset({"mem_gb"})  # a key whose value is not written as sbatch takes it


def in_section_terms(config: Config, rules: Sequence[RuleDecision]) -> list[RuleDecision]:
    """The same answers with evidence and remedies in the file's words."""
    return [_retold(config, rule) for rule in rules]


def rule_complaint(config: Config, rule: RuleDecision) -> Complaint:
    """What a rule, already retold, has against the section."""
    line = rule.evidence[0].line if rule.evidence else config.lines.get("slurm")
    place = rule.evidence[0].text.partition(":")[0] if rule.evidence else "slurm"
    return Complaint(path=place, line=line or None, message=rule.message, remedy=rule.remedy or "")


def _retold(config: Config, rule: RuleDecision) -> RuleDecision:
    section = slurm_section(config) or {}
    keys = written_keys(section)
    evidence = [_shown(config, keys, place) for place in rule.evidence]
    remedy = None if rule.remedy is None else "\n".join(_lines(config, keys, rule.remedy))
    message = _message(keys, rule.message)
    return replace(rule, evidence=tuple(evidence), remedy=remedy, message=message)


def _message(keys: Sequence[str], text: str) -> str:
    """A message that names lines of the header, with the keys in their place."""

    def named(match: re.Match[str]) -> str:
        key = _key(keys, int(match[1]))
        return match[0] if key is None else f"slurm.{key}: "

    return re.sub(
        r": #SBATCH (?:(?!: #SBATCH )[^;])*?(?=; slurm\.|\. An option )", "", re.sub(r"\b[Ll]ine (\d+): ", named, text)
    )


def _key(keys: Sequence[str], line: int) -> str | None:
    return keys[line - 2] if 2 <= line < len(keys) + 2 else None


def _shown(config: Config, keys: Sequence[str], place: Evidence) -> Evidence:
    """`slurm.mem: 64G` and where it stands."""
    key = _key(keys, place.line)
    name = "slurm" if key is None else f"slurm.{key}"
    value = "" if key is None else (slurm_section(config) or {})[key]
    return Evidence(file=place.file, line=config.lines.get(name, 0), text=f"{name}: {value}".rstrip())


def _lines(config: Config, keys: Sequence[str], remedy: str) -> Iterator[str]:
    """A remedy's lines; the ways that write a reason on a line are left out, since the section has no such line."""
    ways = re.split(r"\n(?=Or [^\n]*:\n)", remedy)
    kept = [way for way in ways if not re.match(r"Or give your reason[^\n]*:\n", way)]
    replaced: list[str] = []
    for line in "\n".join(kept).split("\n"):
        step = _STEP.fullmatch(line)
        if step is not None:
            named = [_key(keys, int(number)) for number in re.findall(r"\d+", step[2])]
            replaced = [key for key in named if key is not None]
            yield _step(config, replaced, step[1])
        elif line == "Add:":
            replaced = []
            yield "Add below slurm:"
        elif line.startswith("#SBATCH "):
            yield from (f"  {pair}" for pair in _pairs(config, replaced, line))
        elif not (line.startswith("Note:") and "#SBATCH" in line):
            yield line
    if len(kept) < len(ways):
        yield _REASON


def _step(config: Config, keys: Sequence[str], action: str) -> str:
    places = [(f"slurm.{key}", config.lines.get(f"slurm.{key}")) for key in keys]
    told = ", ".join(place if line is None else f"{place} (line {line})" for place, line in places) or "slurm"
    return f"{action} {told}{' by:' if action == 'Replace' else '.'}"


def _pairs(config: Config, keys: Sequence[str], line: str) -> Iterator[str]:
    """The keys that say the same as a directive line; a key keeps its name where its value stays of its kind."""
    for name, value in _ALL.findall(line.partition("  #")[0]):
        same = (key for key in keys if option_name(key) == name and key not in _OTHER_UNIT)
        text = json.loads(value) if value.startswith('"') else value
        yield _pair(config.format, next(same, name), text)


def _pair(form: str, key: str, value: str) -> str:
    quoted = json.dumps(value, ensure_ascii=False) if value else "true"
    if form == "JSON":
        return f"{json.dumps(key)}: {quoted}"
    if form == "TOML":
        return f"{key} = {quoted}"
    plain = _SAFE.fullmatch(value) is not None and value.lower() not in _WORDS
    return f"{key}: {value if plain else quoted}"
