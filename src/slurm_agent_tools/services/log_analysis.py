"""analyze_log: a job's real output files and Slurm's records, joined to a diagnosis. Writes no file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import anyio.to_thread

from slurm_agent_tools.diagnosis import lessons
from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.excerpt import LogText
from slurm_agent_tools.diagnosis.first_line import first_line
from slurm_agent_tools.diagnosis.job_facts import NONE
from slurm_agent_tools.diagnosis.log_figures import errors, metrics, warnings
from slurm_agent_tools.errors import InputError, SlurmError
from slurm_agent_tools.insights import job_outcome
from slurm_agent_tools.models.arguments import AnalyzeLog
from slurm_agent_tools.models.diagnosis_answer import AnalyzeReply, RecentFailure
from slurm_agent_tools.models.job import Job, JobRecord, JobView
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.models.shapes import JobShown
from slurm_agent_tools.services import jobs, log_files, log_paths, present, project_paths, recovery
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.services.drift import DriftWatch, parts
from slurm_agent_tools.services.log_files import OutputFile
from slurm_agent_tools.slurm import node_list
from slurm_agent_tools.store.submissions import Submission
from slurm_agent_tools.text.sanitize import line
from slurm_agent_tools.units import how_many, human_memory

_KIND = "host-out-of-memory"

_RUNS = 50


async def with_earlier_runs(
    context: ClusterContext, run: Submission | None, job: Job, reply: AnalyzeReply
) -> AnalyzeReply:
    """The same answer, with what the ledger knows of earlier ends of this kind."""
    if run is None or reply.diagnosis is None or reply.diagnosis.category != _KIND:
        return reply
    records = await context.db(context.store.history, context.owner, script_path=run.script_path, limit=_RUNS)
    text = ran_out_before(records, job)
    if text is None:
        return reply
    found = reply.diagnosis.model_copy(update={"suggestions": [text, *reply.diagnosis.suggestions]})
    return reply.model_copy(update={"diagnosis": found})


async def with_lessons(context: ClusterContext, reply: AnalyzeReply) -> AnalyzeReply:
    """The same answer, with what mended this category of failure in this project before, where a lesson was kept."""
    category = NONE if reply.diagnosis is None else reply.diagnosis.category
    if category == NONE or await context.files.stat(f"{context.project}/{lessons.PLACE}") is None:
        return reply
    try:
        _, data = await project_paths.read_file(context.here, "lessons", lessons.PLACE, limit=lessons.LONGEST)
        fitting = lessons.fitting(data.decode("utf-8", "replace"), category)
    except InputError as error:  # the diagnosis counts without them
        fitting = [f"{lessons.PLACE} was not read: {error.message}"]
    return reply.model_copy(update={"lessons": fitting})


def ran_out_before(records: list[JobRecord], job: Job) -> str | None:
    """A sentence on earlier runs that ran out of less memory; None where there is none. `records`: newest first."""
    has = job.resources.memory_bytes
    if has is None:
        return None
    less = [
        (record.job_id, record.requested.memory_bytes)
        for record in records
        if record.job_id != str(job.job_id.base)
        and (record.state == "OUT_OF_MEMORY" or record.category == _KIND)
        and (record.requested.memory_bytes or has) < has
    ]
    if not less:
        return None
    named = ", ".join(f"job {job_id} with {human_memory(size or 0)}" for job_id, size in reversed(less[:3]))
    return (
        f"This script ran out of memory before ({named}), and {human_memory(has)} was not enough either:"
        f" rather ask for twice as much, {human_memory(2 * has)}, or find out what it needs."
    )


_RECENT = timedelta(days=7)

_LATELY = timedelta(hours=1)  # after that a node's state tells little about why a job failed

_SHOWN = 20

_PARTS = 8

_FIGURES = 100  # array tasks whose logs are read for their figures

_SAVE = 'Keep this as a failure record: save_result with status="failed" and job_id="{}".'

_NO_LOG = " No output file could be read; files says why. Name one with path if it is elsewhere."


async def analyze_log(context: ClusterContext, ask: AnalyzeLog, caller: Caller) -> AnalyzeReply:
    """Diagnose one job, one file, or the newest failures. Raises InputError, UnknownJob and SlurmUnreachable."""
    given = [name for name in ("job_id", "path", "recent_errors") if getattr(ask, name) is not None]
    if len(given) != 1:
        raise InputError(
            "job_id, path, recent_errors", given, "exactly one of them is needed", hint="Usually job_id is the one."
        )
    if ask.job_id is not None:
        return await _of_job(context, ask, caller, ask.job_id)
    if ask.path is not None:
        project_files = await log_files.declared(context, ask.path) or await project_paths.either(
            context, "path", ask.path
        )
        real, _ = await project_paths.regular(project_files, "path", ask.path)
        log = await log_files.read(context, real, "stdout", project_files, whole=ask.mode == "full")
        return await with_lessons(context, await anyio.to_thread.run_sync(_reply, context, ask, None, [log]))
    return await _recent(context, ask.recent_errors or 1)


async def _of_job(context: ClusterContext, ask: AnalyzeLog, caller: Caller, text: str) -> AnalyzeReply:
    view = await jobs.look(context, jobs.parse(text), fresh=True)
    logs = await read_logs(context, view, whole=ask.mode == "full")
    nodes = await _nodes(context, view)
    run = await context.db(context.store.by_job, context.owner, view.job.job_id.base)
    reply = await anyio.to_thread.run_sync(_reply, context, ask, view, logs, nodes, run)  # a long log takes its time
    if ask.mode == "metrics" and _numbered(view):
        reply = await _by_task(context, view, reply)
    reply = await with_lessons(context, await with_earlier_runs(context, run, view.job, reply))
    await recovery.notice(context, [view.job, *view.tasks])
    await jobs.remember(context, view)
    if (view.over or "ledger" in view.job.sources) and reply.diagnosis is not None:
        await jobs.settle(context, view, reply.diagnosis)
    return reply.model_copy(
        update={
            "alerts": [*jobs.missing(view), *(await DriftWatch(context, caller, "analyze_log").at(parts(view)))],
            "job": await _shown(context, view, run),
        }
    )


async def _shown(context: ClusterContext, view: JobView, run: Submission | None) -> JobShown:
    """The job as wait_for_job shows it."""
    managed = view.job.job_id.base in await jobs.managed(context)
    return present.job(view.job, managed=managed, why=job_outcome.cause(context, run, view.job))


async def read_logs(
    context: ClusterContext, view: JobView, *, whole: bool = False, tail: int | None = None
) -> list[OutputFile]:
    """Output files of the parts that failed, or of the first part; each file once. See files.read."""
    known = view.tasks or (view.job,)
    parts = [part for part in known if not part.active and part.state != "COMPLETED"]
    parts = [part for part in parts if part.job_id.tasks is None] or parts  # tasks that never ran wrote nothing
    parts = parts or [next((part for part in known if part.active and part.state != "PENDING"), known[0])]
    parts.sort(key=lambda part: (part.ended is None, part.ended.timestamp() if part.ended else 0.0))
    found: dict[str, OutputFile] = {}
    for part in parts[:_PARTS]:
        for path, kind in await log_paths.paths_of(context, part):
            if path not in found:
                found[path] = await log_files.read(context, path, kind, whole=whole, tail=tail)
    return list(found.values())


async def figures(
    context: ClusterContext, view: JobView
) -> tuple[dict[str, dict[str, float]], list[str], list[LogText]]:
    """The last figures in the log of each task of an array by its number, else under an empty text; files, texts.

    One task that was asked for by its own id is no array: its figures have the names that its log gives them.
    """
    found, files, read = dict[str, dict[str, float]](), list[str](), list[LogText]()
    for part in _numbered(view)[:_FIGURES] or [view.job]:
        of_part = [await log_files.read(context, path, kind) for path, kind in await log_paths.paths_of(context, part)]
        texts = [log.text for log in of_part if log.text is not None]
        files += [log.file.path for log in of_part if log.text is not None]
        found["" if part is view.job else str(part.job_id.task)] = metrics(texts)
        read += texts
    return found, files, read


def _numbered(view: JobView) -> list[Job]:
    return [task for task in view.tasks if task.job_id.task is not None]


async def _by_task(context: ClusterContext, view: JobView, reply: AnalyzeReply) -> AnalyzeReply:
    """The same answer with the figures of all tasks, also of those that ended well, as save_result names them."""
    found, *_ = await figures(context, view)
    named = {f"task_{task}.{name}": value for task, told in found.items() for name, value in told.items()}
    if not named:
        return reply
    count = f"{sum(map(bool, found.values()))} of its {how_many(len(_numbered(view)), 'task')}"
    return reply.model_copy(update={"metrics": named, "summary": f"{reply.summary} The metrics are of {count}."})


async def _nodes(context: ClusterContext, view: JobView) -> tuple[Node, ...]:
    """The nodes of what failed a short while ago, as they are now; none where Slurm does not tell."""
    since = context.clock.now() - _LATELY
    lately = [part for part in (*view.tasks, view.job) if part.ended is not None and part.ended >= since]
    names = {name for part in lately if part.state != "COMPLETED" for name in node_list.named(part.nodes)}
    if not names:
        return ()
    try:
        return tuple(node for node in await context.slurm.nodes() if node.name in names)
    except SlurmError:
        return ()


def _reply(
    context: ClusterContext,
    ask: AnalyzeLog,
    view: JobView | None,
    logs: Sequence[OutputFile],
    nodes: Sequence[Node] = (),
    run: Submission | None = None,
) -> AnalyzeReply:
    texts = [log.text for log in logs if log.text is not None]
    job, tasks = (view.job, view.tasks) if view is not None else (None, ())
    diagnosis = diagnose(job, tasks, texts, nodes)
    diagnosis = diagnosis if job is None else job_outcome.explained(context, run, job, diagnosis)
    save = _SAVE.format(ask.job_id) if view is not None and view.over and jobs.failed(view) else ""
    if save:
        diagnosis = diagnosis.model_copy(update={"suggestions": [*diagnosis.suggestions, save]})
    lines = [line for text in texts for line in text.lines]
    wanted = ask.mode
    found = bool(texts)
    what = f"Job {job.job_id} ({job.state})" if job is not None else (logs[0].file.path if logs else "The log")
    return AnalyzeReply(
        status="ok" if found else "no_log",
        summary=f"{what}: {first_line(diagnosis, view, texts)}.{'' if found else _NO_LOG}",
        as_of=context.clock.now(),
        diagnosis=diagnosis,
        errors=errors(texts)[:_SHOWN] if wanted != "metrics" else [],
        warnings=warnings(texts)[:_SHOWN] if wanted in {"auto", "full"} else [],
        metrics=metrics(texts) if wanted != "error" else {},
        files=[log.file for log in logs],
        content=log_files.content(lines) if wanted == "full" else None,
    )


async def _recent(context: ClusterContext, number: int) -> AnalyzeReply:
    failures, why = await jobs.recent_failures(context, context.clock.now() - _RECENT)
    recent = [await _brief(context, job) for job in failures[:number]]
    if why is None:
        summary = _counted(len(recent), len(failures)) if recent else f"No job failed in the last {_RECENT.days} days."
    else:
        known = how_many(len(failures), "failure") if failures else "No failure"
        summary = f"{known} of the last {_RECENT.days} days known here. {why}"
    return AnalyzeReply(status="ok", summary=summary, as_of=context.clock.now(), recent=recent)


def _counted(shown: int, found: int) -> str:
    newest = "the newest is" if shown == 1 else f"the {shown} newest are"
    return f"{how_many(found, 'job')} failed in the last {_RECENT.days} days" + (
        f"; {newest} shown." if shown < found else "."
    )


async def _brief(context: ClusterContext, job: Job) -> RecentFailure:
    logs = [await log_files.read(context, path, kind) for path, kind in await log_paths.paths_of(context, job)]
    diagnosis = diagnose(job, (), [log.text for log in logs if log.text is not None])
    return RecentFailure(
        job_id=str(job.job_id),
        name=line(job.name),
        state=job.state,
        path=next((log.file.path for log in logs if log.text is not None), None),
        category=diagnosis.category,
        explanation=diagnosis.explanation,
    )
