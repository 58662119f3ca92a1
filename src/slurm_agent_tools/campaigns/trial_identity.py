"""What a run is: its settings, its configuration (arm), its identity, and what it asks for. Pure.

What a stage asks of Slurm is no part of its identity.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from slurm_agent_tools.models.campaign import Setting, Trial, TrialRequest
from slurm_agent_tools.models.campaign_file import RESOURCES, CampaignFile, CampaignStage
from slurm_agent_tools.units import parse_memory


def defaults(stage: CampaignStage) -> dict[str, Setting]:
    """Every parameter of the stage with its default."""
    return {name: parameter.default for name, parameter in stage.parameters.items()}


def varies(stage: CampaignStage, names: Iterable[str]) -> list[str]:
    """Those of the names that say something to this stage: its parameters, and what it can ask for."""
    return [name for name in names if name in stage.parameters or (name in RESOURCES and _asks(stage, name))]


def lengths(stage: CampaignStage, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The settings that only say how much is done."""
    return {name: value for name, value in settings.items() if _is_length(stage, name)}


def names_trial(file: CampaignFile, job: str) -> bool:
    """Whether a plan's job is named after settings of trials, each as NAME=VALUE, a stage, or both."""
    known = {*RESOURCES, *(name for stage in file.stages for name in stage.parameters)}
    stages = {stage.name for stage in file.stages}
    words = job.split()
    return bool(words) and all(word in stages or (word.partition("=")[0] in known and "=" in word) for word in words)


def plan_words(job: str) -> frozenset[str]:
    """The name of a plan's job as it is compared: 0.1 and 1e-1 are the same."""
    return frozenset(_plan_word(*word.partition("=")) for word in job.split())


def plan_place(trial: Trial, jobs: Sequence[frozenset[str]]) -> int:
    """Which job of a plan a trial is: the first whose words all say what it has; behind all where none does."""
    has = {trial.stage, *(_plan_word(name, "=", as_text(value)) for name, value in trial.settings.items())}
    return next((place for place, words in enumerate(jobs) if words <= has), len(jobs))


def _plan_word(name: str, equals: str, value: str) -> str:
    try:
        return f"{name}{equals}{float(value)!r}"
    except ValueError:
        return f"{name}{equals}{value}"


def as_text(value: Setting) -> str:
    """A value as a program gets it: true and false in small letters, numbers as Python writes them."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def arm_of(stage: CampaignStage, settings: Mapping[str, Setting]) -> str:
    """12 hex digits that are the same for all runs of one configuration, whatever their length."""
    return _digest(
        "arm",
        stage.name,
        {name: value for name, value in _telling(stage, settings).items() if not _is_length(stage, name)},
    )[:12]


def identity_of(stage: CampaignStage, settings: Mapping[str, Setting], repeat: int, code: str) -> str:
    """16 hex digits that are the same for all that runs the same: code, configuration, length, number of the repeat.

    A memory limit or a time limit is no part of it, unless memory is what was varied. CPUs, GPUs and nodes are: what
    runs sees them, and its speed depends on them.
    """
    return _digest("run", stage.name, _telling(stage, settings), repeat, code)[:16]


def request_of(
    stage: CampaignStage, settings: Mapping[str, Setting], *, smoke: bool = False, like: TrialRequest | None = None
) -> TrialRequest:
    """What a run asks for. `like`: the request with which this configuration was mended; it asks for no less."""
    asked = stage.resources
    varied = _resources(stage, settings)
    memory = _memory(varied["memory"]) if "memory" in varied else asked.memory
    time_limit = stage.smoke.time_limit if smoke and stage.smoke.time_limit is not None else asked.time_limit
    if like is not None:
        time_limit = max(time_limit, like.time_limit_seconds)
        if memory is not None and like.memory_bytes is not None:
            memory = max(memory, like.memory_bytes)
    return TrialRequest(
        cpus=_count(varied.get("cpus"), asked.cpus),
        memory_bytes=memory,
        gpus=_count(varied.get("gpus"), asked.gpus) or 0,
        nodes=_count(varied.get("nodes"), asked.nodes),
        time_limit_seconds=time_limit,
        partition=asked.partition,
    )


def ways_told(stage: CampaignStage) -> dict[str, list[str | None]]:
    """How the stage is told each parameter: its option, its variable or its key; two of them are None."""
    return {name: [one.argument, one.environment, one.config] for name, one in stage.parameters.items()}


def measures(stage: CampaignStage) -> dict[str, object]:
    """Where the metrics of a run come from, and what must hold for it to have passed."""
    source = None if stage.metrics is None else stage.metrics.model_dump(mode="json")
    return {"metrics": source, "passes": stage.passes.model_dump(mode="json")}


def _asks(stage: CampaignStage, resource: str) -> bool:
    return resource != "gpus" or stage.kind == "gpu"


def _is_length(stage: CampaignStage, name: str) -> bool:
    return name in stage.parameters and stage.parameters[name].length


def _telling(stage: CampaignStage, settings: Mapping[str, Setting]) -> dict[str, Setting | None]:
    """The settings, with cpus, gpus and nodes as they come to be; memory only where it is another than the stage's."""
    asked, varied = stage.resources, _resources(stage, settings)
    telling: dict[str, Setting | None] = {name: value for name, value in settings.items() if name not in varied}
    needs: dict[str, Setting | None] = {
        "cpus": _count(varied.get("cpus"), asked.cpus),
        "gpus": _count(varied.get("gpus"), asked.gpus),
        "nodes": _count(varied.get("nodes"), asked.nodes),
    }
    if "memory" in varied and _memory(varied["memory"]) != asked.memory:
        needs["memory"] = _memory(varied["memory"])
    return {**telling, **{f"asks {name}": value for name, value in needs.items()}}


def _resources(stage: CampaignStage, settings: Mapping[str, Setting]) -> dict[str, Setting]:
    """The settings that are asked of Slurm; a parameter of the stage that has such a name is none of them."""
    return {name: settings[name] for name in RESOURCES if name in settings and name not in stage.parameters}


def _count(value: Setting | None, otherwise: int | None) -> int | None:
    return otherwise if value is None else int(value)


def _memory(value: Setting) -> int:
    return parse_memory(value) if isinstance(value, str) else int(value)


def _digest(*parts: object) -> str:
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
