"""A queue that is kept fed: the free slots go to all campaigns of the project by their shares, the starved first.

Each tick looks at every campaign once, and then hands out slot by slot: one run at a time, as a job of its own, through
the guard. Nothing is kept between ticks but what the ledger has anyway, so that it can be left at any moment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurm_agent_tools.api.campaign_tools import one_pass, opened
from slurm_agent_tools.api.stage_code import StageHashes
from slurm_agent_tools.campaigns.campaign_pass import AWAY, SlotTurn
from slurm_agent_tools.campaigns.driver import Advanced
from slurm_agent_tools.campaigns.event_sentences import plain
from slurm_agent_tools.campaigns.file_reader import FOLDER, NAME
from slurm_agent_tools.campaigns.next_step import active, expected_seconds
from slurm_agent_tools.campaigns.ports import TrialLook
from slurm_agent_tools.campaigns.state import CampaignState, TrialState
from slurm_agent_tools.errors import ConfigError, InputError, SlurmError, StorageError
from slurm_agent_tools.fleet import slot_filling
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.slot_filling import Contender, RunNeed
from slurm_agent_tools.models.campaign import Trial, TrialEnd, TrialId
from slurm_agent_tools.models.campaign_answer import FedCampaign, FeedReply
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage
from slurm_agent_tools.services import project_paths, submission_facts
from slurm_agent_tools.services.context import Caller, ClusterContext

_SHORTEST, _LONGEST, _OF_A_RUN = 5.0, 60.0, 20
"""Seconds of a tick: a twentieth of the shortest run under way, within these."""

_HOUR = 3600

_PARTITIONS_AGE = 60.0

WINDOW = timedelta(hours=24)
"""Over so long the used time is compared with the shares, unless the caller says otherwise."""

PartitionFor = Callable[[CampaignStage, Trial], str | None]


@dataclass(slots=True)
class _Standing:
    """One campaign at this tick. `broken`: why its file cannot be read. `why`: what keeps it from sending more.

    `joined`: when it was seen first.
    """

    name: str
    joined: datetime
    file: CampaignFile | None = None
    last: Advanced | None = None
    broken: str | None = None
    why: str | None = None

    @property
    def over(self) -> bool:
        """Whether nothing is to be done for it any more."""
        last = self.last
        return last is not None and last.state.over and not last.undone and not self.active

    @property
    def active(self) -> int:
        """How many of its runs are queued or running."""
        return 0 if self.last is None else active(self.last.state)

    @property
    def ready(self) -> int:
        """How many of its runs could be sent."""
        return 0 if self.last is None else len(self.last.ready)

    @property
    def takes_part(self) -> bool:
        """Whether it has runs, queued, running or to be sent."""
        return bool(self.active or self.ready)

    @property
    def began(self) -> datetime:
        """Since when it has been taking part: its first run, else when it was seen first."""
        return (_begun(self.last.state) if self.last is not None else None) or self.joined

    @property
    def asks(self) -> bool:
        """Whether only a person can help it on."""
        stuck = self.last is not None and self.last.state.question is not None and not self.takes_part
        return self.broken is not None or stuck


class CampaignFeed:
    """All campaigns of a project over one cluster. `pause`: seconds until the next tick; `leaving`: send no more."""

    def __init__(self, context: ClusterContext, caller: Caller, window: timedelta = WINDOW) -> None:
        self.context, self.caller, self.window = context, caller, window
        self.pause, self.leaving = _SHORTEST, False
        self._standings: dict[str, _Standing] = {}
        self._hashes = StageHashes()
        self._happened: list[str] = []
        self._submitted: list[str] = []
        self._free: int | None = None
        self._no_room: str | None = None
        self._ticks = self._with_room = 0

    async def tick(self) -> FeedReply:
        """Look at all, fill the free slots, and tell how all stand. Raises StorageError."""
        self._happened, self._submitted, self._hashes = [], [], StageHashes()
        names = await self._names()
        now = self.context.clock.now()
        self._standings = {name: self._standings.get(name) or _Standing(name, now) for name in names}
        for one in self._standings.values():
            if not self.leaving:
                await self._go_on(one, SlotTurn())
        await self._count()
        await self._fill()
        self._ticks += 1
        full = not self._free or not any(one.ready for one in self._standings.values())
        self._with_room += not (full or self.leaving)
        self.pause = self._until_next()
        return self._reply()

    async def _names(self) -> list[str]:
        """The campaigns that have a file, by name."""
        here = self.context.here
        found = await here.files.list(await project_paths.resolve(here, "campaigns", FOLDER)) or []
        stems = (one.removesuffix(".yaml") for one in found if one.endswith(".yaml"))
        return sorted(stem for stem in stems if NAME.fullmatch(stem))

    async def _go_on(self, one: _Standing, turn: SlotTurn) -> tuple[str, ...]:
        """One pass of a campaign; the jobs that it sent. What is wrong with its file is kept, others go on."""
        try:
            campaign = await opened(self.context, one.name)
        except (InputError, StorageError) as error:  # a file that others may not read, or a link that leads to itself
            one.broken = f"{error.message} {error.hint}".strip()
            return ()
        try:
            done = await one_pass(self.context, self.caller, campaign, self._hashes, turn=turn)
        except (ConfigError, InputError) as error:
            one.broken = f"{error.message} {error.hint}".strip()
            return ()
        one.file, one.last, one.broken, one.why = campaign.file, done, None, None
        self._happened += [f"{one.name}: {line}" for line in done.happened]
        self._submitted += done.submitted
        return done.submitted

    # --- slots --------------------------------------------------------------------------------------------------------

    async def _count(self) -> None:
        """The slots that are free, as the guard counts them."""
        self._free, self._no_room = None, None
        try:
            self._free = await submission_facts.free_slots(self.context)
        except SlurmError as error:
            self._no_room = f"the queue cannot be read: {error.message}"
            return
        if not self._free:
            most = self.context.policy.policy.limits.max_concurrent_jobs
            foreign = max(0, most - sum(one.active for one in self._standings.values()))
            beside = f", {foreign} by jobs of no campaign" if foreign else ""
            self._no_room = f"all {most} slots that the policy lets you have are taken{beside}"

    async def _fill(self) -> None:
        """Hand out the free slots one by one, to whoever is furthest behind its share then."""
        if not self._free or not any(one.ready for one in self._standings.values()):
            return
        place = await self._placing()
        held: set[str] = set()
        while self._free and not self.leaving:
            turn = slot_filling.next_one([one for one in self._contenders() if one.name not in held])
            if turn is None:
                return
            standing = self._standings[turn.name]
            if await self._go_on(standing, SlotTurn(1, place)):
                self._free -= 1
            else:
                held.add(turn.name)
                standing.why = _held_up(standing)

    def _contenders(self) -> list[Contender]:
        """All that take part, with what they had in the window: since all of them have been taking part."""
        now = self.context.clock.now()
        there = [one for one in self._standings.values() if one.takes_part]
        since = max((one.began for one in there), default=now)
        shares = self._shares()
        return [self._contender(one, shares[one.name], max(since, now - self.window), now) for one in there]

    def _shares(self) -> dict[str, float]:
        known = {name: one.file.share if one.file is not None else None for name, one in self._standings.items()}
        working = [name for name, one in self._standings.items() if one.takes_part]
        return slot_filling.shares_of(known, self.context.settings.fleet.quotas, working)

    def _contender(self, one: _Standing, share: float, since: datetime, now: datetime) -> Contender:
        last = one.last
        if last is None:
            return Contender(one.name, share)
        return Contender(
            one.name,
            share,
            used=_gpu_seconds_used(last.state, last.looks, since, now),
            ahead=_gpu_seconds_ahead(last.state, last.looks, now),
            wants=bool(last.ready),
        )

    async def _placing(self) -> PartitionFor:
        """Which partition a run goes to, by one look at nodes and partitions; none where they cannot be read."""
        context, slurm = self.context, self.context.slurm
        config = None
        with contextlib.suppress(SlurmError):
            config = await slurm.configuration()
        try:
            nodes = await slurm.nodes()
            partitions = await slurm.partitions(max_age=_PARTITIONS_AGE)
        except SlurmError as error:
            self._happened.append(f"Runs go where Slurm puts them: its nodes cannot be read ({plain(error.message)}).")
            return lambda _, __: None
        facts = FleetFacts(
            now=context.clock.now(),
            settings=context.settings.fleet,
            nodes=tuple(nodes),
            partitions=partitions,
            preemption=None if config is None else config.get("PreemptType", "preempt/none").removeprefix("preempt/"),
        )
        return lambda stage, trial: slot_filling.partition_for(_need(stage, trial), facts)

    # --- what is told -------------------------------------------------------------------------------------------------

    def _until_next(self) -> float:
        if self._free is None:
            return AWAY
        states = [one.last.state for one in self._standings.values() if one.last is not None]
        runs = [seconds for state in states if (seconds := _shortest_expected(state)) is not None]
        scale = self.context.settings.slurm.poll_scale
        return max(0.5, scale * min(_LONGEST, max(_SHORTEST, min(runs, default=0.0) / _OF_A_RUN)))

    def _reply(self) -> FeedReply:
        every = list(self._standings.values())
        told = self._told()
        going = [one for one in every if not (one.over or one.asks)]
        asking = [one.name for one in every if one.asks and not one.over]
        ready = sum(one.ready for one in told)
        summary = f"{len(every)} campaigns: {sum(one.active for one in told)} runs active, {len(self._submitted)} sent"
        summary += f", {ready} ready." if ready else "."
        if not every:
            summary = f"No campaign is in {FOLDER}/."
        if ready and not self._submitted:
            summary += f" Nothing can be sent now: {self._no_room or 'see why of each'}."
        if asking:
            summary += f" A person has to decide about {', '.join(asking)}."
        return FeedReply(
            status="running" if going else "needs_decision" if asking else "finished",
            summary=summary,
            as_of=self.context.clock.now(),
            campaigns=told,
            free_slots=self._free,
            ticks=self._ticks,
            ticks_with_room=self._with_room,
            submitted=list(self._submitted),
            happened=list(self._happened),
        )

    def _told(self) -> list[FedCampaign]:
        contenders = {one.name: one for one in self._contenders()}
        shares, now = self._shares(), self.context.clock.now()
        used = {one.name: self._used(one, now) for one in self._standings.values()}
        part, at_work = slot_filling.parts(used), sum(one.share for one in contenders.values())
        all_used = sum(one.used for one in contenders.values())
        return [
            FedCampaign(
                name=name,
                status="unreadable" if one.last is None or one.broken is not None else one.last.state.status,
                share=round(shares[name], 4),
                used_gpu_hours=round(used[name] / _HOUR, 3),
                part=round(part[name], 4),
                active=one.active,
                ready=one.ready,
                starved=name in contenders and slot_filling.starved(contenders[name], all_used, at_work),
                why=self._why(one),
            )
            for name, one in self._standings.items()
        ]

    def _used(self, one: _Standing, now: datetime) -> float:
        last = one.last
        return 0.0 if last is None else _gpu_seconds_used(last.state, last.looks, now - self.window, now)

    def _why(self, one: _Standing) -> str | None:
        """What keeps it from sending more."""
        if one.broken is not None or one.last is None:
            return one.broken
        if one.over:
            return None
        question = one.last.state.question
        if question is not None and not one.last.ready:
            return f"a person has to decide: {plain(question.text)}"
        if one.last.ready:
            return one.why or self._no_room
        return one.last.why or "what comes next is known when its runs have ended"


def _held_up(one: _Standing) -> str:
    last = one.last
    return one.broken or (last.why if last is not None else None) or "the guard did not take its next run"


def _need(stage: CampaignStage, trial: Trial) -> RunNeed:
    """What each node has to have."""
    asked, nodes = trial.request, trial.request.nodes or 1
    memory = stage.resources.gpu_memory
    return RunNeed(
        seconds=asked.time_limit_seconds,
        gpus=-(-asked.gpus // nodes),
        cpus=-(-(asked.cpus or 1) // nodes),
        memory_bytes=asked.memory_bytes or 0,
        nodes=nodes,
        gpu_memory=None if memory is None else memory / 2**30,
    )


# --- What a campaign had of the shared slots, in GPU seconds: a run without GPUs counts as one with one ---------------


def _weight(trial: Trial) -> int:
    """How many GPUs it counts as."""
    return max(1, trial.request.gpus)


def _gpu_seconds_used(
    state: CampaignState, looks: Mapping[TrialId, TrialLook], since: datetime, now: datetime
) -> float:
    """What its runs had between both moments, those that run included."""
    total = 0.0
    for one in state.trials.values():
        if one.end is not None and one.trial.reuses is None:
            total += _weight(one.trial) * _ended_seconds(state, one, one.end, since)
        elif one.phase == "sent":
            total += _weight(one.trial) * _running_seconds(looks.get(one.trial.id), since, now)
    return total


def _gpu_seconds_ahead(state: CampaignState, looks: Mapping[TrialId, TrialLook], now: datetime) -> float:
    """What its queued and running runs may yet take."""
    active = [*state.in_phase("sending"), *state.in_phase("sent")]
    return sum(_weight(one.trial) * _left(state, one, looks.get(one.trial.id), now) for one in active)


def _begun(state: CampaignState) -> datetime | None:
    """When its first run was sent; None before."""
    return min((batch.at for batch in state.batches.values()), default=None)


def _shortest_expected(state: CampaignState) -> float | None:
    """Seconds that the shortest of its active runs may take; None where none is."""
    active = [*state.in_phase("sending"), *state.in_phase("sent")]
    return min((expected_seconds(state, one.trial) for one in active), default=None)


def _ended_seconds(state: CampaignState, one: TrialState, end: TrialEnd, since: datetime) -> float:
    """Of an ended run; of one whose moments nobody tells all of it, where it was sent in the window."""
    if end.started is not None and end.ended is not None:
        whole = (end.ended - max(end.started, since)).total_seconds()
        return max(0.0, whole if end.run_seconds is None else min(whole, end.run_seconds))
    batch = state.batches.get(one.key or "")
    return (end.run_seconds or 0.0) if batch is not None and batch.at >= since else 0.0


def _running_seconds(look: TrialLook | None, since: datetime, now: datetime) -> float:
    if look is None or look.started is None or look.phase != "running":
        return 0.0
    return max(0.0, (now - max(look.started, since)).total_seconds())


def _left(state: CampaignState, one: TrialState, look: TrialLook | None, now: datetime) -> float:
    expected = expected_seconds(state, one.trial)
    if look is None or look.started is None:
        return expected
    return max(0.0, expected - (now - look.started).total_seconds())
