"""analyze_log: a job's real output files and Slurm's records, joined to a diagnosis. Writes no file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import anyio.to_thread

from slurm_agent_tools.catalogue import AnalyzeLog
from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.extract import errors, metrics, warnings
from slurm_agent_tools.errors import InputError, SlurmError
from slurm_agent_tools.ledger.records import Submission
from slurm_agent_tools.model import Job, Node
from slurm_agent_tools.replies import AnalyzeReply, JobShown, RecentFailure
from slurm_agent_tools.slurm import hosts
from slurm_agent_tools.slurm.client import JobView
from slurm_agent_tools.toolbox import earlier, endings, jobs, paths, recover, show
from slurm_agent_tools.toolbox.desk import Caller, Desk
from slurm_agent_tools.toolbox.drift import Look, parts
from slurm_agent_tools.toolbox.logs import files
from slurm_agent_tools.toolbox.logs.files import Log
from slurm_agent_tools.trust import line

_RECENT = timedelta(days=7)
_LATELY = timedelta(hours=1)  # after that a node's state tells little about why a job failed
_SHOWN = 20
_PARTS = 8
_SAVE = 'Keep this as a failure record: save_result with status="failed" and job_id="{}".'
_NO_LOG = " No output file could be read; files says why. Name one with path if it is elsewhere."


async def analyze_log(desk: Desk, ask: AnalyzeLog, caller: Caller) -> AnalyzeReply:
    """Diagnose one job, one file, or the newest failures. Raises InputError, UnknownJob and SlurmUnreachable."""
    given = [name for name in ("job_id", "path", "recent_errors") if getattr(ask, name) is not None]
    if len(given) != 1:
        raise InputError(
            "job_id, path, recent_errors", given, "exactly one of them is needed", hint="Usually job_id is the one."
        )
    if ask.job_id is not None:
        return await _of_job(desk, ask, caller, ask.job_id)
    if ask.path is not None:
        shelf = await files.declared(desk, ask.path) or await paths.either(desk, "path", ask.path)
        real, _ = await paths.regular(shelf, "path", ask.path)
        log = await files.read(desk, real, "stdout", shelf, whole=ask.mode == "full")
        return await anyio.to_thread.run_sync(_reply, desk, ask, None, [log])
    return await _recent(desk, ask.recent_errors or 1)


async def _of_job(desk: Desk, ask: AnalyzeLog, caller: Caller, text: str) -> AnalyzeReply:
    view = await desk.slurm.job(jobs.parse(text), fresh=True)
    logs = await read_logs(desk, view, whole=ask.mode == "full")
    nodes = await _nodes(desk, view)
    run = await desk.db(desk.store.by_job, desk.owner, view.job.job_id.base)
    reply = await anyio.to_thread.run_sync(_reply, desk, ask, view, logs, nodes, run)  # a long log takes its time
    reply = await earlier.told(desk, run, view.job, reply)
    await recover.notice(desk, [view.job, *view.tasks])
    await jobs.remember(desk, view)
    if jobs.ended(view) and reply.diagnosis is not None:
        await jobs.settle(desk, view, reply.diagnosis)
    return reply.model_copy(
        update={"alerts": await Look(desk, caller, "analyze_log").at(parts(view)), "job": await _shown(desk, view, run)}
    )


async def _shown(desk: Desk, view: JobView, run: Submission | None) -> JobShown:
    """The job as wait_for_job shows it."""
    managed = view.job.job_id.base in await jobs.managed(desk)
    return show.job(view.job, managed=managed, why=endings.cause(desk, run, view.job))


async def read_logs(desk: Desk, view: JobView, *, whole: bool = False, tail: int | None = None) -> list[Log]:
    """Output files of the parts that failed, or of the first part; each file once. See files.read."""
    parts = [part for part in (*view.tasks, view.job) if not part.active and part.state != "COMPLETED"] or [view.job]
    parts.sort(key=lambda part: (part.ended is None, part.ended.timestamp() if part.ended else 0.0))
    found: dict[str, Log] = {}
    for part in parts[:_PARTS]:
        for path, kind in await files.paths_of(desk, part):
            if path not in found:
                found[path] = await files.read(desk, path, kind, whole=whole, tail=tail)
    return list(found.values())


async def _nodes(desk: Desk, view: JobView) -> tuple[Node, ...]:
    """The nodes of what failed a short while ago, as they are now; none where Slurm does not tell."""
    since = desk.clock.now() - _LATELY
    lately = [part for part in (*view.tasks, view.job) if part.ended is not None and part.ended >= since]
    names = {name for part in lately if part.state != "COMPLETED" for name in hosts.named(part.nodes)}
    if not names:
        return ()
    try:
        return tuple(node for node in await desk.slurm.nodes() if node.name in names)
    except SlurmError:
        return ()


def _reply(
    desk: Desk,
    ask: AnalyzeLog,
    view: JobView | None,
    logs: Sequence[Log],
    nodes: Sequence[Node] = (),
    run: Submission | None = None,
) -> AnalyzeReply:
    texts = [log.text for log in logs if log.text is not None]
    job, tasks = (view.job, view.tasks) if view is not None else (None, ())
    diagnosis = diagnose(job, tasks, texts, nodes)
    diagnosis = diagnosis if job is None else endings.explained(desk, run, job, diagnosis)
    save = _SAVE.format(ask.job_id) if view is not None and jobs.ended(view) and jobs.failed(view) else ""
    if save:
        diagnosis = diagnosis.model_copy(update={"suggestions": [*diagnosis.suggestions, save]})
    lines = [line for text in texts for line in text.lines]
    wanted = ask.mode
    found = bool(texts)
    what = f"Job {job.job_id} ({job.state})" if job is not None else (logs[0].file.path if logs else "The log")
    advice = "" if found else _NO_LOG
    advice += f" {save}" if save else ""
    return AnalyzeReply(
        status="ok" if found else "no_log",
        summary=f"{what}: {diagnosis.category}. {diagnosis.explanation}{advice}",
        as_of=desk.clock.now(),
        diagnosis=diagnosis,
        errors=errors(texts)[:_SHOWN] if wanted != "metrics" else [],
        warnings=warnings(texts)[:_SHOWN] if wanted in {"auto", "full"} else [],
        metrics=metrics(texts) if wanted != "error" else {},
        files=[log.file for log in logs],
        content=files.content(lines) if wanted == "full" else None,
    )


async def _recent(desk: Desk, number: int) -> AnalyzeReply:
    ended = await desk.slurm.recent(desk.clock.now() - _RECENT)
    failures = [job for job in ended if jobs.failed(JobView(job, ()))]
    failures.sort(key=lambda job: job.ended or desk.clock.now(), reverse=True)
    recent = [await _brief(desk, job) for job in failures[:number]]
    summary = _counted(len(recent), len(failures)) if recent else f"No job failed in the last {_RECENT.days} days."
    return AnalyzeReply(status="ok", summary=summary, as_of=desk.clock.now(), recent=recent)


def _counted(shown: int, found: int) -> str:
    jobs = "1 job failed" if found == 1 else f"{found} jobs failed"
    newest = "the newest is" if shown == 1 else f"the {shown} newest are"
    return f"{jobs} in the last {_RECENT.days} days" + (f"; {newest} shown." if shown < found else ".")


async def _brief(desk: Desk, job: Job) -> RecentFailure:
    logs = [await files.read(desk, path, kind) for path, kind in await files.paths_of(desk, job)]
    diagnosis = diagnose(job, (), [log.text for log in logs if log.text is not None])
    return RecentFailure(
        job_id=str(job.job_id),
        name=line(job.name),
        state=job.state,
        path=next((log.file.path for log in logs if log.text is not None), None),
        category=diagnosis.category,
        explanation=diagnosis.explanation,
    )
