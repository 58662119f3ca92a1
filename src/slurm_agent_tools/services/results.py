"""save_result and compare_results: files under the project's results folder, each written once."""

from __future__ import annotations

import platform
import posixpath
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio.to_thread

from slurm_agent_tools.diagnosis.last_error import success_in_doubt
from slurm_agent_tools.diagnosis.phrases import outcome
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.insights import experiment_results
from slurm_agent_tools.models.decision import Decision, decision_shown
from slurm_agent_tools.models.job import JobView
from slurm_agent_tools.models.result import (
    ComparedRun,
    CompareReply,
    CompareResults,
    Environment,
    GitState,
    ResultRecord,
    SaveReply,
    SaveResult,
    SlurmJobRecord,
)
from slurm_agent_tools.models.shapes import ResourcesShown, ResultBrief
from slurm_agent_tools.policy.evaluate import format_refusal
from slurm_agent_tools.scripts.configs import experiment_config
from slurm_agent_tools.services import failures, jobs, log_analysis, present, project_paths
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.transport.git_state import git_state
from slurm_agent_tools.transport.process import machine

FOLDER = "results"

_LIMIT = 20 * 2**20


async def save_result(
    context: ClusterContext, ask: SaveResult, caller: Caller, view: JobView | None = None
) -> SaveReply:
    """Write one result, never over another. `view`: its job, by whoever saw it end.

    Raises InputError, StorageError, UnknownJob and SlurmUnreachable.
    """
    if view is not None:
        view = await jobs.in_full(context, view)
    elif ask.job_id is not None:
        view = await jobs.look(context, jobs.parse(ask.job_id), fresh=True)
    ask, note = await _with_metrics(context, ask, view)
    record = await record_of(context, ask, view)
    data = (record.model_dump_json(indent=2) + "\n").encode()
    if ask.dry_run:
        plan, decision = await failures.judged(context, experiment_results.path_of(ask, record.timestamp, 1), len(data))
        if decision.verdict != "allow":
            return _blocked(context, decision)
        summary = f"{ask.name} would be saved; nothing was written.{baseline_of(ask, view)}{note}"
        summary += experiment_results.limits_told(record)
        return SaveReply(
            status="dry_run", summary=summary, as_of=record.timestamp, result=record, decision=decision_shown(decision)
        )
    for attempt in range(1, 1000):
        path = experiment_results.path_of(ask, record.timestamp, attempt)
        plan, decision = await failures.judged(context, path, len(data))
        if plan.path_exists:
            continue
        await context.log_decision(caller, decision, "save_result", "decided", path=path, size=len(data))
        if decision.verdict != "allow":
            return _blocked(context, decision)
        if await context.files.write_new(plan.path or path, data, mode=0o600):
            saved = await _saved(context, caller, ask, record, path, view, decision)
            names: list[str] = []
            with suppress(StorageError):  # it is saved: a folder that cannot be listed takes nothing from that
                names = await context.files.list(posixpath.dirname(plan.path or path)) or []
            earlier = experiment_results.saved_before(names, path, ask.name)
            return saved.model_copy(update={"summary": f"{saved.summary}{earlier}{note}"})
    raise StorageError(f"no free name for {ask.name} in {ask.output_dir}", hint="Choose another name.")


@dataclass(frozen=True, slots=True)
class SavedTogether:
    """What is the same for all results that are saved together. `runs`: submissions by the number of their job."""

    git: GitState
    runs: Mapping[int, Submission]


def note(context: ClusterContext, path: str, record: ResultRecord) -> Callable[[], None]:
    """What writes it down in the ledger."""
    job = record.environment.slurm_job
    return partial(
        context.store.add_result, context.owner, path, name=record.experiment_name, status=record.status,
        job_id=None if job is None else job.job.job_id, at=record.timestamp,
    )  # fmt: skip


async def _with_metrics(context: ClusterContext, ask: SaveResult, view: JobView | None) -> tuple[SaveResult, str]:
    """The same, with the figures that the job's log ends with where none were given; and what is said of that log."""
    if view is None or ask.metrics is not None:
        return ask, ""
    found, files, texts = await log_analysis.figures(context, view)
    metrics, note = experiment_results.from_log(found, ", ".join(files[:3]) or "no output file could be read")
    if ask.status == "success" and not view.tasks:
        note += await anyio.to_thread.run_sync(success_in_doubt, view, texts)
    return ask.model_copy(update={"metrics": metrics}), note


async def _saved(
    context: ClusterContext,
    caller: Caller,
    ask: SaveResult,
    record: ResultRecord,
    path: str,
    view: JobView | None,
    decision: Decision,
) -> SaveReply:
    await _noted(context, ask, record, path)
    failure = await failures.keep(context, caller, view) if view is not None and ask.status == "failed" else None
    summary = f"{ask.name} ({ask.status}) is saved in {path}." + (f" Failure record: {failure}." if failure else "")
    summary += baseline_of(ask, view) + experiment_results.limits_told(record)
    return SaveReply(
        status="saved", summary=summary, as_of=record.timestamp, file_path=path, result=record,
        failure_record=failure, decision=decision_shown(decision),
    )  # fmt: skip


async def _noted(context: ClusterContext, ask: SaveResult, record: ResultRecord, path: str) -> None:
    at = record.timestamp
    try:
        await context.db(
            context.store.add_result, context.owner, path, name=ask.name, status=ask.status, job_id=ask.job_id, at=at
        )
    except StorageError as error:
        raise StorageError(f"{path} is saved, but {error.message}", hint=error.hint) from error


def baseline_of(ask: SaveResult, view: JobView | None) -> str:
    """Where Slurm says something else of the job than the caller does of the experiment."""
    if view is None:
        return ""
    if view.missing is not None:
        return f" {view.missing} Of job {view.job.job_id} it is known: {outcome(view.job)}."
    if not view.over:
        return f" But job {view.job.job_id} has not ended: Slurm says {view.job.state}."
    if (ask.status == "success") is jobs.failed(view) and ask.status != "cancelled":
        marked = " compare_results marks the result with that." if ask.status == "success" else ""
        return f" But Slurm says of job {view.job.job_id}: {outcome(view.job)}.{marked}"
    return ""


def _blocked(context: ClusterContext, decision: Decision) -> SaveReply:
    reason = format_refusal(decision)
    return SaveReply(
        status="blocked", summary=f"Nothing was saved: {reason}", as_of=context.clock.now(), blocker="policy",
        reason=reason, human_action_required=decision.verdict == "approve", decision=decision_shown(decision),
    )  # fmt: skip


async def record_of(
    context: ClusterContext, ask: SaveResult, view: JobView | None, known: SavedTogether | None = None
) -> ResultRecord:
    """What is saved of an experiment. Raises as save_result."""
    baseline = await load(context, "baseline", ask.baseline) if ask.baseline is not None else None
    submission = None
    if view is not None and known is not None:
        submission = known.runs.get(view.job.job_id.base)
    elif view is not None:
        submission = await context.db(context.store.by_job, context.owner, view.job.job_id.base)
    return experiment_results.build_result(
        ask,
        config=await _config(context, ask.config),
        baseline_record=baseline[1] if baseline is not None else None,
        environment=Environment(
            git=await git_state(context.project) if known is None else known.git,
            python_version=platform.python_version(),
            platform=machine(),
            slurm_job=_slurm_job(view),
        ),
        now=context.clock.now(),
        run_id=submission.run_id if submission is not None else None,
    )


def _slurm_job(view: JobView | None) -> SlurmJobRecord | None:
    if view is None:
        return None
    peaks = [step.max_rss_bytes for step in view.job.steps if step.max_rss_bytes is not None]
    return SlurmJobRecord(
        job=present.job(view.job),
        max_rss_bytes=max(peaks, default=None),
        requested=ResourcesShown.of(view.job.resources),
    )


async def _config(context: ClusterContext, config: dict[str, object] | str | None) -> dict[str, object] | None:
    if not isinstance(config, str):
        return config
    real, data = await project_paths.read_file(context.here, "config", config, limit=_LIMIT)
    value = experiment_config.parse_config(data, posixpath.splitext(real)[1], config).value
    if not isinstance(value, dict):
        raise InputError("config", config, "does not hold a mapping", hint="Name a file with keys and values.")
    return value


# --- reading ---------------------------------------------------------------------------------------------------


async def load(context: ClusterContext, field: str, wanted: str) -> tuple[str, ResultRecord]:
    """A saved result by its file or by its experiment's name (the newest): (path in the project, record)."""
    if wanted.endswith(".json") or "/" in wanted:
        real, data = await project_paths.read_file(context.here, field, wanted, limit=_LIMIT)
    else:
        project_paths.check_text(field, wanted, limit=200)
        folder = await project_paths.resolve(context.here, field, FOLDER)
        names = [name for name in await context.files.list(folder) or [] if name.endswith(".json")]
        try:
            name = experiment_results.find_result(names, wanted)
        except LookupError:
            hint = experiment_results.choice(names, wanted)
            raise InputError(field, wanted, f"no such result in {FOLDER}/", hint=hint) from None
        real, data = await project_paths.read_file(context.here, field, posixpath.join(FOLDER, name), limit=_LIMIT)
    shown = project_paths.relative(context.here, real)
    return shown, experiment_results.parse_record(data, shown)


async def compare_results(context: ClusterContext, ask: CompareResults) -> CompareReply:
    """Metric changes and config differences. Raises InputError and StorageError."""
    base_path, base = await load(context, "baseline", ask.baseline)
    named = [("target", ask.target), *((f"others[{index}]", one) for index, one in enumerate(ask.others or ()))]
    runs, told, records = [], [], [base]
    for field, wanted in named:
        path, target = await load(context, field, wanted)
        records.append(target)
        changes, config_diff = experiment_results.compare_metrics(base, target, metrics_only=ask.metrics_only)
        runs.append(
            ComparedRun(target=experiment_results.brief(path, target), metrics=changes, config_diff=config_diff)
        )
        told.append(experiment_results.told(changes, base.experiment_name, target.experiment_name))
    summary = experiment_results.not_normal(records) + " ".join(told)
    return CompareReply(
        status="ok", summary=summary, as_of=context.clock.now(), baseline=experiment_results.brief(base_path, base),
        **dict(runs[0]), others=runs[1:],
    )  # fmt: skip


async def brief(context: ClusterContext, limit: int = 10) -> list[ResultBrief]:
    """The newest saved results, of each campaign the newest alone."""
    folder = await project_paths.resolve(context.here, "results folder", FOLDER)
    names = [name for name in await context.files.list(folder) or [] if name.endswith(".json")]
    found = []
    for name, trials in experiment_results.without_trials(names)[:limit]:
        path = posixpath.join(FOLDER, name)
        try:
            found.append(experiment_results.brief(*await load(context, "results", path), trials))
        except (InputError, StorageError):  # a file of somebody else's must not hide the results
            found.append(ResultBrief(file_path=path, experiment_name="", status="unreadable", timestamp=""))
    return found
