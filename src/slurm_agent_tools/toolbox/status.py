"""get_status: what the cluster and the project look like, and whether to submit now. Each section stands alone."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from slurm_agent_tools.catalogue import GetStatus, Section
from slurm_agent_tools.errors import AgentToolsError, StorageError
from slurm_agent_tools.model import Job, Node, Partition
from slurm_agent_tools.policy import slots
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.replies import (
    Alert,
    ClusterSection,
    DiskSection,
    PolicySection,
    SectionError,
    SlurmSection,
    StatusReply,
)
from slurm_agent_tools.slurm.client import ClusterInfo, JobView
from slurm_agent_tools.toolbox import capacity, jobs, live, records, show
from slurm_agent_tools.toolbox.desk import Caller, Desk
from slurm_agent_tools.toolbox.drift import Look
from slurm_agent_tools.toolbox.later import Later, ask_all
from slurm_agent_tools.units import human_memory, parse_job_id

_DEFAULT: tuple[Section, ...] = ("jobs", "gpu", "queue", "partitions", "policy")
_CROWDED = 20
_LISTED = 10
_RECENT = timedelta(days=1)


class Answers:
    """What Slurm said to the questions of one call, each with its own answer or error."""

    def __init__(self, desk: Desk, ask: GetStatus) -> None:
        self.queue: Later[tuple[Job, ...]] = Later(partial(desk.slurm.queue, fresh=ask.refresh))
        self.nodes: Later[tuple[Node, ...]] = Later(partial(desk.slurm.nodes, fresh=ask.refresh))
        self.partitions: Later[dict[str, Partition]] = Later(desk.slurm.partitions)
        self.info: Later[ClusterInfo] = Later(desk.slurm.info)
        self.recent: Later[tuple[Job, ...]] = Later(partial(desk.slurm.recent, desk.clock.now() - _RECENT))
        self.jobs: Later[SlurmSection] = Later(lambda: _jobs(desk, self.queue.value()))
        self.results = Later(partial(records.brief, desk))

    async def gather(self, wanted: set[str]) -> None:
        """Ask everything that is wanted at once; the caller's jobs need the queue first."""
        extra: list[Later[Any]] = []
        if "errors" in wanted:
            extra.append(self.recent)
        if "results" in wanted:
            extra.append(self.results)
        await ask_all(self.queue, self.nodes, self.partitions, self.info, *extra)
        await ask_all(self.jobs)


async def get_status(desk: Desk, ask: GetStatus, caller: Caller) -> StatusReply:
    """Never raises for Slurm: a section that could not be read holds the error instead."""
    wanted = set(ask.sections or _DEFAULT) | ({"nodes"} if ask.detailed else set())
    answers = Answers(desk, ask)
    await answers.gather(wanted)
    if answers.jobs.error is None:
        await desk.db(desk.store.mark_read, desk.owner, "status", desk.clock.now())
    drifted = await _drifted(desk, caller, answers, fresh=ask.refresh)
    makers = _makers(desk, answers)
    sections = {name: _section(makers[name]) for name in makers if name in wanted}
    if "jobs" in sections:
        sections["slurm"] = sections.pop("jobs")
    broken = [name for name, section in sections.items() if isinstance(section, SectionError)]
    return StatusReply(
        status="partial" if broken else "ok",
        summary=_summary(answers, broken),
        as_of=desk.clock.now(),
        cluster=_cluster(answers),
        alerts=[*drifted, *_alerts(desk, answers)],
        slurm_calls=dict(desk.slurm.calls) if ask.detailed else None,
        **sections,
    )


async def _drifted(desk: Desk, caller: Caller, answers: Answers, *, fresh: bool) -> list[Alert]:
    if answers.queue.error is not None:
        return []
    mine = desk.slurm.mine(answers.queue.value())
    return await Look(desk, caller, "get_status", fresh=fresh).at(mine)


def _makers(desk: Desk, answers: Answers) -> dict[str, Callable[[], Any]]:
    return {
        "jobs": answers.jobs.value,
        "gpu": lambda: capacity.gpus(answers.nodes.value()),
        "queue": lambda: capacity.queue(answers.queue.value(), answers.nodes.value(), answers.jobs.value()),
        "partitions": lambda: capacity.partitions(answers.partitions.value(), answers.nodes.value()),
        "nodes": lambda: [capacity.node(node) for node in answers.nodes.value()],
        "errors": lambda: [show.job(job) for job in answers.recent.value() if jobs.failed(JobView(job, ()))][:20],
        "results": answers.results.value,
        "disk": lambda: _disk(desk.project),
        "policy": lambda: policy_section(desk.policy),
    }


def _section(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except AgentToolsError as error:
        return show.section_error(error)


async def _jobs(desk: Desk, queue: tuple[Job, ...]) -> SlurmSection:
    mine = desk.slurm.mine(queue)
    active = [job for job in mine if job.active]
    managed = await jobs.managed(desk)
    reserved = await live.unsettled(desk, active)
    taken = slots.count(live.Snapshot({}, tuple(active), reserved).claims())
    limit = desk.policy.policy.limits.max_concurrent_jobs
    return SlurmSection(
        running_jobs=sum(job.state != "PENDING" for job in active),
        pending_jobs=sum(job.state == "PENDING" for job in active),
        active_jobs=taken,
        max_concurrent=limit,
        slots_left=max(0, limit - taken),
        jobs=[show.job(job, managed=job.job_id.base in managed) for job in active],
        finished_recently=[show.job(job, managed=job.job_id.base in managed) for job in mine if not job.active],
    )


def _disk(project: str) -> DiskSection:
    try:
        usage = shutil.disk_usage(project)
    except OSError as error:
        raise StorageError(f"cannot read the free space of {project}: {error.strerror}") from error
    return DiskSection(path=project, total_bytes=usage.total, free_bytes=usage.free, free=human_memory(usage.free))


def policy_section(loaded: LoadedPolicy) -> PolicySection:
    """The policy in force, in brief."""
    return PolicySection(
        name=loaded.name,
        version=loaded.version,
        sha256=loaded.sha256,
        source=loaded.source,
        limits=loaded.policy.limits.brief(),
    )


def _cluster(answers: Answers) -> ClusterSection:
    reachable = answers.queue.error is None
    if answers.info.error is not None:
        return ClusterSection(name=None, version=None, reachable=reachable)
    info = answers.info.value()
    return ClusterSection(name=info.name, version=info.version, reachable=reachable, accounting=info.accounting)


def _alerts(desk: Desk, answers: Answers) -> list[Alert]:
    found = [Alert(severity="medium", code="policy-note", message=note) for note in desk.policy.notes]
    if answers.queue.error is not None:
        found.insert(0, Alert(severity="critical", code=answers.queue.error.code, message=answers.queue.error.message))
    elif answers.jobs.error is None and answers.jobs.value().pending_jobs > _CROWDED:
        found.append(
            Alert(severity="high", code="queue-backup", message=f"More than {_CROWDED} of your jobs are pending.")
        )
    if answers.jobs.error is None:
        found += _unmanaged(answers.jobs.value())
    if answers.nodes.error is None:
        down = [
            node.name for node in answers.nodes.value() if node.state.rstrip("*").lower().startswith(("down", "fail"))
        ]
        if down:
            found.append(
                Alert(
                    severity="medium", code="nodes-down", message=f"{len(down)} nodes are down: {', '.join(down[:5])}"
                )
            )
    return found


def _unmanaged(mine: SlurmSection) -> list[Alert]:
    """Jobs of this user that did not come through the guard."""
    others = sorted({parse_job_id(job.job_id).base for job in mine.jobs if not job.managed})
    if not others:
        return []
    listed = ", ".join(map(str, others[:_LISTED])) + (", ..." if len(others) > _LISTED else "")
    message = f"Not submitted by submit_job, but they count for the limit of {mine.max_concurrent} jobs: {listed}."
    return [Alert(severity="medium", code="unmanaged-jobs", message=message)]


def _summary(answers: Answers, broken: list[str]) -> str:
    if answers.queue.error is not None:
        return f"Slurm could not be read: {answers.queue.error.message} {answers.queue.error.hint}".strip()
    mine = answers.jobs.value()
    text = (
        f"{mine.running_jobs} running and {mine.pending_jobs} pending jobs;"
        f" {mine.slots_left} of {mine.max_concurrent} slots left."
    )
    return text + (f" Not readable: {', '.join(broken)}." if broken else "")
