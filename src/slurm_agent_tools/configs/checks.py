"""Checks that hold for any experiment: numbers in their range, typing slips, fixed devices, paths that exist. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

from slurm_agent_tools.configs.inputs import is_input
from slurm_agent_tools.configs.reading import Config, leaf, walk
from slurm_agent_tools.configs.section import problems
from slurm_agent_tools.replies import Complaint


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


def check(
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
        for place, message, remedy in problems(config)
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
