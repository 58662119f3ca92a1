"""get_fleet: one look at nodes, queue and partitions, and the sections made of it. Each section stands alone."""

from __future__ import annotations

import contextlib
import heapq
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio.to_thread

from slurm_agent_tools.backends import pages
from slurm_agent_tools.errors import AgentToolsError, SlurmError, SlurmUnreachable
from slurm_agent_tools.fleet.fleet_facts import FleetFacts, GpuPoints
from slurm_agent_tools.fleet.sections import spending
from slurm_agent_tools.fleet.sections.idle_use import quiet_since
from slurm_agent_tools.fleet.sections.section_list import SECTIONS, FleetSectionMaker
from slurm_agent_tools.fleet.use_windows import KeptGpuLooks, KeptLooks
from slurm_agent_tools.insights import gpu_metrics, usage
from slurm_agent_tools.insights.gpu_metrics import GpuSeries
from slurm_agent_tools.insights.queue_history import recent_waits
from slurm_agent_tools.models.fleet_answer import FleetReply, NotMeasured
from slurm_agent_tools.models.job import HELD_UP, Job, PastWaits
from slurm_agent_tools.models.shapes import Alert, SectionError
from slurm_agent_tools.models.toolset_arguments import GetFleet
from slurm_agent_tools.services import job_alerts, present
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all
from slurm_agent_tools.slurm.commands.squeue import Queue
from slurm_agent_tools.slurm.hidden_jobs import hides_jobs
from slurm_agent_tools.slurm.occasional_questions import Use
from slurm_agent_tools.units import JobId, parse_job_id

_PARTITIONS_AGE, _RUNS = 60.0, 5000

_LATER = frozenset({"use", "past", "alerts"})
"""What is asked once the caller's jobs are known; the caller's accounts, once a partition is not for everybody."""

_OWN = 50
"""Jobs of the caller that are looked at one by one."""

_SERIES = timedelta(hours=2)

_STEPS = 8
"""Jobs that nvidia-smi is run in for one look."""

looks: defaultdict[str, KeptLooks] = defaultdict(KeptLooks)
"""Earlier looks of this process, by cluster: the number of a job is another job's elsewhere."""

gpu_looks: defaultdict[str, KeptGpuLooks] = defaultdict(KeptGpuLooks)
"""What nvidia-smi said in earlier looks, alike."""


async def get_fleet(context: ClusterContext, ask: GetFleet) -> FleetReply:
    """Never raises for Slurm: a section that could not be read holds the error. Raises InputError for `match`."""
    wanted = _wanted(ask)
    facts, errors = await look(context, {name for one in wanted.values() for name in (*one.needs, *one.helps)}, ask)
    made, why = dict[str, Any](), list[AgentToolsError]()
    for name, maker in wanted.items():
        made[name] = _section(maker, facts, errors, why if ask.detail != "full" else [])
    made = {name: one for name, one in made.items() if wanted[name].asked is None or not isinstance(one, SectionError)}
    broken = [name for name, one in made.items() if isinstance(one, SectionError)]
    told: dict[str, NotMeasured] = {}
    for name, maker in sorted(wanted.items(), key=lambda pair: pair[0] != "idle"):  # its own come first
        told |= {} if name in broken else {one.what: one for one in maker.unknown(facts)}
    said = [maker.sentence(made[name]) for name, maker in wanted.items() if name in made and name not in broken]
    said += [f"Not readable: {', '.join(broken)}."] if broken else []
    said += [f"{one.message} {one.hint}".strip() for one in why] if broken else []
    return FleetReply(
        status="partial" if broken else "ok",
        summary=" ".join(text for text in said if text),
        as_of=context.clock.now(),
        not_measured=list(told.values()),
        **made,
    )


async def look(
    context: ClusterContext, wanted: set[str], ask: GetFleet
) -> tuple[FleetFacts, dict[str, AgentToolsError]]:
    """What is known of these sources, by their words in `section_list`, and why others are not known."""
    answers = _Answers(context)
    await answers.gather(wanted)
    errors = {name: one.error for name, one in answers.questions.items() if one.error is not None}
    return await answers.facts(ask), errors


def _wanted(ask: GetFleet) -> dict[str, FleetSectionMaker]:
    """The sections that are asked for; with `match` and no others that alone."""
    named = set(ask.sections or (() if ask.match is not None else SECTIONS))
    named = named | {"match"} if ask.match is not None else named - {"match"}
    return {name: maker for name, maker in SECTIONS.items() if (maker.asked or name) in named}


def _section(
    maker: FleetSectionMaker, facts: FleetFacts, errors: Mapping[str, AgentToolsError], why: list[AgentToolsError]
) -> Any:
    """What it is made of, or why that could not be read. Raises InputError for what the caller asked.

    Where Slurm is out of reach the first section has the whole error, which `why` keeps for the summary, and the others
    point there: seven times the same hint is four kilobytes. In full, for pages that show one section, each has it.
    """
    missing = next((errors[source] for source in maker.needs if source in errors), None)
    if missing is None:
        return maker.make(facts)
    if not isinstance(missing, SlurmUnreachable):
        return present.section_error(missing)
    if any(one.code == missing.code for one in why):
        return present.in_summary(type(missing))
    why.append(missing)
    return present.section_error(missing)


def _prices(context: ClusterContext) -> pages.GpuPrices:
    """The price of a GPU hour by partition, as the pages of this cluster say. Raises ConfigError."""
    every, currency = pages.found_pages(Path(context.project)), context.settings.rates.currency
    return pages.gpu_prices(every, context.cluster, currency)


class _Answers:
    """What was read for one call, each with its own answer or error."""

    def __init__(self, context: ClusterContext) -> None:
        self.context = context
        slurm = context.slurm
        self.questions: dict[str, ConcurrentQuestion[Any]] = {
            "nodes": ConcurrentQuestion(slurm.nodes),
            "partitions": ConcurrentQuestion(partial(slurm.partitions, max_age=_PARTITIONS_AGE)),
            "reservations": ConcurrentQuestion(slurm.running.reservations),
            "queue": ConcurrentQuestion(slurm.queue),
            "past": ConcurrentQuestion(self._past),
            "use": ConcurrentQuestion(self._use),
            "ran": ConcurrentQuestion(slurm.accounting.week),
            "alerts": ConcurrentQuestion(self._alerts),
            "associations": ConcurrentQuestion(partial(slurm.accounting.associations, slurm.info)),
            "prices": ConcurrentQuestion(partial(anyio.to_thread.run_sync, _prices, context)),
        }
        self.mine: tuple[Job, ...] = ()
        self.not_asked, self.waiting, self.series = 0, 0, GpuSeries()
        self.gpu_steps: dict[int, GpuPoints] = {}
        self.gpu_notes: dict[int, str] = {}
        self.config = ConcurrentQuestion(slurm.configuration)

    async def gather(self, wanted: set[str]) -> None:
        """Ask all that is wanted at once."""
        more = [self.config] if "partitions" in wanted else []
        first = [one for name, one in self.questions.items() if name in wanted - _LATER - {"associations"}]
        await ask_all(*first, *more)
        if any(one.limited_to for one in (self.questions["partitions"].answer or {}).values()):
            await ask_all(*(self.questions[name] for name in wanted & {"associations"}))
        if self.questions["queue"].answer is not None:
            await self._own_jobs(self.questions["queue"].answer)
            await ask_all(*(self.questions[name] for name in sorted(wanted & _LATER)))

    async def _alerts(self) -> list[Alert]:
        """What there is to see of the caller's jobs, as get_status tells it."""
        nodes, partitions = self.questions["nodes"].answer, self.questions["partitions"].answer
        return await job_alerts.of_all(self.context, self.mine, nodes, partitions)

    async def _past(self) -> PastWaits:
        """What jobs waited here lately; asked only where the caller has some that wait."""
        return await recent_waits(self.context, ask=any(job.state in HELD_UP for job in self.mine))

    async def _own_jobs(self, queue: Queue) -> None:
        """The newest of the caller's active jobs with all that the controller tells of them."""
        active = self.context.slurm.mine(queue).going()
        newest = active.newest(_OWN)
        rows = active.jobs(newest)
        self.mine, self.not_asked = rows, len(active) - len(rows)
        self.waiting = sum(number for state, number in active.states().items() if state in HELD_UP)
        with contextlib.suppress(SlurmError):
            views = await self.context.slurm.jobs([JobId(base) for base in newest], patient=False)
            self.mine = tuple(part for view in views.values() for part in view.tasks or (view.job,) if part.active)
        known = {job.job_id: job for job in self.questions["ran"].answer or ()}
        self.mine = tuple(usage.with_gpus(job, known.get(job.job_id)) for job in self.mine)

    async def _use(self) -> Use:
        """What the steps of running jobs use, and the series of those with GPUs. Raises SlurmError."""
        running, now = [job for job in self.mine if job.state == "RUNNING"], self.context.clock.now()
        holding = {job.raw_id or job.job_id.base: job.started or now for job in running if job.resources.gpus}
        if holding:
            since = max(min(holding.values()), now - _SERIES)
            self.series = await gpu_metrics.series(self.context.settings.gpu_metrics, holding, since, now)
        use = await self.context.slurm.running.use({job.job_id.base for job in running}) if running else {}
        if holding and self.context.settings.fleet.gpu_steps:
            await self._gpu_steps([job for job in running if job.resources.gpus], use)
        return use

    async def _gpu_steps(self, jobs: Sequence[Job], use: Use) -> None:
        """nvidia-smi in the newest of the caller's own jobs that neither Prometheus nor Slurm measures."""
        left = {
            (job.raw_id or job.job_id.base): job
            for job in jobs
            if (number := job.raw_id or job.job_id.base) not in self.series.jobs
            and job.user in {None, self.context.slurm.user}
            and not any(step.gpu_percent is not None for step in use.get(number, ()))
        }
        asked = {(number, left[number].resources.nodes or 1) for number in heapq.nlargest(_STEPS, left)}
        for (number, _), look in (await self.context.slurm.running.gpus(asked)).items():
            held = left[number].resources.gpus or 0
            if look.note is None and len(look.shares) <= held:
                gpu_looks[self.context.cluster].keep(number, self.context.clock.now(), look.shares)
                self.gpu_steps[number] = gpu_looks[self.context.cluster].series(number)
            else:
                others = f"nvidia-smi sees {len(look.shares)} GPUs of the node, and the job has {held}"
                self.gpu_notes[number] = look.note or others

    def _hidden(self, config: Mapping[str, str]) -> bool:
        """Whether the site hides jobs of others, and this user is nobody who sees them all the same."""
        queue, private = self.questions["queue"].answer, hides_jobs(config.get("PrivateData", ""))
        return private and (queue is None or len(self.context.slurm.mine(queue)) == len(queue))

    async def facts(self, ask: GetFleet) -> FleetFacts:
        """All that is known."""
        found = {name: one.answer for name, one in self.questions.items()}
        context, config = self.context, self.config.answer
        since = context.clock.now() - spending.WEEK
        paid = self.questions["ran"].answer is not None
        runs = await context.db(context.store.history, context.owner, since=since, limit=_RUNS) if paid else []
        prices, rates = found["prices"] or pages.GpuPrices(), context.settings.rates
        facts = FleetFacts(
            now=self.context.clock.now(),
            settings=self.context.settings.fleet,
            nodes=found["nodes"] or (),
            partitions=found["partitions"] or {},
            reservations=found["reservations"],
            preemption=None if config is None else config.get("PreemptType", "preempt/none").removeprefix("preempt/"),
            hidden_jobs=self._hidden(config or {}),
            version=(config or {}).get("SLURM_VERSION", ""),
            associations=found["associations"],
            need=ask.match,
            mine=self.mine,
            mine_not_asked=self.not_asked,
            mine_waiting=self.waiting,
            queue=found["queue"].going().by_partition() if found["queue"] is not None else {},
            use=found["use"],
            gpu_series=self.series.jobs,
            gpu_steps=self.gpu_steps,
            gpu_step_notes=self.gpu_notes,
            series_note=self.series.note,
            past=found["past"],
            user=context.slurm.user,
            ran=found["ran"],
            runs={parse_job_id(one.job_id).base: one for one in runs},
            rates=rates if rates.currency else rates.model_copy(update={"currency": prices.currency}),
            partition_prices=prices.by_partition,
            day_cap=context.policy.policy.limits.gpu_hours_per_day,
            alerts=None if found["alerts"] is None else tuple(found["alerts"]),
        )
        return replace(facts, quiet_since=quiet_since(facts, looks[context.cluster]))
