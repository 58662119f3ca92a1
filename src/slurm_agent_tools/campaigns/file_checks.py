"""What stages and values of a campaign's file must hold beyond its form: values, paths and scripts that are safe."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from slurm_agent_tools.campaigns.trial_metrics import log_pattern
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign import Setting, TrialRequest
from slurm_agent_tools.models.campaign_file import RESOURCES, CampaignStage, Parameter
from slurm_agent_tools.models.sbatch_options import EARLY
from slurm_agent_tools.scripts.configs.form_problems import FormProblem
from slurm_agent_tools.scripts.directive_lines import directive_line, read_directives
from slurm_agent_tools.units import parse_memory

_LONGEST = 200
"""Characters of one value."""

RESERVED = ("campaign_round", "campaign_trial", "campaign_repeat")
"""Words that each job gets besides its parameters."""

_SCRIPTS = frozenset({"", ".sh", ".bash", ".sbatch", ".slurm", ".job", ".py"})
"""Endings of scripts that bash or Python reads."""

_FORMATS = (".yaml", ".yml", ".json", ".toml")

_NO_NUMBER = re.compile(r"[-+]?[0-9][0-9_]*\.?[0-9]*[eE][-+]?[0-9]+", re.ASCII)
"""What people mean as a number and YAML reads as text."""

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", re.ASCII)

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]*)\}")

_OF_SYSTEM = re.compile(
    r"PATH|HOME|USER|SHELL|IFS|ENV|BASH_.*|LD_.*|DYLD_.*|PYTHON(?:PATH|HOME|STARTUP)|SLURM_.*|SBATCH_.*|CUDA_VISIBLE_DEVICES"
    r"|ROCR_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|CAMPAIGN.*"
)
"""Variables that decide where and how a job runs: no parameter is handed over in them."""


# --- values -----------------------------------------------------------------------------------------------------------


def value_problem(value: Setting) -> str | None:
    """Why a value is not handed to a program; None where it is."""
    if isinstance(value, str):
        return _text_problem(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "is not a finite number"
    return "has more than 18 digits" if abs(value) >= 10**18 and isinstance(value, int) else None


def _text_problem(value: str) -> str | None:
    if not value:
        return "is empty"
    if not value.isprintable() or value != value.strip():
        return "has a character that cannot be printed, or a blank at its begin or end"
    if len(value) > _LONGEST:
        return f"has more than {_LONGEST} characters"
    if value.startswith("-") and not _NUMBER.fullmatch(value):
        return "begins with a dash, as an option does"
    return f"is text to YAML, not a number: write {float(value)!r}" if _NO_NUMBER.fullmatch(value) else None


def resource_problem(name: str, value: Setting) -> str | None:
    """Why a value is none of a resource; None where it is."""
    if name == "memory":
        try:
            fine = isinstance(value, str) and parse_memory(value) > 0
        except ValueError:
            fine = False
        return None if fine else 'has to be memory as text with its unit, such as "8G"'
    least = 0 if name == "gpus" else 1
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= least
    return None if whole else f"has to be a whole number from {least} on"


def kind_of(value: Setting) -> str:
    """What kind of value it is, in words."""
    return "true or false" if isinstance(value, bool) else "a number" if isinstance(value, int | float) else "text"


def of_value(place: str, name: str, value: Setting, parameters: Sequence[Parameter]) -> Iterator[FormProblem]:
    """What is wrong with a value of a parameter, which several stages may have, or of a resource."""
    what = value_problem(value) if parameters else resource_problem(name, value)
    for parameter in parameters:
        if what is None and kind_of(value) != kind_of(parameter.default):
            what = f"has to be {kind_of(parameter.default)}, as the default of {name} is"
        if what is None and parameter.length and not _is_length(value):
            what = "is a length, and has to be a number above 0"
    if what is not None:
        yield FormProblem(place, value, what)


def _is_length(value: Setting) -> bool:
    return not isinstance(value, bool | str) and value > 0


def twice(place: str, values: Sequence[object], behind: str = "") -> Iterator[FormProblem]:
    """Each value that stands in a list before."""
    seen = set[str]()
    for index, value in enumerate(values):
        shown = repr(value)
        if shown in seen:
            yield FormProblem(f"{place}[{index}]{behind}", value, "stands there twice", "Keep one of them.")
        seen.add(shown)


def unknown_name(place: str, name: str, stages: Iterable[CampaignStage]) -> FormProblem:
    """A name that is neither a parameter of these stages nor a resource."""
    has = sorted({one for stage in stages for one in stage.parameters})
    mend = f"Parameters: {', '.join(has) or 'none'}; resources: {', '.join(RESOURCES)}."
    return FormProblem(place, name, "is no parameter of the stages that take part, and no resource", mend)


def of_change(place: str, name: str, value: Setting, stages: Sequence[CampaignStage]) -> Iterator[FormProblem]:
    """What is wrong with another length."""
    parameters = [stage.parameters[name] for stage in stages if name in stage.parameters]
    if not parameters:
        yield unknown_name(place, name, stages)
    elif not all(one.length for one in parameters):
        mend = f"Only lengths change here; write length: true at {name} where it only says how much is done."
        yield FormProblem(place, name, "is no length", mend)
    else:
        yield from of_value(place, name, value, parameters)


# --- stages -----------------------------------------------------------------------------------------------------------


def of_stage(place: str, stage: CampaignStage) -> Iterator[FormProblem]:
    """All that is wrong with a stage."""
    yield from _of_kind(place, stage)
    yield from _of_paths(place, stage)
    yield from _of_words(place, stage)
    ways = Counter(
        way for one in stage.parameters.values() for way in (one.argument, one.environment, one.config) if way
    )
    for name, parameter in stage.parameters.items():
        yield from _of_parameter(f"{place}.parameters.{name}", name, parameter, stage, ways)
    for name, value in stage.smoke.change.items():
        yield from of_change(f"{place}.smoke.change.{name}", name, value, [stage])
    limit = stage.smoke.time_limit
    if limit is not None and limit > stage.resources.time_limit:
        yield FormProblem(f"{place}.smoke.time_limit", limit, "is above the stage's own time limit", "Shorten it.")


def _of_kind(place: str, stage: CampaignStage) -> Iterator[FormProblem]:
    gpus = stage.resources.gpus
    if stage.kind == "gpu" and not gpus:
        yield FormProblem(f"{place}.resources.gpus", gpus, "has to be 1 or more in a stage of kind gpu", "State them.")
    if stage.kind == "cpu" and gpus:
        yield FormProblem(
            f"{place}.resources.gpus", gpus, "must not be stated in a stage of kind cpu", "Or: kind: gpu."
        )
    if len(stage.parameters) > 50:
        yield FormProblem(f"{place}.parameters", len(stage.parameters), "are more than 50", "Keep what is varied.")


def _of_parameter(
    place: str, name: str, parameter: Parameter, stage: CampaignStage, ways: Mapping[str, int]
) -> Iterator[FormProblem]:
    if name in RESERVED:
        yield FormProblem(place, name, "is what the campaign calls its own", "Give the parameter another name.")
    if name in RESOURCES:
        yield FormProblem(place, name, "is the name of a resource", "Give the parameter another name.")
    for way in ("argument", "environment", "config"):
        stated = getattr(parameter, way)
        if stated and ways[stated] > 1:
            yield FormProblem(f"{place}.{way}", stated, "is that of another parameter as well", "Each has its own.")
    if parameter.environment and _OF_SYSTEM.fullmatch(parameter.environment):
        mend = "Use an argument, or a variable of the program's own."
        yield FormProblem(f"{place}.environment", parameter.environment, "decides how the job runs", mend)
    if parameter.config and not stage.config_file:
        yield FormProblem(f"{place}.config", parameter.config, "needs the stage's config_file", "Name it there.")
    if parameter.config and any(one.startswith(f"{parameter.config}.") for one in ways):
        yield FormProblem(
            f"{place}.config", parameter.config, "holds the key of another parameter", "Name single values."
        )
    yield from of_value(f"{place}.default", name, parameter.default, [parameter])


def path_problem(path: str) -> str | None:
    """Why a path is none of a file inside the project; None where it is."""
    if path.startswith(("/", "~", "-")) or ".." in PurePosixPath(path).parts:
        return "has to be a path inside the project, without a leading / and without .."
    if re.fullmatch(r"[\w./@+={}-]+", path, re.ASCII) is None:
        return "has to be made of letters, digits and . _ - / @ + ="
    return None


def _of_paths(place: str, stage: CampaignStage) -> Iterator[FormProblem]:
    named: list[tuple[str, str | None, tuple[str, ...]]] = [
        ("script", stage.script, ()),
        ("config_file", stage.config_file, ()),
        ("metrics.file", stage.metrics.file if stage.metrics else None, ("trial",)),
        *((f"reads[{index}]", path, ()) for index, path in enumerate(stage.reads)),
        *((f"passes.files[{index}]", path, ("trial",)) for index, path in enumerate(stage.passes.files)),
    ]
    for field, path, placeholders in named:
        if path is not None:
            what = path_problem(path) or _unknown_placeholder(path, placeholders)
            if what is not None:
                yield FormProblem(f"{place}.{field}", path, what)
    if stage.script is not None and PurePosixPath(stage.script).suffix not in _SCRIPTS:
        mend = "Write command: with the program that reads it, and the file."
        yield FormProblem(f"{place}.script", stage.script, "is neither a shell script nor a Python program", mend)
    if stage.config_file and not stage.config_file.lower().endswith(_FORMATS):
        yield FormProblem(f"{place}.config_file", stage.config_file, f"has to end with {', '.join(_FORMATS)}")
    if stage.metrics and stage.metrics.file and not stage.metrics.file.endswith((".json", ".csv")):
        yield FormProblem(f"{place}.metrics.file", stage.metrics.file, "has to end with .json or .csv")
    elif stage.metrics and stage.metrics.file and "{trial}" not in stage.metrics.file:
        mend = "Each run writes a file of its own: its command gets {trial}, a script the variable CAMPAIGN_TRIAL."
        yield FormProblem(f"{place}.metrics.file", stage.metrics.file, "needs {trial} in it", mend)


def _unknown_placeholder(text: str, known: Sequence[str]) -> str | None:
    other = next((name for name in _PLACEHOLDER.findall(text) if name not in known), None)
    if other is None:
        return None
    has = " and ".join(f"{{{name}}}" for name in known) or "none is"
    return f"has the placeholder {{{other}}}: {has} known here"


def _of_words(place: str, stage: CampaignStage) -> Iterator[FormProblem]:
    """What is wrong with the command's words and the patterns."""
    words = stage.command or ()
    if stage.command is not None and not words:
        yield FormProblem(f"{place}.command", None, "is empty", "Write its words as a list.")
    for index, word in enumerate(words):
        what = _unknown_placeholder(word, ("trial", "repeat", "config"))
        if index == 0 and re.fullmatch(r"[\w./+][\w./@+-]*", word, re.ASCII) is None:
            what = "is no name or path of a program"
        if what is not None:
            yield FormProblem(f"{place}.command[{index}]", word, what)
    wants = any("{config}" in word for word in words)
    if wants and stage.config_file is None:
        yield FormProblem(f"{place}.command", "{config}", "needs the stage's config_file", "Name it there.")
    if stage.config_file is not None and stage.command is not None and not wants:
        yield FormProblem(f"{place}.config_file", stage.config_file, "is not in the command", "Write {config} there.")
    for name, pattern in ((stage.metrics and stage.metrics.pattern) or {}).items():
        what = pattern_problem(pattern)
        if what is not None:
            yield FormProblem(f"{place}.metrics.pattern.{name}", pattern, what)


def pattern_problem(pattern: str) -> str | None:
    """Why a pattern cannot be used for a metric; None where it can."""
    try:
        log_pattern(pattern)
    except ValueError as error:
        return str(error)
    return None


# --- the lines of a script -------------------------------------------------------------------------------------------


_STATED_WORDS = """
array chdir cpus-per-gpu cpus-per-task dependency error gpus gpus-per-node gpus-per-task gres hold job-name mem
mem-per-cpu mem-per-gpu nodes ntasks ntasks-per-node output requeue test-only time time-min wait
"""

_STATED = frozenset(_STATED_WORDS.split()) | EARLY
"""Options that the campaign states, or that its jobs do not have: those of a stage's script do not count."""

_KEPT_WORDS = """
account acctg-freq begin comment constraint contiguous cpu-freq deadline distribution exclude export gpu-bind gres-flags
input kill-on-invalid-dep licenses mail-type mail-user mcs-label mem-bind nice no-kill no-requeue nodelist open-mode
oversubscribe partition prefer priority profile propagate qos reservation signal switches tres-bind wait-all-nodes wckey
"""

_KEPT = frozenset(_KEPT_WORDS.split())
"""Options that leave the CPUs, GPUs, memory and nodes of a job as its trial asks for them: whatever else sbatch knows,
now or in a later version, may make a job larger than what is counted against the limits."""


def kept_directives(stage: CampaignStage, request: TrialRequest, texts: Mapping[str, str]) -> list[str]:
    """The lines of the stage's script that its jobs keep. `texts`: see `batches`.

    What the campaign states itself is left out. Raises InputError where the script asks for more than that.
    """
    text = texts.get(stage.script or "")
    if text is None:
        return []
    found = read_directives(text.encode(), stage.script or "").directives
    unknown = list(dict.fromkeys(f"--{one.option}" for one in found if one.option not in _KEPT | _STATED))
    if unknown:
        raise InputError(
            f"stages.{stage.name}.script",
            stage.script,
            f"has #SBATCH lines that no limit of the campaign counts: {', '.join(unknown)}",
            hint="Take them out; say what a job needs in the stage's resources.",
        )
    stated = _STATED | ({"partition"} if request.partition is not None else set())
    return [directive_line(one.option, one.value) for one in found if one.option not in stated]
