"""Reading a campaign's file: YAML or JSON to a CampaignFile, and all that is wrong with it, each with its line."""

from __future__ import annotations

import ast
import inspect
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from pydantic import ValidationError

from slurm_agent_tools.campaigns.file_checks import kind_of, of_change, of_stage, of_value, twice, unknown_name
from slurm_agent_tools.campaigns.trial_count import least_trials
from slurm_agent_tools.diagnosis.signatures import by_id
from slurm_agent_tools.errors import ConfigError, InputError
from slurm_agent_tools.models import campaign_file
from slurm_agent_tools.models.campaign import Setting
from slurm_agent_tools.models.campaign_file import (
    RESOURCES,
    CampaignFile,
    CampaignStage,
    ComparingRound,
    Fix,
    GridRound,
    HalvingRound,
    ListRound,
    Parameter,
    RandomRound,
    Range,
    Round,
    ScaleUpRound,
    SearchRound,
    SmokeRound,
)
from slurm_agent_tools.scripts.configs.experiment_config import Config, parse_config
from slurm_agent_tools.scripts.configs.form_problems import FormProblem, form_problems, line_of

FOLDER = "campaigns"

MOST_FACTORS = 2

LARGEST = 256 * 1024
"""Bytes of one file."""

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,40}", re.ASCII)

_KNOWN = "`slurm-agent-tools init --campaign KIND` writes an example with its schema."

_SHOWN = 1300
"""Characters of all problems together; what is beyond is counted."""


def checked_name(name: str) -> str:
    """A campaign's name, which its file has too. Raises InputError."""
    if NAME.fullmatch(name) is None:
        hint = "Name it like learning-rate: small letters, digits, - and _, at most 41."
        raise InputError("name", name, "is no name of a campaign", hint=hint)
    return name


@lru_cache(maxsize=8)
def read_campaign(data: bytes, path: str) -> CampaignFile:
    """The campaign in a file's bytes; `path` says its format and is named in errors. The same bytes are read once.

    Raises ConfigError with every problem, each with its line, field, value and mend.
    """
    file, found = _read(data, path)
    if len(found) == 1:
        raise found[0]
    if file is None or found:
        raise ConfigError(path, None, f"has {len(found)} problems:{_listed(found)}", hint=f"Correct them. {_KNOWN}")
    return file


def problems_of(data: bytes, path: str) -> list[ConfigError]:
    """All that is wrong with a campaign's file, in the order of its lines as far as they are known."""
    return _read(data, path)[1]


def _read(data: bytes, path: str) -> tuple[CampaignFile | None, list[ConfigError]]:
    """The campaign, where the form is right, and all that is wrong."""
    try:
        config = _parsed(data, path)
    except ConfigError as error:
        return None, [error]
    file = None
    try:
        file = _validated(config.value)
        found = problems_in(file)
    except ValidationError as error:
        found = form_problems(config.value, error.errors(include_url=False))
    found.sort(key=lambda problem: line_of(config.lines, problem.place) or 0)
    return file, [_told(one, line_of(config.lines, one.place), path) for one in found]


def _told(one: FormProblem, line: int | None, path: str) -> ConfigError:
    where = f"{path}, line {line}" if line else path
    return ConfigError(one.place or "the file", one.value, one.what, hint=f"{one.mend or 'Correct it.'} ({where})")


def _listed(found: Sequence[ConfigError]) -> str:
    """The problems, each in a line; those that do not fit are counted."""
    said = ""
    for number, one in enumerate(found, start=1):
        line = f"\n{number}. {one.message}. {one.hint}"
        if len(said) + len(line) > _SHOWN:
            return f"{said}\nand {len(found) - number + 1} more"
        said += line
    return said


def _validated(value: object) -> CampaignFile:
    return CampaignFile.model_validate(value, by_alias=True, by_name=False)


def _parsed(data: bytes, path: str) -> Config:
    if len(data) > LARGEST:
        raise ConfigError(
            path, None, f"is larger than {LARGEST // 1024} KiB", hint="Vary by rounds, not by long lists."
        )
    suffix = PurePosixPath(path).suffix
    try:
        return parse_config(data, suffix if suffix in {".yml", ".json"} else ".yaml", path)
    except InputError as error:
        problem = error.message.removeprefix("config_path: ")
        raise ConfigError("campaign", None, f"cannot be read: {problem}", hint=error.hint) from error


# --- what the file must hold beyond its form ---


def problems_in(file: CampaignFile) -> list[FormProblem]:
    """All that is wrong with a file whose form is right."""
    known = {stage.name: stage for stage in file.stages}
    found = list(twice("stages", [stage.name for stage in file.stages], ".name"))
    for index, stage in enumerate(file.stages):
        found += of_stage(f"stages[{index}]", stage)
    for index, one in enumerate(file.rounds):
        found += _of_round(f"rounds[{index}]", one, known, file)
    found += _of_order(file)
    found += _of_limits(file)
    for index, fix in enumerate(file.fixes):
        found += _of_fix(f"fixes[{index}]", fix, known)
    return found


# --- rounds -----------------------------------------------------------------------------------------------------------


def varied(one: Round) -> list[str]:
    """The names of what a round varies, each once: parameters and resources."""
    if isinstance(one, ListRound):
        return list(dict.fromkeys(name for trial in one.trials for name in trial))
    return [] if isinstance(one, SmokeRound | ScaleUpRound) else list(one.vary)


def _of_round(place: str, one: Round, known: Mapping[str, CampaignStage], file: CampaignFile) -> Iterator[FormProblem]:
    names = file.stages if one.stages is None else one.stages
    yield from _of_stage_names(place, one.stages, known)
    stages = list(known.values()) if one.stages is None else [known[name] for name in one.stages if name in known]
    if not stages or not names:
        return
    factors = varied(one)
    if len(factors) > MOST_FACTORS and not isinstance(one, SearchRound):
        mend = f"Vary at most {MOST_FACTORS} in one round and give the others a round each, or use kind: search."
        field = "trials" if isinstance(one, ListRound) else "vary"
        yield FormProblem(f"{place}.{field}", ", ".join(factors), f"are {len(factors)} factors in one round", mend)
    if isinstance(one, ListRound):
        yield from twice(f"{place}.trials", [dict(sorted(trial.items())) for trial in one.trials])
        for index, trial in enumerate(one.trials):
            for name, value in trial.items():
                yield from _of_factor(f"{place}.trials[{index}].{name}", name, [value], stages, in_list=True)
    elif isinstance(one, GridRound | RandomRound | HalvingRound | SearchRound):
        for name, values in one.vary.items():
            yield from _of_factor(f"{place}.vary.{name}", name, values, stages)
    elif isinstance(one, ScaleUpRound):
        for name, value in one.change.items():
            yield from of_change(f"{place}.change.{name}", name, value, stages)
    yield from _of_round_kind(place, one, stages)


def _of_stage_names(place: str, names: Sequence[str] | None, known: Iterable[str]) -> Iterator[FormProblem]:
    if names is None:
        return
    if not names:
        yield FormProblem(f"{place}.stages", None, "is empty", "Name stages, or remove the line: then all take part.")
    for index, name in enumerate(names):
        if name not in known:
            yield FormProblem(f"{place}.stages[{index}]", name, "is no stage", f"Stages: {', '.join(known)}.")
    yield from twice(f"{place}.stages", names)


_LARGEST_WHOLE = 1e18
"""From it on no program is handed a whole number, see value_problem."""


def _of_factor(
    place: str, name: str, values: Sequence[Setting] | Range, stages: Sequence[CampaignStage], *, in_list: bool = False
) -> Iterator[FormProblem]:
    """What is wrong with what a round varies, and with its values."""
    parameters = [stage.parameters[name] for stage in stages if name in stage.parameters]
    if not parameters and name not in RESOURCES:
        yield unknown_name(place, name, stages)
        return
    if any(one.length for one in parameters):
        mend = "Lengths change in a smoke run, by successive halving (length, from, to) and in scale_up."
        yield FormProblem(place, name, "is a length, and says nothing of what is better", mend)
        return
    if name == "gpus" and not parameters and any(stage.kind == "cpu" for stage in stages):
        yield FormProblem(place, name, "cannot vary in a stage of kind cpu", "Name the round's stages.")
    if isinstance(values, Range):
        yield from _of_range(place, name, values, parameters)
        return
    yield from twice(place, values)
    for index, value in enumerate(values):
        yield from of_value(place if in_list else f"{place}[{index}]", name, value, parameters)


def _of_range(place: str, name: str, values: Range, parameters: Sequence[Parameter]) -> Iterator[FormProblem]:
    if name == "memory" and not parameters:
        yield FormProblem(place, name, "cannot be a range", 'Write its values: ["8G", "16G"].')
        return
    if any(kind_of(one.default) != "a number" for one in parameters):
        yield FormProblem(place, name, "is no number, and cannot be a range", "Write its values as a list.")
    if not parameters and not (values.whole and values.low >= (0 if name == "gpus" else 1)):
        yield FormProblem(place, name, "has to be whole numbers from 1 on", "Write whole: true.")
    if values.whole and math.floor(values.high) < math.ceil(values.low):
        yield FormProblem(place, name, "holds no whole number", "Widen it.")
    if values.whole and max(abs(values.low), abs(values.high)) >= _LARGEST_WHOLE:
        yield FormProblem(place, name, "holds whole numbers of more than 18 digits", "Narrow it.")
    if not math.isfinite(values.high - values.low):
        yield FormProblem(place, name, "is wider than the largest number", "Narrow it.")
    if values.step is not None and values.log:
        yield FormProblem(f"{place}.step", values.step, "cannot stand beside log", "Remove one of them.")


def _of_round_kind(place: str, one: Round, stages: Sequence[CampaignStage]) -> Iterator[FormProblem]:
    if isinstance(one, SearchRound) and one.sampler is not None and one.by != "optuna":
        yield FormProblem(f"{place}.sampler", one.sampler, "is one of Optuna's", "Write by: optuna, or remove it.")
    if not isinstance(one, HalvingRound):
        return
    if one.from_ >= one.to:
        yield FormProblem(f"{place}.from", one.from_, f"has to be below to ({one.to:g})")
    for stage in stages:
        parameter = stage.parameters.get(one.length)
        if parameter is None or not parameter.length:
            mend = f"Write length: true at that parameter of {stage.name}, or name the round's stages."
            yield FormProblem(f"{place}.length", one.length, f"is no length of the stage {stage.name}", mend)
        elif isinstance(parameter.default, int) and not (one.from_.is_integer() and one.to.is_integer()):
            yield FormProblem(f"{place}.from", one.from_, f"has to be whole, and to as well, as {one.length} is")


def _of_order(file: CampaignFile) -> Iterator[FormProblem]:
    compared = False
    for index, one in enumerate(file.rounds):
        if isinstance(one, ScaleUpRound) and not compared:
            mend = "Put a grid, list, random, halving or search before it."
            yield FormProblem(f"rounds[{index}].kind", one.kind, "has no round before it to take the best of", mend)
        compared = compared or isinstance(one, ComparingRound)


# --- limits and fixes -------------------------------------------------------------------------------------------------


def _of_limits(file: CampaignFile) -> Iterator[FormProblem]:
    limits = file.limits
    if limits.cpu_hours is None:
        yield FormProblem("limits.cpu_hours", None, "is required", "Write how many CPU hours may be spent in all.")
    gpus = any(stage.resources.gpus for stage in file.stages) or any("gpus" in varied(one) for one in file.rounds)
    if gpus and limits.gpu_hours is None:
        mend = "Write how many GPU hours may be spent in all."
        yield FormProblem("limits.gpu_hours", None, "is required where a stage has GPUs", mend)
    if len(file.rounds) > limits.rounds:
        mend = f"Write {len(file.rounds)}, or fewer rounds."
        yield FormProblem("limits.rounds", limits.rounds, f"is below the {len(file.rounds)} rounds of the file", mend)
    declared = sum(least_trials(file, further=False))
    if declared > limits.trials:
        mend = "Raise it, or vary less."
        yield FormProblem("limits.trials", limits.trials, f"is below the {declared} trials that the rounds have", mend)
    target = file.objective.target
    if file.objective.wall_clock is not None and target is not None and target <= 0:
        yield FormProblem("objective.target", target, "has to be seconds above 0 where wall_clock counts")


def _of_fix(place: str, fix: Fix, known: Mapping[str, CampaignStage]) -> Iterator[FormProblem]:
    categories = by_id()
    if fix.on not in categories:
        yield FormProblem(
            f"{place}.failure", fix.on, "is no category of a failure", f"Categories: {', '.join(categories)}."
        )
    yield from _of_stage_names(place, fix.stages, known)
    stages = list(known.values()) if fix.stages is None else [known[name] for name in fix.stages if name in known]
    for field, values in (("multiply", fix.multiply), ("change", fix.change)):
        for name, value in values.items():
            where = f"{place}.{field}.{name}"
            parameters = [stage.parameters[name] for stage in stages if name in stage.parameters]
            if not parameters:
                yield unknown_name(where, name, stages)
            elif any(one.length for one in parameters):
                yield FormProblem(where, name, "is a length", "What does less work is no fix.")
            elif field == "multiply" and any(kind_of(one.default) != "a number" for one in parameters):
                yield FormProblem(where, name, "is no number, and cannot be multiplied", "Use change.")
            elif field == "change":
                yield from of_value(where, name, value, parameters)
            elif value == 1:
                yield FormProblem(where, value, "changes nothing", "Write another factor.")
    asked = [stage.resources.memory or 0 for stage in stages]
    if fix.memory is not None and asked and fix.memory <= min(asked):
        yield FormProblem(f"{place}.memory", fix.memory, "is not above what the stages ask for", "Raise it.")


# --- the schema, for editors ------------------------------------------------------------------------------------------


def schema() -> dict[str, Any]:
    """The JSON Schema of a campaign's file. Each field is described by the text that stands below it in its class."""
    made = CampaignFile.model_json_schema()
    texts = _texts()
    for name, part in {**made["$defs"], "CampaignFile": made}.items():
        for field, one in part.get("properties", {}).items():
            one.pop("title", None)
            own = {"failure": "on", "from": "from_"}.get(field, field)
            text = texts.get((name, own)) or texts.get(("_Round", own))
            if text is not None:
                one["description"] = text
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "slurm-agent-tools campaign"}


def _texts() -> dict[tuple[str, str], str]:
    """What the texts below the fields say, by the names of the class and the field."""
    found: dict[tuple[str, str], str] = {}
    classes = [one for one in ast.parse(inspect.getsource(campaign_file)).body if isinstance(one, ast.ClassDef)]
    for one in classes:
        for stated, behind in pairwise(one.body):
            text = behind.value if isinstance(behind, ast.Expr) else None
            if isinstance(stated, ast.AnnAssign) and isinstance(text, ast.Constant):
                found[one.name, ast.unparse(stated.target)] = inspect.cleandoc(str(text.value))
    return found
