"""The record of a failed job, written once, and its line among the project's failure modes."""

from __future__ import annotations

import posixpath

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.failure_record import (
    FILE,
    FOLDER,
    HEAD,
    entry,
    failure_name,
    failure_record,
    listed,
    of_same_job,
    same,
)
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.decision import Decision
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import JobView
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate
from slurm_agent_tools.services import log_analysis, project_paths
from slurm_agent_tools.services.context import Caller, ClusterContext, new_id

_LIMIT = 4 * 2**20


async def keep(context: ClusterContext, caller: Caller, view: JobView) -> str | None:
    """The record's path in the project; None where the policy allows none, or nothing failed.

    A job has one record, the first. Raises InputError and StorageError.
    """
    logs = await log_analysis.read_logs(context, view)
    diagnosis = diagnose(view.job, view.tasks, [log.text for log in logs if log.text is not None])
    if diagnosis.category == "none":
        return None
    name = failure_name(view.job, diagnosis, context.clock.now())
    folder = await project_paths.resolve(context.here, "failure record", FOLDER)
    names = await context.files.list(folder) or []
    first = of_same_job(names, name)
    if first is not None:
        await _add(context, caller, first, diagnosis)  # where it was broken off in between
        return posixpath.join(FOLDER, first)
    sent = await context.db(context.store.by_job, context.owner, view.job.job_id.base)
    text = failure_record(
        view.job,
        diagnosis,
        now=context.clock.now(),
        before=same(names, name),
        script=sent.script_path if sent is not None else None,
        run_id=sent.run_id if sent is not None else None,
    )
    path = posixpath.join(FOLDER, name)
    plan, decision = await judged(context, path, len(text.encode()))
    await context.log_decision(caller, decision, "save_result", "decided", path=path, size=plan.size)
    if decision.verdict != "allow" or plan.path is None:
        return None
    await context.files.write_new(plan.path, text.encode(), mode=0o600)
    await _add(context, caller, name, diagnosis)
    return path


async def _add(context: ClusterContext, caller: Caller, name: str, diagnosis: Diagnosis) -> None:
    """Its line goes to the end of the page, whose other lines stay as people left them."""
    page = await project_paths.resolve(context.here, "failure modes", FILE)
    if listed((await context.files.read(page, size=_LIMIT) or b"").decode("utf-8", "replace"), name):
        return
    line = entry(name, diagnosis.explanation, diagnosis.proposed_change).encode()
    plan, decision = await judged(context, FILE, len(line), adds=True)
    await context.log_decision(caller, decision, "save_result", "decided", path=FILE, size=len(line))
    if decision.verdict != "allow" or plan.path is None:
        return
    for _ in range(2):  # somebody else may make the page meanwhile
        if await _added(context, plan.path, line):
            return
        if await context.files.write_new(plan.path, HEAD.encode() + line, mode=0o600):
            return
    problem = "it is not a regular file, or has a second name (a hard link)"
    raise StorageError(f"{FILE} cannot be added to: {problem}", hint="Move it away, then repeat.")


async def _added(context: ClusterContext, path: str, line: bytes) -> bool:
    """Add the line at the end, on a line of its own; False where there is no such file."""
    found = await context.files.stat(path)
    if found is None or found.kind != "file":
        return False
    last = await context.files.read(path, offset=max(0, found.size - 1), size=1)
    return await context.files.append(path, (b"" if last in (b"\n", b"", None) else b"\n") + line)


async def judged(
    context: ClusterContext, path: str, size: int, *, adds: bool = False
) -> tuple[EvaluationContext, Decision]:
    """What the policy says of writing a file into the project."""
    real = await project_paths.resolve(context.here, "output_dir", path)
    return judged_at(context, real, size, exists=await context.files.stat(real) is not None, adds=adds)


def judged_at(
    context: ClusterContext, real: str, size: int, *, exists: bool, adds: bool = False
) -> tuple[EvaluationContext, Decision]:
    """The same of a path whose links are resolved, and of which it is known whether it is there."""
    plan = EvaluationContext(
        context.policy,
        context.project,
        tool="save_result",
        decision_id=new_id(),
        path=real,
        path_exists=exists,
        size=size,
        adds=adds,
    )
    return plan, evaluate(None, plan)
