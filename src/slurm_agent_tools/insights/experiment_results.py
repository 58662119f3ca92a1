"""Experiment results as records: building, naming, finding and comparing them. Pure; the toolbox reads and writes."""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, time

from pydantic import ValidationError

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.job import ACTIVE_STATES
from slurm_agent_tools.models.result import Environment, MetricChange, ResultRecord, SaveResult
from slurm_agent_tools.models.shapes import ResultBrief
from slurm_agent_tools.text.sanitize import MASK, mask, mask_settings, safe_name
from slurm_agent_tools.units import how_many

Diff = dict[str, dict[str, object]]

_STAMP = "%Y-%m-%d_%H-%M-%S"

_TRIAL = re.compile(r"[\d_-]{19}_(?P<campaign>.+)-r\d+-t\d+(?:-\d+)?\.json", re.ASCII)

_FILE = re.compile(r"(?P<stamp>\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d)_(?P<name>.+)\.json", re.ASCII)

_OF_TASK = re.compile(r"task_\d+\.", re.ASCII)

_DEPTH, _NAME, _NAMED = 50, 100, 5

# --- building ------------------------------------------------------------------------------------------------


def build_result(
    ask: SaveResult,
    *,
    config: dict[str, object] | None,
    baseline_record: ResultRecord | None,
    environment: Environment,
    now: datetime,
    run_id: str | None,
) -> ResultRecord:
    """The record to save. Raises InputError naming `name`, `notes`, `metrics.KEY` or `config.KEY`."""
    check_name(ask.name)
    metrics = {name: _plain(value, f"metrics.{name}", numbers=True) for name, value in (ask.metrics or {}).items()}
    plain = None if config is None else {str(key): _plain(value, f"config.{key}") for key, value in config.items()}
    plain, metrics = _without_secrets(plain), mask_settings(metrics)[0]
    before = _without_secrets(baseline_record.config) if baseline_record is not None else None
    return ResultRecord(
        experiment_name=ask.name,
        timestamp=now,
        status=ask.status,
        run_id=run_id,
        config=plain,
        config_diff=diff(before, plain) if before is not None and plain is not None else None,
        baseline_experiment=baseline_record.experiment_name if baseline_record is not None else None,
        metrics=metrics,
        environment=environment,
        notes=None if ask.notes is None else mask(_text(ask.notes, "notes")),
    )


def _without_secrets(config: dict[str, object] | None) -> dict[str, object] | None:
    return None if config is None else mask_settings(config)[0]


def masked(record: ResultRecord) -> list[str]:
    """The places of a record, `config.db.password`, where a secret was masked."""
    held = {"config": record.config, "metrics": record.metrics, "notes": record.notes}
    return [place for place, value in _flat(held) if isinstance(value, str) and MASK in value]


def limits_told(record: ResultRecord) -> str:
    """What a caller should know of values that were left out, and of what could not be found out."""
    places, git = masked(record), record.environment.git
    unknown = git.commit is not None and git.dirty is None
    told = f" Warning: secrets were masked in {', '.join(places[:10])}; keep them out of results." if places else ""
    return f"{told} Whether tracked files differ from the commit is not known." if unknown else told


def _text(value: str, field: str) -> str:
    if any(0xD800 <= ord(sign) <= 0xDFFF for sign in value):
        raise InputError(field, value, "is not valid Unicode", hint="Write it as UTF-8 text.")
    return value


def _plain(value: object, field: str, *, numbers: bool = False, depth: int = 0) -> object:
    """The value in JSON's types: dates as ISO text, keys as text.

    JSON has no NaN and no infinity. In metrics they are refused (`numbers`), because a null would read as "not
    measured"; in a configuration they stay as text, because the file says them.
    """
    if depth > _DEPTH:
        raise InputError(field, "...", f"is nested deeper than {_DEPTH} levels", hint="Flatten it.")
    if isinstance(value, float) and not math.isfinite(value):
        if numbers:
            raise InputError(field, str(value), "is not a finite number", hint='Leave it out, or give the text "NaN".')
        return str(value)
    if isinstance(value, str):
        return _text(value, field)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Mapping):
        inner = ((str(key), item) for key, item in value.items())
        return {key: _plain(item, f"{field}.{key}", numbers=numbers, depth=depth + 1) for key, item in inner}
    if isinstance(value, list | tuple | set | frozenset):
        items = enumerate(value)
        return [_plain(item, f"{field}[{index}]", numbers=numbers, depth=depth + 1) for index, item in items]
    raise InputError(field, type(value).__name__, "has no form in JSON", hint="Use text, numbers, lists and mappings.")


# --- names ---------------------------------------------------------------------------------------------------


def check_name(name: str) -> str:
    """The experiment's name in its file's name. Raises InputError naming `name`."""
    if any(not sign.isprintable() for sign in name):
        raise InputError(
            "name", name, "contains a character that cannot be printed", hint="Use one line of plain text."
        )
    if name.startswith(("/", "\\")) or any(part.strip() in {".", ".."} for part in re.split(r"[/\\]", name)):
        raise InputError("name", name, "is a path that leaves its folder", hint="Use letters, digits, dots, - and _.")
    if len(name) > _NAME:
        raise InputError("name", name, f"is longer than {_NAME} characters", hint="Shorten it.")
    if not re.search(r"[A-Za-z0-9_]", name):
        raise InputError("name", name, "holds no letter (a-z), digit or _", hint="Use letters, digits, dots, - and _.")
    return safe_name(name, limit=_NAME)


def file_name(now: datetime, name: str, attempt: int) -> str:
    """YYYY-MM-DD_HH-MM-SS_NAME.json, with -2, -3 ... behind the name from the second attempt on."""
    again = f"-{attempt}" if attempt > 1 else ""
    return f"{now.strftime(_STAMP)}_{check_name(name)}{again}.json"


def path_of(ask: SaveResult, now: datetime, attempt: int) -> str:
    """Where it is saved in the project, by the time and the number of the attempt."""
    return posixpath.join(ask.output_dir, file_name(now, ask.name, attempt))


def find_result(names: Sequence[str], wanted: str) -> str:
    """The newest of the files that holds the experiment `wanted`. Raises LookupError when there is none.

    `T_a-2.json` is the second save of `a` only where `T_a.json` of the same second is there too.
    """
    stem, known = check_name(wanted), set(names)
    found = [
        (stamp, attempt, name)
        for name in names
        if stem in name
        for stamp, attempt in _saves(name, stem)
        if attempt == 1 or f"{stamp}_{stem}.json" in known
    ]
    if not found:
        raise LookupError(wanted)
    return max(found)[2]


def newest(names: Sequence[str], wanted: Collection[str]) -> dict[str, str]:
    """The newest of the files that holds each of these experiments, by the experiment; only of those that have one."""
    parts: dict[str, list[str]] = {}
    for name in names:
        match = _FILE.fullmatch(name)
        stem = match["name"] if match else ""
        for key in {stem, re.sub(r"-\d+$", "", stem)}:
            parts.setdefault(key, []).append(name)
    found = {}
    for one in wanted:
        with suppress(LookupError):
            found[one] = find_result(parts.get(check_name(one), ()), one)
    return found


def saved_before(names: Sequence[str], path: str, wanted: str) -> str:
    """A sentence on the newest other result of that name beside the file `path`; empty where there is none."""
    folder, own = posixpath.split(path)
    with suppress(LookupError):
        earlier = posixpath.join(folder, find_result([name for name in names if name != own], wanted))
        return f" An earlier result of that name stays in {earlier}: give compare_results the files to tell them apart."
    return ""


def choice(names: Sequence[str], wanted: str) -> str:
    """The hint where no result has a name: those that are saved, the nearest first and then the newest, few of many."""
    from difflib import get_close_matches  # noqa: PLC0415 - for an error alone

    saved = list(dict.fromkeys(_experiments(names)))
    if not saved:
        return "Name a file or an experiment: none is saved there yet, and save_result saves one."
    near = get_close_matches(wanted, saved, n=_NAMED)
    return f"Name a file or an experiment: {_few([*near, *(name for name in saved if name not in near)])}."


def _experiments(names: Collection[str]) -> Iterator[str]:
    """The experiments of these files, the newest first; a file that was named by somebody else is none."""
    for name in sorted(names, reverse=True):
        match = _FILE.fullmatch(name)
        if match is not None and match["name"] == safe_name(match["name"], limit=_NAME):
            first = re.sub(r"-(?:[2-9]|[1-9]\d+)$", "", match["name"])
            yield first if f"{match['stamp']}_{first}.json" in names else match["name"]


def without_trials(names: Collection[str]) -> list[tuple[str, int | None]]:
    """The newest first, with None; of the trials of a campaign, which are many, the newest alone, with their number."""
    trials = {name: match["campaign"] for name in names if (match := _TRIAL.fullmatch(name))}
    left, found = Counter(trials.values()), list[tuple[str, int | None]]()
    for name in sorted(names, reverse=True):
        if name not in trials:
            found.append((name, None))
        elif many := left.pop(trials[name], None):
            found.append((name, many if many > 1 else None))
    return found


def _few(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def _saves(name: str, stem: str) -> Iterator[tuple[str, int]]:
    match = _FILE.fullmatch(name)
    attempt = re.fullmatch(re.escape(stem) + r"(?:-([2-9]|[1-9]\d+))?", match["name"]) if match else None
    if match and attempt:
        yield match["stamp"], int(attempt[1] or 1)


# --- reading and comparing -----------------------------------------------------------------------------------


def parse_record(data: bytes, path: str) -> ResultRecord:
    """A saved result. Raises InputError naming the file and what does not fit."""
    try:
        return ResultRecord.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        hint = "Name a file that save_result wrote."
        raise InputError("result", path, f"is not a saved result: {place}: {first['msg']}", hint=hint) from error


def diff(baseline: Mapping[str, object], target: Mapping[str, object]) -> Diff:
    """Keys (`a.b[0]`) whose values differ, as {baseline, target}; None stands for a key that is not there."""
    before, after = dict(_flat(baseline)), dict(_flat(target))
    keys = [*before, *(key for key in after if key not in before)]
    return {
        key: {"baseline": before.get(key), "target": after.get(key)}
        for key in keys
        if not _same(before.get(key), after.get(key))
    }


def _same(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _flat(value: object, place: str = "") -> Iterator[tuple[str, object]]:
    """Every value that is not a mapping or list, with its place; empty ones stand for themselves."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _flat(item, f"{place}.{key}" if place else str(key))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _flat(item, f"{place}[{index}]")
    elif place:
        yield place, value


def compare_metrics(
    baseline: ResultRecord, target: ResultRecord, *, metrics_only: bool
) -> tuple[dict[str, MetricChange], Diff | None]:
    """(change of every metric, differences of the configurations); None where one of them has no configuration."""
    before, after = dict(_flat(baseline.metrics)), dict(_flat(target.metrics))
    names = [*before, *(name for name in after if name not in before)]
    changes = {name: _change(before.get(name), after.get(name)) for name in names}
    if metrics_only or baseline.config is None or target.config is None:
        return changes, None
    return changes, diff(baseline.config, target.config)


def told(changes: Mapping[str, MetricChange], baseline: str, target: str) -> str:
    """How much of two results could be compared, as a sentence."""
    both = [name for name, change in changes.items() if change.baseline is not None and change.target is not None]
    alone = sorted(changes.keys() - set(both))
    single = f" In one of them only: {_few(alone)}." if alone else ""
    if both:
        return f"{how_many(len(both), 'metric')} compared: {target} against {baseline}.{single}"
    if not changes:
        step = "Save them with metrics, or with the job_id of a job whose log tells figures."
        return f"Nothing to compare: neither {target} nor {baseline} has metrics. {step}"
    step = "Save both with metrics of the same names."
    if any(_OF_TASK.match(name) for name in alone):
        step += " Those of task_N are of a whole array: one task is saved by its own job_id, such as 28_1."
    return f"Nothing to compare: no metric is in both {target} and {baseline}.{single} {step}"


def doubt(record: ResultRecord) -> str | None:
    """Why a saved result is no normal one, by its file alone: how it was saved, and what Slurm said of its job then."""
    if record.status != "success":
        return f"it was saved as {record.status}"
    job = None if record.environment.slurm_job is None else record.environment.slurm_job.job
    if job is None or job.state == "UNKNOWN":
        return None
    if job.state in ACTIVE_STATES:
        return f"job {job.job_id} had not ended when it was saved: it was {job.state}"
    told = f"{job.state} (exit code {job.exit_code})" if job.exit_code else job.state
    if job.derived_exit_code or job.derived_signal:
        told += ", and a step of it failed"
    return None if told == "COMPLETED" else f"it was saved as success, but Slurm says of job {job.job_id}: {told}"


def brief(path: str, record: ResultRecord, trials: int | None = None) -> ResultBrief:
    """A saved result in a list of them; the newest of so many `trials` of its campaign."""
    return ResultBrief(
        file_path=path,
        experiment_name=record.experiment_name,
        status=record.status,
        timestamp=record.timestamp.isoformat(),
        doubt=doubt(record),
        trials=trials,
    )


def not_normal(records: Sequence[ResultRecord]) -> str:
    """A sentence that names each result of these that is no normal one, with the reason; empty where all are."""
    named = {f"{record.experiment_name} ({why})": None for record in records if (why := doubt(record)) is not None}
    return f"Not to be ranked like the others: {'; '.join(named)}. " if named else ""


def from_log(found: Mapping[str, Mapping[str, float]], files: str) -> tuple[dict[str, object], str]:
    """Metrics of a job's log for a result, and where they come from. `found`: by array task, or all under `""`."""
    parts = {part: dict(figures) for part, figures in found.items() if figures}
    if not parts:
        return {}, f" No metrics were given, and the log ({files}) tells none."
    note = f" No metrics were given: these are the last figures in the log ({files}) of names that analyze_log knows,"
    note += " such as loss, accuracy and rmse; give metrics for others."
    if "" in parts:
        return dict(parts[""]), note
    return {f"task_{part}": parts[part] for part in sorted(parts, key=int)}, note


def _change(before: object, after: object) -> MetricChange:
    old, new = _number(before), _number(after)
    change = None if old is None or new is None else _shown(new - old)
    percent = None if old is None or new is None or not old else _shown(100 * (new - old) / abs(old))
    return MetricChange(baseline=_scalar(before), target=_scalar(after), change=change, percent=percent)


def _scalar(value: object) -> str | float | bool | None:
    """A value as it is shown; an empty list or mapping is its text."""
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return _finite(float(value))
    except OverflowError:
        return None


def _shown(value: float) -> float | None:
    """A figure that was calculated, to six digits: the others are what floating point leaves."""
    return _finite(float(f"{value:.6g}"))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
