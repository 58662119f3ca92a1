"""Trials as jobs: one script for each batch, equal trials as tasks of one array, and the tables and settings for them.

The text is the same for the same trials, so that what a crash left half sent is sent as the very same. No value is
ever part of a command's text: a single trial gets them as arguments of its job, NAME=VALUE each, and the tasks of an
array from a table beside the script; the program gets each as a word of its own.
"""

from __future__ import annotations

import hashlib
import json
import math
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from datetime import date, datetime, time
from itertools import groupby
from typing import Any

import yaml

from slurm_agent_tools.backends.stages import declared
from slurm_agent_tools.campaigns.file_checks import RESERVED, kept_directives, path_problem, value_problem
from slurm_agent_tools.campaigns.file_reader import FOLDER
from slurm_agent_tools.campaigns.trial_identity import as_text, defaults, request_of
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign import Setting, Trial, TrialId, TrialRequest
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage, Parameter
from slurm_agent_tools.scripts.configs.experiment_config import parse_config
from slurm_agent_tools.scripts.directive_lines import directive_line
from slurm_agent_tools.units import format_duration, format_memory

GENERATED = "scripts/slurm/generated"

LOGS = "logs/slurm"

MOST_TASKS = 1000
"""Tasks of one array: Slurm's MaxArraySize is 1001 unless a site says otherwise, and ids begin with 1 here."""

_FROM_ARGUMENTS = 'value=("${@#*=}")'

_FROM_TABLE = "IFS=$'\\t' read -r -a value <<< \"${rows[SLURM_ARRAY_TASK_ID]}\""

_LAUNCHERS = frozenset({"srun", "mpirun", "mpiexec", "torchrun", "accelerate", "deepspeed"})


@dataclass(frozen=True, slots=True)
class Batch:
    """Trials that are sent as one job. `files`: what else is written, path -> text; `script` paths from the project.

    `task_ids`: each trial's task of the array, None where it is one trial and no array. `at_once`: the array's
    throttle. `arguments`: those of submit_job but for stage, which says how far the campaign is. `runs`: see run_key.
    `rows`: what each trial's script is told, as text: round, number, repeat and every parameter.
    """

    key: str
    trials: tuple[TrialId, ...]
    script_path: str
    script_text: str
    files: Mapping[str, str] = field(default_factory=dict)
    task_ids: tuple[int, ...] | None = None
    at_once: int | None = None
    arguments: Mapping[str, object] = field(default_factory=dict)
    runs: frozenset[str] = frozenset()
    rows: tuple[tuple[str, ...], ...] = ()

    def with_values(self, row: Sequence[str]) -> str:
        """The script as if a row's values stood in it; every line keeps its number."""
        lines = self.script_text.split("\n")
        at = next(number for number, line in enumerate(lines) if line in {_FROM_ARGUMENTS, _FROM_TABLE})
        lines[at] = f"value=({' '.join(map(shlex.quote, row))})"
        return "\n".join(lines)

    @property
    def width(self) -> int:
        """How many of its runs may be active together: what the guard counts against its limit."""
        return 1 if self.task_ids is None else min(len(self.trials), self.at_once or len(self.trials))

    @property
    def script_sha256(self) -> str:
        """By which it is known later whether it is the same."""
        return hashlib.sha256(self.script_text.encode()).hexdigest()


def needed_texts(file: CampaignFile) -> tuple[str, ...]:
    """The files of the project that `batches` is handed in its `texts`: configurations and the user's own scripts."""
    paths = [path for stage in file.stages for path in (stage.script, stage.config_file) if path is not None]
    return tuple(dict.fromkeys(paths))


def check_scripts(file: CampaignFile, texts: Mapping[str, str]) -> None:
    """Raise InputError for a directive that a stage's script must not have, also of a stage that runs much later."""
    for stage in file.stages:
        kept_directives(stage, request_of(stage, defaults(stage)), texts)


def batches(
    name: str, file: CampaignFile, trials: Sequence[Trial], at_once: int, *, texts: Mapping[str, str] | None = None
) -> list[Batch]:
    """The jobs of these trials, in their order: those of one stage, request and purpose are tasks of one array.

    Each run of a smoke round is a job of its own: the guard knows no smoke run that is an array.
    `at_once`: how many tasks of an array may run together. `texts`: path -> text of the files `needed_texts` names; of
    a script only the directives count. Raises InputError for a value that is not handed to a program, for a
    configuration that is not there or cannot be changed, and for a directive that a stage's script must not have.
    """
    ordered = sorted(trials, key=lambda trial: (*_equal(trial), trial.id))
    groups = [list(group) for _, group in groupby(ordered, key=_equal)]
    parts = [part for group in groups for part in _parted(group, file)]
    made = [_batch(name, file, part, max(at_once, 1), texts or {}) for part in parts]
    return sorted(made, key=lambda batch: batch.trials)


def _parted(group: Sequence[Trial], file: CampaignFile) -> Iterator[Sequence[Trial]]:
    most = 1 if file.is_smoke_round(group[0].id.round) else MOST_TASKS
    for at in range(0, len(group), most):
        yield group[at : at + most]


def _equal(trial: Trial) -> tuple[int, str, str, str]:
    """What trials have in common that may be tasks of one array."""
    return trial.id.round, trial.stage, trial.purpose, json.dumps(asdict(trial.request), sort_keys=True)


def _batch(name: str, file: CampaignFile, trials: Sequence[Trial], at_once: int, texts: Mapping[str, str]) -> Batch:
    stage, first = file.stage(trials[0].stage), trials[0]
    told = json.dumps([asdict(trial) for trial in trials], sort_keys=True, default=str)
    label = f"b{first.id.number}-{hashlib.sha256(told.encode()).hexdigest()[:10]}"
    stem = f"{name}-r{first.id.round}-{label}"
    script, table = f"{GENERATED}/{stem}.sh", f"{GENERATED}/{stem}.tsv"
    columns = [*RESERVED, *stage.parameters]
    rows = [_values(trial, stage) for trial in trials]
    array = len(trials) > 1
    throttle = min(at_once, len(trials)) if array else None
    key = f"{name}/r{first.id.round}/{label}"
    arguments: dict[str, object] = {"script": script, "idempotency_key": key, "run_id": key}
    if not array:
        arguments["args"] = [f"{column}={value}" for column, value in zip(columns, rows[0], strict=True)]
    if file.justification is not None:
        arguments["justification"] = file.justification
    head = _directives(f"{name}-r{first.id.round}-{stage.name}", first.request, len(trials), throttle)
    files = {table: "".join("\t".join(row) + "\n" for row in (columns, *rows))} if array else {}
    files |= _configs(name, stage, trials, texts)
    return Batch(
        key=key,
        trials=tuple(trial.id for trial in trials),
        script_path=script,
        script_text=_script(
            name, stage, [*head, *kept_directives(stage, first.request, texts)], table if array else None, first
        ),
        files=files,
        task_ids=tuple(range(1, len(trials) + 1)) if array else None,
        at_once=throttle,
        arguments=arguments,
        runs=frozenset(run_key(trial, stage) for trial in trials),
        rows=tuple(map(tuple, rows)),
    )


# --- values -----------------------------------------------------------------------------------------------------------


def _values(trial: Trial, stage: CampaignStage) -> list[str]:
    """Round, number, repeat and every parameter of a trial as text. Raises InputError for what no program is handed."""
    found = [str(trial.id.round), str(trial.id.number), str(trial.repeat)]
    for name, value in _settings(trial, stage).items():
        problem = value_problem(value)
        if problem is not None:
            raise InputError(f"{trial.id}.{name}", value, problem, hint="Correct it in the campaign's file.")
        found.append(as_text(value))
    return found


def run_key(trial: Trial, stage: CampaignStage) -> str:
    """The same for trials of a round whose jobs ask for the same and are told the same values: all but its number."""
    round_number, _, *told = _values(trial, stage)
    return json.dumps([round_number, stage.name, asdict(trial.request), told], sort_keys=True)


def _settings(trial: Trial, stage: CampaignStage) -> dict[str, Setting]:
    return {name: trial.settings.get(name, one.default) for name, one in stage.parameters.items()}


# --- the script -------------------------------------------------------------------------------------------------------


def _script(name: str, stage: CampaignStage, head: Sequence[str], table: str | None, first: Trial) -> str:
    """The script. Nothing in it but its directives and its table names the trial: its like are one configuration."""
    lengths = [*RESERVED, *(key for key, one in stage.parameters.items() if one.length)]
    lines = [
        "#!/bin/bash",
        f"# Stage {stage.name} of the campaign {name}; change {FOLDER}/{name}.yaml, not this file.",
        f"#SMOKE length: {' '.join(one for one in lengths if is_length(one))}",
        *head,
        "",
        "set -euo pipefail",
        "",
        *_reading([*RESERVED, *stage.parameters], table),
        f"export CAMPAIGN={shlex.quote(name)} CAMPAIGN_STAGE={shlex.quote(stage.name)}",
        'export CAMPAIGN_TRIAL="r${value[0]}-t${value[1]}" CAMPAIGN_REPEAT="${value[2]}"',
    ]
    if stage.config_file is not None:
        folder, suffix = f"{FOLDER}/{name}/configs", posixpath.splitext(stage.config_file)[1]
        lines.append(f'export CAMPAIGN_CONFIG="{folder}/$CAMPAIGN_TRIAL{suffix}"')
    lines += [
        f'export {one.environment}="${{value[{index}]}}"'
        for index, one in enumerate(stage.parameters.values(), start=len(RESERVED))
        if one.environment is not None
    ]
    lines += _folders(stage)
    if stage.setup:  # what it loads may read variables that are not set
        lines += ["", "set +u", *stage.setup, "set -u"]
    return "\n".join([*lines, "", _command(stage, first.request), ""])


def _reading(columns: Sequence[str], table: str | None) -> list[str]:
    told = f"# {', '.join(f'{index} {column}' for index, column in enumerate(columns))}"
    if table is None:
        return [told, _FROM_ARGUMENTS]
    return [told, f"mapfile -t rows < {table}", _FROM_TABLE]


def _folders(stage: CampaignStage) -> Iterator[str]:
    """The folders of what a run writes, as far as the file says: also those of words that hold {trial}."""
    named = [word.rpartition("=")[2] for word in stage.command or () if "{trial}" in word]
    paths = [*stage.passes.files, *(one for one in named if path_problem(one) is None)]
    paths += [stage.metrics.file] if stage.metrics and stage.metrics.file else []
    folders = dict.fromkeys(posixpath.dirname(path) for path in paths)
    if any(folders):
        yield f"mkdir -p {' '.join(_word(folder) for folder in folders if folder)}"


def _command(stage: CampaignStage, request: TrialRequest) -> str:
    words = [_word(word) for word in stage.command or ()]
    if stage.script is not None:
        words = ["python3" if stage.script.endswith(".py") else "bash", shlex.quote(stage.script)]
    elif (request.nodes or 1) > 1 and words[0] not in _LAUNCHERS:
        words.insert(0, "srun")
    for index, parameter in enumerate(stage.parameters.values(), start=len(RESERVED)):
        words += _argument(parameter, index)
    return " ".join(words)


def _argument(parameter: Parameter, index: int) -> list[str]:
    value = f'"${{value[{index}]}}"'
    if parameter.argument is None:
        return []
    return [parameter.argument + value] if parameter.argument.endswith("=") else [parameter.argument, value]


_PLACEHOLDERS = {
    "{trial}": "${CAMPAIGN_TRIAL}", "{repeat}": "${CAMPAIGN_REPEAT}", "{config}": "${CAMPAIGN_CONFIG}",
}  # fmt: skip


def _word(word: str) -> str:
    """A word of the command as the shell takes it for one, placeholders filled in when it runs."""
    parts = re.split(r"(\{trial\}|\{repeat\}|\{config\})", word)
    if len(parts) == 1:
        return shlex.quote(word)
    return '"' + "".join(_PLACEHOLDERS.get(part) or re.sub(r'([\\"$`])', r"\\\1", part) for part in parts) + '"'


def is_length(name: str) -> bool:
    """Whether a script may declare a number of this name as its length."""
    return declared(f"#SMOKE length: {name}").problem is None


# --- directives -------------------------------------------------------------------------------------------------------


def _directives(job: str, request: TrialRequest, tasks: int, throttle: int | None) -> list[str]:
    """What is asked for: memory for each node, the rest over all nodes."""
    nodes = request.nodes or 1
    options: dict[str, str | None] = {
        "job-name": job,
        "partition": request.partition,
        "nodes": str(nodes),
        "ntasks-per-node": "1",
        "cpus-per-task": None if request.cpus is None else str(math.ceil(request.cpus / nodes)),
        "gpus-per-node": str(math.ceil(request.gpus / nodes)) if request.gpus else None,
        "mem": None if request.memory_bytes is None else format_memory(request.memory_bytes),
        "time": format_duration(request.time_limit_seconds),
        "array": None if throttle is None else f"1-{tasks}" + (f"%{throttle}" if throttle < tasks else ""),
        "output": f"{LOGS}/%x-{'%j' if throttle is None else '%A_%a'}.out",
    }
    return [directive_line(option, value) for option, value in options.items() if value is not None]


# --- settings ---------------------------------------------------------------------------------------------------------


def _configs(name: str, stage: CampaignStage, trials: Sequence[Trial], texts: Mapping[str, str]) -> dict[str, str]:
    """Each trial's own settings: those of the stage with the trial's values."""
    if stage.config_file is None:
        return {}
    text = texts.get(stage.config_file)
    if text is None:
        raise InputError("config_file", stage.config_file, "is not there", hint="Write it, or correct its path.")
    suffix = posixpath.splitext(stage.config_file)[1]
    return {
        f"{FOLDER}/{name}/configs/{trial.id}{suffix}": with_values(
            text, stage.config_file, {one.config: value for one, value in _by_key(trial, stage) if one.config}
        )
        for trial in trials
    }


def _by_key(trial: Trial, stage: CampaignStage) -> Iterator[tuple[Parameter, Setting]]:
    for name, value in _settings(trial, stage).items():
        yield stage.parameters[name], value


def with_values(text: str, path: str, values: Mapping[str, Setting]) -> str:
    """The text of a configuration in which each key, `a.b.c`, has its value; what holds a new key is made.

    Raises InputError for a file that cannot be read, that is no mapping, or whose key lies inside of a single value.
    """
    config = parse_config(text.encode(), posixpath.splitext(path)[1], path)
    value = deepcopy(config.value)
    if not isinstance(value, dict):
        raise InputError("config_file", path, "is not a mapping of names to values", hint="Write `key: value` lines.")
    for key, one in values.items():
        _put(value, key, one, path)
    if config.format == "JSON":
        return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    if config.format == "TOML":
        return "\n".join(_tables(value)).lstrip("\n") + "\n"
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True)


def _put(value: dict[str, Any], key: str, one: Setting, path: str) -> None:
    *above, last = key.split(".")
    for part in above:
        value = value.setdefault(part, {})
        if not isinstance(value, dict):
            hint = f"Correct the parameter's config key, or make {part} a mapping in {path}."
            raise InputError("config", key, f"has to lie in a mapping, and {part} is none in {path}", hint=hint)
    if isinstance(value.get(last), dict | list):
        hint = "Name the key of a single value."
        raise InputError("config", key, f"is no single value in {path}", hint=hint)
    value[last] = one


# --- TOML, which Python reads and does not write ----------------------------------------------------------------------


def _tables(table: Mapping[str, Any], place: str = "") -> Iterator[str]:
    """The lines of a table: its own values first, then the tables in it."""
    inner = {key: one for key, one in table.items() if isinstance(one, dict)}
    yield from (f"{_key(key)} = {_written(one)}" for key, one in table.items() if key not in inner)
    for key, one in inner.items():
        where = f"{place}.{_key(key)}" if place else _key(key)
        yield from ("", f"[{where}]")
        yield from _tables(one, where)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key, re.ASCII) else _text(key)


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, list):
        return f"[{', '.join(_written(one) for one in value)}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_key(key)} = {_written(one)}' for key, one in value.items())} }}"
    return repr(value)  # a number; inf and nan are written so in TOML as well


def _text(value: str) -> str:
    """A basic string: JSON's escapes are TOML's, but for DEL, which JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
