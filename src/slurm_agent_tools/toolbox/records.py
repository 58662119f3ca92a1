"""save_result and compare_results: files under the project's results folder, each written once."""

from __future__ import annotations

import platform
import posixpath
from datetime import datetime

from slurm_agent_tools import configs, results
from slurm_agent_tools.catalogue import CompareResults, SaveResult
from slurm_agent_tools.diagnosis.words import outcome
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.policy.engine import format_refusal
from slurm_agent_tools.replies import (
    CompareReply,
    DecisionShown,
    Environment,
    ResultBrief,
    ResultRecord,
    SaveReply,
    SlurmJobRecord,
)
from slurm_agent_tools.slurm.client import JobView
from slurm_agent_tools.toolbox import decisions, failures, git, jobs, paths, show
from slurm_agent_tools.toolbox.desk import Caller, Desk

_FOLDER = "results"
_LIMIT = 20 * 2**20


async def save_result(desk: Desk, ask: SaveResult, caller: Caller) -> SaveReply:
    """Write one result, never over another. Raises InputError, StorageError, UnknownJob and SlurmUnreachable."""
    view = await desk.slurm.job(jobs.parse(ask.job_id), fresh=True) if ask.job_id is not None else None
    record = await _record(desk, ask, view)
    data = (record.model_dump_json(indent=2) + "\n").encode()
    if ask.dry_run:
        plan, decision = await failures.judged(desk, _path(ask, record.timestamp, 1), len(data))
        if decision.verdict != "allow":
            return _blocked(desk, decision)
        summary = f"{ask.name} would be saved; nothing was written.{against(ask, view)}{_told(record)}"
        return SaveReply(status="dry_run", summary=summary, as_of=record.timestamp, result=record, decision=decision)
    for attempt in range(1, 1000):
        path = _path(ask, record.timestamp, attempt)
        plan, decision = await failures.judged(desk, path, len(data))
        if plan.path_exists:
            continue
        await decisions.log(desk, caller, decision, "save_result", "decided", path=path, size=len(data))
        if decision.verdict != "allow":
            return _blocked(desk, decision)
        if await desk.files.write_new(plan.path or path, data, mode=0o600):
            return await _saved(desk, caller, ask, record, path, view, decision)
    raise StorageError(f"no free name for {ask.name} in {ask.output_dir}", hint="Choose another name.")


def _path(ask: SaveResult, now: datetime, attempt: int) -> str:
    return posixpath.join(ask.output_dir, results.file_name(now, ask.name, attempt))


async def _saved(
    desk: Desk,
    caller: Caller,
    ask: SaveResult,
    record: ResultRecord,
    path: str,
    view: JobView | None,
    decision: DecisionShown,
) -> SaveReply:
    await _noted(desk, ask, record, path)
    failure = await failures.keep(desk, caller, view) if view is not None and ask.status == "failed" else None
    summary = f"{ask.name} ({ask.status}) is saved in {path}." + (f" Failure record: {failure}." if failure else "")
    summary += against(ask, view) + _told(record)
    return SaveReply(
        status="saved", summary=summary, as_of=record.timestamp, file_path=path, result=record,
        failure_record=failure, decision=decision,
    )  # fmt: skip


async def _noted(desk: Desk, ask: SaveResult, record: ResultRecord, path: str) -> None:
    at = record.timestamp
    try:
        await desk.db(
            desk.store.add_result, desk.owner, path, name=ask.name, status=ask.status, job_id=ask.job_id, at=at
        )
    except StorageError as error:
        raise StorageError(f"{path} is saved, but {error.message}", hint=error.hint) from error


def against(ask: SaveResult, view: JobView | None) -> str:
    """Where Slurm says something else of the job than the caller does of the experiment."""
    if view is None:
        return ""
    if not jobs.ended(view):
        return f" But job {view.job.job_id} has not ended: Slurm says {view.job.state}."
    if (ask.status == "success") is jobs.failed(view) and ask.status != "cancelled":
        return f" But Slurm says of job {view.job.job_id}: {outcome(view.job)}."
    return ""


def _told(record: ResultRecord) -> str:
    """What a caller should know of values that were left out."""
    places = results.masked(record)
    return f" Warning: secrets were masked in {', '.join(places[:10])}; keep them out of results." if places else ""


def _blocked(desk: Desk, decision: DecisionShown) -> SaveReply:
    reason = format_refusal(decision)
    return SaveReply(
        status="blocked", summary=f"Nothing was saved: {reason}", as_of=desk.clock.now(), blocker="policy",
        reason=reason, human_action_required=decision.verdict == "approve", decision=decision,
    )  # fmt: skip


async def _record(desk: Desk, ask: SaveResult, view: JobView | None) -> ResultRecord:
    baseline = await load(desk, "baseline", ask.baseline) if ask.baseline is not None else None
    submission = await desk.db(desk.store.by_job, desk.owner, view.job.job_id.base) if view is not None else None
    return results.build(
        ask,
        config=await _config(desk, ask.config),
        baseline_record=baseline[1] if baseline is not None else None,
        environment=Environment(
            git=await git.state(desk.project),
            python_version=platform.python_version(),
            platform=platform.platform(),
            slurm_job=_slurm_job(view),
        ),
        now=desk.clock.now(),
        run_id=submission.run_id if submission is not None else None,
    )


def _slurm_job(view: JobView | None) -> SlurmJobRecord | None:
    if view is None:
        return None
    peaks = [step.max_rss_bytes for step in view.job.steps if step.max_rss_bytes is not None]
    return SlurmJobRecord(
        job=show.job(view.job), max_rss_bytes=max(peaks, default=None), requested=show.resources(view.job.resources)
    )


async def _config(desk: Desk, config: dict[str, object] | str | None) -> dict[str, object] | None:
    if not isinstance(config, str):
        return config
    real, data = await paths.read_file(desk.here, "config", config, limit=_LIMIT)
    value = configs.parse(data, posixpath.splitext(real)[1], config).value
    if not isinstance(value, dict):
        raise InputError("config", config, "does not hold a mapping", hint="Name a file with keys and values.")
    return value


# --- reading ---------------------------------------------------------------------------------------------------


async def load(desk: Desk, field: str, wanted: str) -> tuple[str, ResultRecord]:
    """A saved result by its file or by its experiment's name (the newest): (path in the project, record)."""
    if wanted.endswith(".json") or "/" in wanted:
        real, data = await paths.read_file(desk.here, field, wanted, limit=_LIMIT)
    else:
        paths.check_text(field, wanted, limit=200)
        folder = await paths.resolve(desk.here, field, _FOLDER)
        names = [name for name in await desk.files.list(folder) or [] if name.endswith(".json")]
        try:
            name = results.find(names, wanted)
        except LookupError:
            raise InputError(
                field, wanted, f"no such result in {_FOLDER}/", hint="Name a file or an experiment."
            ) from None
        real, data = await paths.read_file(desk.here, field, posixpath.join(_FOLDER, name), limit=_LIMIT)
    shown = paths.relative(desk.here, real)
    return shown, results.parse_record(data, shown)


async def compare_results(desk: Desk, ask: CompareResults) -> CompareReply:
    """Metric changes and config differences. Raises InputError and StorageError."""
    base_path, base = await load(desk, "baseline", ask.baseline)
    target_path, target = await load(desk, "target", ask.target)
    changes, config_diff = results.compare(base, target, metrics_only=ask.metrics_only)
    return CompareReply(
        status="ok",
        summary=f"{len(changes)} metrics compared: {target.experiment_name} against {base.experiment_name}.",
        as_of=desk.clock.now(),
        baseline=_brief(base_path, base),
        target=_brief(target_path, target),
        metrics=changes,
        config_diff=config_diff,
    )


async def brief(desk: Desk, limit: int = 10) -> list[ResultBrief]:
    """The newest saved results."""
    folder = await paths.resolve(desk.here, "results folder", _FOLDER)
    names = sorted((name for name in await desk.files.list(folder) or [] if name.endswith(".json")), reverse=True)
    found = []
    for name in names[:limit]:
        path = posixpath.join(_FOLDER, name)
        try:
            found.append(_brief(*await load(desk, "results", path)))
        except (InputError, StorageError):  # a file of somebody else's must not hide the results
            found.append(ResultBrief(file_path=path, experiment_name="", status="unreadable", timestamp=""))
    return found


def _brief(path: str, record: ResultRecord) -> ResultBrief:
    return ResultBrief(
        file_path=path,
        experiment_name=record.experiment_name,
        status=record.status,
        timestamp=record.timestamp.isoformat(),
    )
