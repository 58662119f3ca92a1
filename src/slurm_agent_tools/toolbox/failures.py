"""The record of a failed job, written once, and its line among the project's failure modes."""

from __future__ import annotations

import posixpath

from slurm_agent_tools.diagnosis import modes
from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.report import failure_name, failure_record
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.policy.engine import decide
from slurm_agent_tools.policy.plan import Plan
from slurm_agent_tools.replies import DecisionShown, Diagnosis
from slurm_agent_tools.slurm.client import JobView
from slurm_agent_tools.toolbox import analyze, decisions, paths
from slurm_agent_tools.toolbox.desk import Caller, Desk, new_id

_LIMIT = 4 * 2**20


async def keep(desk: Desk, caller: Caller, view: JobView) -> str | None:
    """The record's path in the project; None where the policy allows none, or nothing failed.

    A job has one record, the first. Raises InputError and StorageError.
    """
    logs = await analyze.read_logs(desk, view)
    diagnosis = diagnose(view.job, view.tasks, [log.text for log in logs if log.text is not None])
    if diagnosis.category == "none":
        return None
    name = failure_name(view.job, diagnosis, desk.clock.now())
    folder = await paths.resolve(desk.here, "failure record", modes.FOLDER)
    names = await desk.files.list(folder) or []
    first = modes.of_same_job(names, name)
    if first is not None:
        await _add(desk, caller, first, diagnosis)  # where it was broken off in between
        return posixpath.join(modes.FOLDER, first)
    sent = await desk.db(desk.store.by_job, desk.owner, view.job.job_id.base)
    text = failure_record(
        view.job,
        diagnosis,
        now=desk.clock.now(),
        before=modes.same(names, name),
        script=sent.script_path if sent is not None else None,
        run_id=sent.run_id if sent is not None else None,
    )
    path = posixpath.join(modes.FOLDER, name)
    plan, decision = await judged(desk, path, len(text.encode()))
    await decisions.log(desk, caller, decision, "save_result", "decided", path=path, size=plan.size)
    if decision.verdict != "allow" or plan.path is None:
        return None
    await desk.files.write_new(plan.path, text.encode(), mode=0o600)
    await _add(desk, caller, name, diagnosis)
    return path


async def _add(desk: Desk, caller: Caller, name: str, diagnosis: Diagnosis) -> None:
    """Its line goes to the end of the page, whose other lines stay as people left them."""
    page = await paths.resolve(desk.here, "failure modes", modes.FILE)
    if modes.listed((await desk.files.read(page, size=_LIMIT) or b"").decode("utf-8", "replace"), name):
        return
    line = modes.entry(name, diagnosis.explanation, diagnosis.proposed_change).encode()
    plan, decision = await judged(desk, modes.FILE, len(line), adds=True)
    await decisions.log(desk, caller, decision, "save_result", "decided", path=modes.FILE, size=len(line))
    if decision.verdict != "allow" or plan.path is None:
        return
    for _ in range(2):  # somebody else may make the page meanwhile
        if await _added(desk, plan.path, line):
            return
        if await desk.files.write_new(plan.path, modes.HEAD.encode() + line, mode=0o600):
            return
    problem = "it is not a regular file, or has a second name (a hard link)"
    raise StorageError(f"{modes.FILE} cannot be added to: {problem}", hint="Move it away, then repeat.")


async def _added(desk: Desk, path: str, line: bytes) -> bool:
    """Add the line at the end, on a line of its own; False where there is no such file."""
    found = await desk.files.stat(path)
    if found is None or found.kind != "file":
        return False
    last = await desk.files.read(path, offset=max(0, found.size - 1), size=1)
    return await desk.files.append(path, (b"" if last in (b"\n", b"", None) else b"\n") + line)


async def judged(desk: Desk, path: str, size: int, *, adds: bool = False) -> tuple[Plan, DecisionShown]:
    """What the policy says of writing a file into the project."""
    real = await paths.resolve(desk.here, "output_dir", path)
    exists = await desk.files.stat(real) is not None
    plan = Plan(tool="save_result", project=desk.project, path=real, path_exists=exists, size=size, adds=adds)
    return plan, decide(plan, desk.policy, decision_id=new_id())
