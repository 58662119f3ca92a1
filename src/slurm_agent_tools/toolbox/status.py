"""get_status: what the cluster and the project look like, and whether to submit now. Each section stands alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from slurm_agent_tools.catalogue import GetStatus, Section
from slurm_agent_tools.diagnosis.nodes import troubled
from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.model import Job, Node, Partition
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.replies import (
    Alert,
    ClusterSection,
    PolicySection,
    ResultBrief,
    SectionError,
    SlurmSection,
    StatusReply,
)
from slurm_agent_tools.slurm import load
from slurm_agent_tools.slurm.client import ClusterInfo, JobView
from slurm_agent_tools.slurm.queue import Queue
from slurm_agent_tools.toolbox import capacity, disk, jobs, mine, recover, show
from slurm_agent_tools.toolbox.desk import Caller, Desk
from slurm_agent_tools.toolbox.drift import Look
from slurm_agent_tools.toolbox.later import Later, ask_all

_DEFAULT: tuple[Section, ...] = ("jobs", "gpu", "queue", "partitions", "policy")
_PARTITIONS_AGE = 60.0
_SHORT_QUEUE = 1000
_SOURCES = {
    "jobs": ("queue",), "queue": ("queue", "nodes"), "gpu": ("nodes",), "nodes": ("nodes",),
    "partitions": ("partitions", "nodes"),
}  # fmt: skip
_RECENT = timedelta(days=1)
_NAMED = 5


class Answers:
    """What Slurm said to the questions of one call, each with its own answer or error."""

    def __init__(self, desk: Desk, ask: GetStatus) -> None:
        self.desk = desk
        self.named = "queue" in (ask.sections or ())
        self.broken_off: list[Alert] = []
        self.queue: Later[Queue] = Later(partial(desk.slurm.queue, fresh=ask.refresh))
        self.nodes: Later[tuple[Node, ...]] = Later(partial(desk.slurm.nodes, fresh=ask.refresh))
        self.partitions: Later[dict[str, Partition]] = Later(
            partial(desk.slurm.partitions, fresh=ask.refresh, max_age=_PARTITIONS_AGE)
        )
        self.info: Later[ClusterInfo] = Later(desk.slurm.info)
        self.recent: Later[tuple[Job, ...]] = Later(partial(desk.slurm.recent, desk.clock.now() - _RECENT))
        self.jobs: Later[SlurmSection] = Later(self._mine)
        self.managed: frozenset[int] = frozenset()
        self.unmanaged: list[Alert] = []
        self.verdict = load.CALM
        self.closed = desk.policy.policy.submissions == "off"
        self.lately = capacity.Lately()
        self.results = Later(partial(_results, desk))
        self.disk = Later(partial(disk.room, desk))

    async def gather(self, wanted: set[str]) -> None:
        """Ask everything that is wanted at once; the caller's jobs need the queue first."""
        extra: list[Later[Any]] = []
        if "errors" in wanted:
            extra.append(self.recent)
        if "results" in wanted:
            extra.append(self.results)
        if "disk" in wanted:
            extra.append(self.disk)
        await ask_all(self.queue, self.nodes, self.partitions, self.info, *extra)
        if self.queue.error is None:
            self.broken_off = await recover.complete(self.desk, self.queue.value())
            await recover.ended(self.desk, self.queue.value())
            self.managed = await jobs.managed(self.desk)
        await ask_all(self.jobs)
        if "queue" in wanted and self.queue.error is None:
            self.lately = await _lately(self.desk, self.queue.value(), named=self.named)
        self.verdict = await self.desk.slurm.diagnose()

    async def _mine(self) -> SlurmSection:
        rows = self.desk.slurm.mine(self.queue.value())
        active = rows.going()
        self.unmanaged = mine.unmanaged(self.desk, active, self.managed)
        return await mine.section(self.desk, active, rows.going(on=False), self.managed)


async def _lately(desk: Desk, queue: Queue, *, named: bool) -> capacity.Lately:
    """What the accounting and the reservations add, asked where somebody waits and it is cheap, or by name.

    Over a long queue and on an idle cluster only what is kept from the last 10 minutes is told.
    """
    waiting = queue.states()["PENDING"] > 0 and len(queue) <= _SHORT_QUEUE
    if not (named or waiting or desk.slurm.lookback.kept):
        return capacity.Lately()
    from slurm_agent_tools.toolbox import lately  # noqa: PLC0415 - not needed on an idle cluster

    past = await lately.lately(desk, ask=named or waiting)
    begins = await lately.maintenance(desk) if named else None
    return capacity.Lately(lately.of_queue(past), begins, desk.clock.now())


async def _results(desk: Desk) -> list[ResultBrief]:
    from slurm_agent_tools.toolbox import records  # noqa: PLC0415 - loads all that diagnoses failures

    return await records.brief(desk)


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
        alerts=[*drifted, *answers.broken_off, *_alerts(desk, answers)],
        slurm_calls=dict(desk.slurm.calls) if ask.detailed else None,
        age_seconds=_ages(desk, wanted),
        **sections,
    )


async def _drifted(desk: Desk, caller: Caller, answers: Answers, *, fresh: bool) -> list[Alert]:
    if answers.queue.error is not None:
        return []
    managed = desk.slurm.mine(answers.queue.value()).jobs(sorted(answers.managed))
    drifted = await Look(desk, caller, "get_status", fresh=fresh).at(managed)
    return [*await _of_jobs(desk, managed, answers), *drifted]


async def _of_jobs(desk: Desk, managed: Sequence[Job], answers: Answers) -> list[Alert]:
    if not managed:
        return []
    from slurm_agent_tools.toolbox import alerts  # noqa: PLC0415 - without jobs nothing of it is needed

    return await alerts.of_all(desk, managed, answers.nodes.answer, answers.partitions.answer)


def _ages(desk: Desk, wanted: set[str]) -> dict[str, float]:
    """How long ago Slurm was asked for what each section shows; the queue section rests on queue and nodes."""
    ages = desk.slurm.ages
    found = {
        name: max((ages[source] or 0.0 for source in _SOURCES[name]), default=0.0) for name in wanted & set(_SOURCES)
    }
    return {name: round(found[name], 1) for name in sorted(found)}


def _makers(desk: Desk, answers: Answers) -> dict[str, Callable[[], Any]]:
    return {
        "jobs": answers.jobs.value,
        "gpu": lambda: capacity.gpus(answers.nodes.value()),
        "queue": lambda: capacity.queue(
            answers.queue.value().states(),
            answers.nodes.value(),
            answers.jobs.value(),
            replace(answers.lately, closed=answers.closed),
        ),
        "partitions": lambda: capacity.partitions(answers.partitions.value(), answers.nodes.value()),
        "nodes": lambda: [capacity.node(node) for node in answers.nodes.value()],
        "errors": lambda: [show.brief_job(job) for job in answers.recent.value() if jobs.failed(JobView(job, ()))][:20],
        "results": answers.results.value,
        "disk": answers.disk.value,
        "policy": lambda: policy_section(desk.policy),
    }


def _section(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except AgentToolsError as error:
        return show.section_error(error)


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
    if desk.store.note is not None:
        found.append(Alert(severity="medium", code="ledger-moved", message=desk.store.note))
    if answers.queue.error is not None:
        found.insert(0, Alert(severity="critical", code=answers.queue.error.code, message=answers.queue.error.message))
    elif answers.jobs.error is None:
        found += _crowded(answers.jobs.value().pending_jobs)
    if answers.jobs.error is None:
        found += answers.unmanaged
    found += _slow(desk, answers.verdict)
    if answers.nodes.error is None:
        found += _down(answers.nodes.value())
    return found


def _down(nodes: Sequence[Node]) -> list[Alert]:
    """Nodes that run nothing although nobody took them away."""
    bad = [f"{node.name} ({node.state})" for node in nodes if troubled(node)]
    if not bad:
        return []
    which = ", ".join(bad[:_NAMED]) + (f" and {len(bad) - _NAMED} more" if len(bad) > _NAMED else "")
    return [Alert(severity="medium", code="nodes-down", message=f"Nodes down, failing or silent: {which}.")]


def _crowded(pending: int) -> list[Alert]:
    if not pending:
        return []
    from slurm_agent_tools.diagnosis.kinds import crowded  # noqa: PLC0415 - where nothing waits nothing is told

    return list(crowded(pending))


def _slow(desk: Desk, verdict: load.Verdict) -> list[Alert]:
    """A controller that should be asked less."""
    if verdict.kind == "calm":
        return []
    what = "answers slowly" if verdict.kind == "loaded" else "is not busy but lets our commands wait (a rate limit)"
    message = (
        f"The controller {what}: {verdict.seconds} s for one command. It is asked less: waits look"
        f" {verdict.factor} times less often, and answers may be {desk.slurm.age_limit:.0f} s old."
    )
    return [Alert(severity="medium", code=f"controller-{verdict.kind}", message=message)]


def _summary(answers: Answers, broken: list[str]) -> str:
    if answers.queue.error is not None:
        return f"Slurm could not be read: {answers.queue.error.message} {answers.queue.error.hint}".strip()
    own = answers.jobs.value()
    text = (
        f"{own.running_jobs} running and {own.pending_jobs} pending jobs;"
        f" {own.slots_left} of {own.max_concurrent} slots left."
    )
    text += " Submissions are switched off in the policy." if answers.closed else ""
    return text + (f" Not readable: {', '.join(broken)}." if broken else "")
