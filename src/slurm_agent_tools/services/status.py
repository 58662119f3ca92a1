"""get_status: what the cluster and the project look like, and whether to submit now. Each section stands alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

from slurm_agent_tools.errors import AgentToolsError, SlurmError, SlurmUnreachable, StorageError
from slurm_agent_tools.insights import capacity
from slurm_agent_tools.models.arguments import GetStatus, Section
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.node import Node, Partition
from slurm_agent_tools.models.shapes import Alert, ResultBrief, SectionError
from slurm_agent_tools.models.status_answer import (
    ClusterSection,
    DiskSection,
    LadderShown,
    PolicySection,
    SlurmSection,
    StatusReply,
)
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.services import jobs, my_jobs, present, recovery
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all
from slurm_agent_tools.slurm.commands.squeue import Queue
from slurm_agent_tools.slurm.questions import CALM, ClusterInfo, LoadVerdict
from slurm_agent_tools.units import how_many, human_memory, parse_job_id

_NUMBERS = re.compile(r"\s(?P<total>\d+)\s+(?P<used>\d+)\s+(?P<free>\d+)\s+(?:\d+%|-)\s")  # POSIX `df -P -k`

_BLOCK = 1024


async def disk_room(context: ClusterContext) -> DiskSection:
    """Bytes in all and free where the jobs run. Raises StorageError."""
    root = context.there.root
    try:
        done = await context.transport.runner.run(["df", "-P", "-k", "--", root])
    except SlurmError as error:
        raise StorageError(f"the free space of {root} cannot be read: {error.message}", hint=error.hint) from error
    rows = done.stdout.decode("utf-8", "replace").splitlines()
    found = _NUMBERS.search(rows[-1]) if len(rows) > 1 else None
    if done.exit_code != 0 or found is None:
        raise StorageError(f"the free space of {root} cannot be read from df", hint="Run `df -P -k` there.")
    free = int(found["free"]) * _BLOCK
    return DiskSection(path=root, total_bytes=int(found["total"]) * _BLOCK, free_bytes=free, free=human_memory(free))


_DEFAULT: tuple[Section, ...] = ("jobs", "gpu", "queue", "partitions", "policy")

_PARTITIONS_AGE = 60.0

_SHORT_QUEUE = 1000

_SOURCES = {
    "jobs": ("queue",), "queue": ("queue", "nodes"), "gpu": ("nodes",), "nodes": ("nodes",),
    "partitions": ("partitions", "nodes"),
}  # fmt: skip

_COMPARED = 100  # estimates of each kind; of the last 50 it is told how many held

_RECENT = timedelta(days=1)


class Answers:
    """What Slurm said to the questions of one call, each with its own answer or error."""

    def __init__(self, context: ClusterContext, ask: GetStatus) -> None:
        self.context = context
        self.named, self.fresh = "queue" in (ask.sections or ()), ask.refresh
        self.broken_off: list[Alert] = []
        age = 0 if ask.refresh else None
        self.queue: ConcurrentQuestion[Queue] = ConcurrentQuestion(partial(context.slurm.queue, max_age=age))
        self.nodes: ConcurrentQuestion[tuple[Node, ...]] = ConcurrentQuestion(partial(context.slurm.nodes, max_age=age))
        self.partitions: ConcurrentQuestion[dict[str, Partition]] = ConcurrentQuestion(
            partial(context.slurm.partitions, fresh=ask.refresh, max_age=_PARTITIONS_AGE)
        )
        self.info: ConcurrentQuestion[ClusterInfo] = ConcurrentQuestion(context.slurm.info)
        self.recent: ConcurrentQuestion[tuple[list[Job], str | None]] = ConcurrentQuestion(
            partial(jobs.recent_failures, context, context.clock.now() - _RECENT)
        )
        self.jobs: ConcurrentQuestion[SlurmSection] = ConcurrentQuestion(self._mine)
        self.managed: frozenset[int] = frozenset()
        self.unmanaged: list[Alert] = []
        self.verdict = CALM
        self.closed = context.policy.policy.submissions == "off"
        self.lately = capacity.RecentWaits()
        self.estimates: str | None = None
        self.results = ConcurrentQuestion(partial(_results, context))
        self.disk = ConcurrentQuestion(partial(disk_room, context))

    async def gather(self, wanted: set[str]) -> None:
        """Ask everything that is wanted at once; the caller's jobs need the queue first."""
        extra: list[ConcurrentQuestion[Any]] = []
        if "errors" in wanted:
            extra.append(self.recent)
        if "results" in wanted:
            extra.append(self.results)
        if "disk" in wanted:
            extra.append(self.disk)
        await ask_all(self.queue, self.nodes, self.partitions, self.info, *extra)
        if self.queue.error is None:
            self.broken_off = await recovery.complete(self.context, self.queue.value())
            await recovery.ended(self.context, self.queue.value())
            self.managed = await jobs.managed(self.context)
        await ask_all(self.jobs)
        if "queue" in wanted and self.queue.error is None:
            self.lately = await _lately(self.context, self.queue.value(), named=self.named, fresh=self.fresh)
            self.estimates = await _how_estimates_held(self.context)
        self.verdict = await self.context.slurm.diagnose()

    async def _mine(self) -> SlurmSection:
        rows = self.context.slurm.mine(self.queue.value())
        active = rows.going()
        self.unmanaged = my_jobs.unmanaged(self.context, active, self.managed)
        return await my_jobs.jobs_section(self.context, active, rows.going(on=False), self.managed)


async def _lately(context: ClusterContext, queue: Queue, *, named: bool, fresh: bool) -> capacity.RecentWaits:
    """What the accounting and the reservations add, asked where somebody waits and it is cheap, or by name.

    Over a long queue and on an idle cluster only what is kept from the last 10 minutes is told.
    """
    waiting = queue.states()["PENDING"] > 0 and len(queue) <= _SHORT_QUEUE
    if not (named or waiting or context.slurm.waits_kept):
        return capacity.RecentWaits()
    from slurm_agent_tools.insights import measured_waits, queue_history  # noqa: PLC0415 - not needed on an idle cluster

    past = await queue_history.recent_waits(context, ask=named or waiting, fresh=fresh)
    begins = await queue_history.maintenance(context) if named else None
    return capacity.RecentWaits(measured_waits.of_queue(past, context.slurm.lookback.age), begins, context.clock.now())


async def _how_estimates_held(context: ClusterContext) -> str | None:
    """Of the last ones that were compared with what happened; None where they are few."""
    ended = await context.db(context.store.ended_estimates, context.owner, 2 * _COMPARED)
    if not ended:
        return None
    from slurm_agent_tools.planning import foretold  # noqa: PLC0415 - of most projects nothing was foretold

    return foretold.how_often_held(ended)


async def _results(context: ClusterContext) -> list[ResultBrief]:
    from slurm_agent_tools.services import results  # noqa: PLC0415 - loads all that diagnoses failures

    return await results.brief(context)


async def get_status(context: ClusterContext, ask: GetStatus, caller: Caller) -> StatusReply:
    """Never raises for Slurm: a section that could not be read holds the error instead."""
    wanted = set(ask.sections or _DEFAULT) | ({"nodes"} if ask.detailed else set())
    answers = Answers(context, ask)
    await answers.gather(wanted)
    if answers.jobs.error is None:
        await context.db(context.store.mark_read, context.owner, "status", context.clock.now())
    drifted = await _drifted(context, caller, answers, fresh=ask.refresh)
    makers = _makers(context, answers)
    told = answers.queue.error
    sections = {name: _section(makers[name], None if name == "jobs" else told) for name in makers if name in wanted}
    if "jobs" in sections:
        sections["slurm"] = sections.pop("jobs")
        await _mark_shown(context, sections["slurm"], answers.managed)
    broken = [name for name, section in sections.items() if isinstance(section, SectionError)]
    return StatusReply(
        status="partial" if broken else "ok",
        summary=_summary(answers, broken),
        as_of=context.clock.now(),
        cluster=_cluster(answers),
        ladders=await _ladders(context, answers, every=ask.detail == "full") if "jobs" in wanted else [],
        alerts=[*drifted, *answers.broken_off, *_alerts(context, answers)],
        slurm_calls=dict(context.slurm.calls) if ask.detailed else None,
        age_seconds=_ages(context, wanted),
        **sections,
    )


async def _mark_shown(context: ClusterContext, section: SlurmSection | SectionError, managed: frozenset[int]) -> None:
    """Note which of the guard's jobs this caller has now seen."""
    if isinstance(section, SlurmSection):
        shown = {parse_job_id(job.job_id).base for job in (*section.jobs, *section.finished_recently)}
        await jobs.mark_shown(context, shown & managed)


async def _ladders(context: ClusterContext, answers: Answers, *, every: bool) -> list[LadderShown]:
    """The stages of each configuration that was tried; none where the queue could not be read."""
    if answers.queue.error is not None or not await context.db(context.store.staged, context.owner, limit=1):
        return []
    from slurm_agent_tools.insights import stage_facts  # noqa: PLC0415 - few jobs are stages

    return await stage_facts.shown(context, context.slurm.mine(answers.queue.value()).going().bases, every=every)


async def _drifted(context: ClusterContext, caller: Caller, answers: Answers, *, fresh: bool) -> list[Alert]:
    if answers.queue.error is not None:
        return []
    managed = context.slurm.mine(answers.queue.value()).jobs(sorted(answers.managed))
    if not managed:
        return []
    from slurm_agent_tools.services import drift, job_alerts  # noqa: PLC0415 - without jobs nothing of them is needed

    drifted = await drift.DriftWatch(context, caller, "get_status", fresh=fresh).at(managed)
    return [*await job_alerts.of_all(context, managed, answers.nodes.answer, answers.partitions.answer), *drifted]


def _ages(context: ClusterContext, wanted: set[str]) -> dict[str, float]:
    """How long ago Slurm was asked for what each section shows; the queue section rests on queue and nodes."""
    ages = context.slurm.ages
    found = {
        name: max((ages[source] or 0.0 for source in _SOURCES[name]), default=0.0) for name in wanted & set(_SOURCES)
    }
    return {name: round(found[name], 1) for name in sorted(found)}


def _makers(context: ClusterContext, answers: Answers) -> dict[str, Callable[[], Any]]:
    return {
        "jobs": answers.jobs.value,
        "gpu": lambda: capacity.gpus(answers.nodes.value()),
        "queue": lambda: capacity.queue(
            answers.queue.value().states(),
            answers.nodes.value(),
            answers.jobs.value(),
            replace(answers.lately, closed=answers.closed, refused=context.refused()),
            answers.partitions.answer,
        ).model_copy(update={"estimates": answers.estimates}),
        "partitions": lambda: capacity.partitions(answers.partitions.value(), answers.nodes.value()),
        "nodes": lambda: [capacity.node(node) for node in answers.nodes.value()],
        "errors": lambda: [present.brief_job(job) for job in answers.recent.value()[0]][:20],
        "results": answers.results.value,
        "disk": answers.disk.value,
        "policy": lambda: policy_section(context.policy),
    }


def _section(make: Callable[[], Any], told: AgentToolsError | None) -> Any:
    """A section, or its error: in brief where it is as of the queue, which the summary tells."""
    try:
        return make()
    except AgentToolsError as error:
        same = isinstance(told, SlurmUnreachable) and error.code == told.code
        return present.in_summary(SlurmUnreachable) if same else present.section_error(error)


def policy_section(loaded: LoadedPolicy) -> PolicySection:
    """The policy in force, in brief."""
    return PolicySection(
        name=loaded.name,
        version=loaded.version,
        sha256=loaded.sha256,
        source=loaded.source,
        limits=loaded.limits_in_brief(),
    )


def _cluster(answers: Answers) -> ClusterSection:
    reachable = answers.queue.error is None
    if answers.info.error is not None:
        return ClusterSection(name=None, version=None, reachable=reachable)
    info = answers.info.value()
    known_as = answers.context.cluster if answers.context.cluster != info.name else None
    return ClusterSection(
        name=info.name, version=info.version, reachable=reachable, accounting=info.accounting, known_as=known_as
    )


def _alerts(context: ClusterContext, answers: Answers) -> list[Alert]:
    found = [Alert(severity="medium", code="policy-note", message=note) for note in context.policy.notes]
    found += [Alert(severity="medium", code="not-held", message=note) for note in context.notes()]
    if context.store.note is not None:
        found.append(Alert(severity="medium", code="ledger-moved", message=context.store.note))
    if answers.queue.error is not None:
        found.insert(0, Alert(severity="critical", code=answers.queue.error.code, message=answers.queue.error.message))
    elif answers.jobs.error is None:
        found += _crowded(answers.jobs.value().pending_jobs)
    if answers.jobs.error is None:
        found += answers.unmanaged
    found += _slow(context, answers.verdict)
    found += _unaccounted(context, answers)
    if answers.nodes.error is None:
        found += _down(answers.nodes.value())
    return found


def _unaccounted(context: ClusterContext, answers: Answers) -> list[Alert]:
    """An accounting that was asked and did not answer, and a list of errors that is not whole."""
    why = answers.recent.answer[1] if answers.recent.answer is not None else None
    error = context.slurm.accounting.failed
    if why is None and error is not None:
        why = f"{error.message} Jobs wait, run and are submitted without it; how they ended is told by the controller."
    return [] if why is None else [Alert(severity="medium", code="accounting-missing", message=why)]


def _down(nodes: Sequence[Node]) -> list[Alert]:
    if not any(node.troubled for node in nodes):
        return []
    from slurm_agent_tools.diagnosis.alert_types import nodes_down  # noqa: PLC0415 - on most clusters nothing is told

    return list(nodes_down(nodes))


def _crowded(pending: int) -> list[Alert]:
    if not pending:
        return []
    from slurm_agent_tools.diagnosis.alert_types import crowded  # noqa: PLC0415 - where nothing waits nothing is told

    return list(crowded(pending))


def _slow(context: ClusterContext, verdict: LoadVerdict) -> list[Alert]:
    """A controller that should be asked less."""
    if verdict.kind == "calm":
        return []
    what = "answers slowly" if verdict.kind == "loaded" else "is not busy but lets our commands wait (a rate limit)"
    message = f"The controller {what}: {verdict.seconds} s for one command. It is asked less: waits look"
    message += f" {verdict.factor} times less often, and answers may be {context.slurm.age_limit:.0f} s old."
    return [Alert(severity="medium", code=f"controller-{verdict.kind}", message=message)]


def _summary(answers: Answers, broken: list[str]) -> str:
    if answers.queue.error is not None:
        return f"Slurm could not be read: {answers.queue.error.message} {answers.queue.error.hint}".strip()
    own = answers.jobs.value()
    text = f"{own.running_jobs} running and {how_many(own.pending_jobs, 'pending job')};"
    text += f" {own.slots_left} of {own.max_concurrent} slots left."
    text += " Submissions are switched off in the policy." if answers.closed else ""
    return text + (f" Not readable: {', '.join(broken)}." if broken else "")
