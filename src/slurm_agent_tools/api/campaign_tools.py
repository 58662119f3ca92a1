"""get_campaign and advance_campaign: a campaign's file and what the ledger has of it, read, and carried on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from slurm_agent_tools.api import campaign_view
from slurm_agent_tools.api.campaign_plan import campaign_plan
from slurm_agent_tools.api.campaign_ports import ServicePorts
from slurm_agent_tools.api.stage_code import StageHashes
from slurm_agent_tools.api.trial_looks import running_trials
from slurm_agent_tools.campaigns.batch import check_scripts, needed_texts, run_key
from slurm_agent_tools.campaigns.campaign_pass import SlotTurn
from slurm_agent_tools.campaigns.driver import Advanced, advance
from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.event_record import EventRecord
from slurm_agent_tools.campaigns.file_reader import FOLDER, LARGEST, checked_name, read_campaign
from slurm_agent_tools.campaigns.kept_rounds import next_revision
from slurm_agent_tools.campaigns.next_step import needs_revision
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign import CampaignEvent, CampaignStatus, Stamped, TrialId
from slurm_agent_tools.models.campaign_answer import CampaignCounts, CampaignReply
from slurm_agent_tools.models.campaign_file import CampaignFile
from slurm_agent_tools.models.toolset_arguments import AdvanceCampaign, GetCampaign
from slurm_agent_tools.services import project_paths
from slurm_agent_tools.services.context import Caller, ClusterContext, Progress
from slurm_agent_tools.store.campaign_events import CampaignLedger
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.text import sanitize

_HEARTBEAT = 10.0
"""Seconds after which whoever waits hears that the wait goes on."""


@dataclass(frozen=True, slots=True)
class OpenedCampaign:
    """A campaign as its file says and as it stands. `data`: the file now; `text`: what `file` was read from.

    `note`: what to tell beside. `absent`: why there is no file now; `data` is then the one that went on last.
    """

    name: str
    data: bytes
    text: str
    file: CampaignFile
    state: CampaignState
    note: str = ""
    absent: InputError | None = None


async def opened(context: ClusterContext, name: str) -> OpenedCampaign:
    """Its file as it is now, and what the ledger has of it. Raises InputError and StorageError.

    A file that is gone or cannot be read any more: as it was when the campaign went on last, and a note.
    """
    path = f"{FOLDER}/{checked_name(name)}.yaml"
    state = await _state(context, name)
    data, absent = None, None
    try:
        _, data = await project_paths.read_file(context.here, "name", path, limit=LARGEST)
        return OpenedCampaign(name, data, data.decode("utf-8", "replace"), read_campaign(data, path), state)
    except InputError as error:
        if not state.revision:
            raise
        text, absent = state.document(), error if data is None else None
        note = f" {path} cannot be read now, so this is revision {state.revision}: {error.message}"
    data = text.encode() if data is None else data
    return OpenedCampaign(name, data, text, read_campaign(text.encode(), path), state, note, absent)


_KEPT: WeakKeyDictionary[Store, dict[tuple[Owner, str], CampaignState]] = WeakKeyDictionary()
"""Of each ledger the states that were read last, so that the next call reads only what was added."""

_MOST_KEPT = 16


async def _state(context: ClusterContext, name: str) -> CampaignState:
    """What the ledger has of it. Raises StorageError."""
    kept = _KEPT.setdefault(context.store, {})
    record = EventRecord(_Log(context, context.store.campaigns, name), context.clock, kept.get((context.owner, name)))
    await record.refresh()
    _keep(context, name, record.state)
    return record.state


def _keep(context: ClusterContext, name: str, state: CampaignState) -> None:
    kept = _KEPT.setdefault(context.store, {})
    kept.pop((context.owner, name), None)
    kept[context.owner, name] = state
    while len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]


Statuses = dict[str, tuple[int, CampaignStatus]]
"""Of each campaign after how many events it is what."""


async def statuses(context: ClusterContext, known: Statuses) -> Statuses:
    """What all campaigns of the caller are; those that stand as in `known` are not read. Raises StorageError."""
    listed = await context.db(context.store.campaigns.listed, context.owner)
    return {
        one.name: known[one.name]
        if one.name in known and known[one.name][0] == one.events
        else (one.events, (await _state(context, one.name)).status)
        for one in listed
    }


async def get_campaign(context: ClusterContext, ask: GetCampaign, caller: Caller) -> CampaignReply:
    """How it stands, what it would do, its table or where its report is. Changes nothing."""
    campaign = await opened(context, ask.name)
    full = ask.detail == "full"
    if ask.view == "plan":
        return await _plan(context, caller, campaign)
    running = await running_trials(context, campaign.state)
    answer = reply(context, campaign, running)
    if ask.view == "table":
        rows, more = campaign_view.table(campaign.file, campaign.state, full=full)
        return answer.model_copy(update={"table": rows, "rows_not_shown": more})
    if ask.view == "report":
        told = "No report is written yet: advance_campaign writes one when a round is judged. "
        if answer.report_path is not None:
            told = f"The report is in {answer.report_path}, with plots in {answer.report_path.removesuffix('md')}html. "
        return answer.model_copy(update={"summary": told + answer.summary})
    return answer


async def write_report(context: ClusterContext, name: str, caller: Caller) -> CampaignReply:
    """Write the report as it is now."""
    campaign = await opened(context, name)
    ports = ServicePorts(context, caller, campaign.name, campaign.file)
    path = await ports.write_report(campaign.file, campaign.state)
    answer = reply(context, campaign, await running_trials(context, campaign.state))
    return answer.model_copy(update={"report_path": path, "summary": f"Wrote {path}. {answer.summary}"})


async def _plan(context: ClusterContext, caller: Caller, campaign: OpenedCampaign) -> CampaignReply:
    """Each round's trials with hours, price, wait and the guard's verdict."""
    ports = ServicePorts(context, caller, campaign.name, campaign.file)
    code = {stage.name: await ports.code_hash(stage) for stage in campaign.file.stages}
    state = _begun(context, campaign, code)
    texts = await ports.texts(needed_texts(campaign.file))
    check_scripts(campaign.file, texts)
    plan = await campaign_plan(context, campaign.name, campaign.file, state, texts)
    answer = reply(context, campaign, ())
    summary = f"Campaign {campaign.name}: {plan.summary}{campaign.note}"
    return answer.model_copy(update={"summary": summary, "table": plan.rows})


def _begun(context: ClusterContext, campaign: OpenedCampaign, code: dict[str, str]) -> CampaignState:
    """The state as the next pass begins with it: in a new revision where the file, or what it runs, was changed."""
    state, data = campaign.state, campaign.text.encode()
    if state.phases.get("sending") or not needs_revision(state, hashlib.sha256(data).hexdigest(), code):
        return replace(state, code=code)
    path = f"{FOLDER}/{campaign.name}.yaml"
    event = next_revision(campaign.file, data, code, state, path)
    return fold([Stamped(state.events + 1, context.clock.now(), event)], state)


# --- carrying it on ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Log:
    """The events of one campaign in the ledger."""

    context: ClusterContext
    ledger: CampaignLedger
    name: str

    async def events(self, *, after: int = 0) -> Sequence[Stamped]:
        return await self.context.db(self.ledger.events, self.context.owner, self.name, after=after)

    async def append(self, events: Sequence[CampaignEvent], *, expected: int) -> Sequence[Stamped] | None:
        return await self.context.db(self.ledger.append, self.context.owner, self.name, events, expected=expected)

    @contextmanager
    def lock(self) -> Iterator[bool]:
        with self.ledger.lock(self.context.owner, self.name) as held:
            yield held


@dataclass(slots=True)
class _Passes:
    """What the passes of one call did, together."""

    happened: list[str] = field(default_factory=list)
    submitted: list[str] = field(default_factory=list)
    last: Advanced | None = None

    def add(self, done: Advanced) -> None:
        self.happened += [line for line in done.happened if line not in self.happened]
        self.submitted += done.submitted
        self.last = done

    @property
    def over(self) -> bool:
        """Whether nothing more can be done now, or only a person can."""
        last = self.last
        return last is not None and (last.wait_seconds is None or (last.state.over and not last.undone))


async def advance_campaign(
    context: ClusterContext, ask: AdvanceCampaign, caller: Caller, progress: Progress | None
) -> CampaignReply:
    """Pass after pass, with the waits between them, until nothing is left to do or the time is up.

    Raises ConfigError for a file that cannot be read: nothing is sent then, and what runs goes on.
    """
    begun, done, hashes = context.clock.now(), _Passes(), StageHashes()
    decision, stop = ask.decision, ask.stop
    while True:
        campaign = await opened(context, ask.name)
        done.add(await one_pass(context, caller, campaign, hashes, decision, stop))
        decision = stop = None
        left = ask.timeout_seconds - (context.clock.now() - begun).total_seconds()
        if done.over or left <= 0:
            break
        wait = (done.last.wait_seconds if done.last is not None else None) or 0.0
        await _sleep(context, ask, progress, min(max(wait * context.settings.slurm.poll_scale, _LEAST), left))
    campaign = await opened(context, ask.name)
    return _advanced(context, ask, campaign, done, await running_trials(context, campaign.state))


_LEAST = 0.5
"""Seconds between two passes."""


async def one_pass(
    context: ClusterContext,
    caller: Caller,
    campaign: OpenedCampaign,
    hashes: StageHashes,
    decision: str | None = None,
    stop: str | None = None,
    turn: SlotTurn | None = None,
) -> Advanced:
    """All that can be done now; `turn`: of what is to be sent, what others leave it.

    Raises InputError where the file is gone, but for a campaign that sends no more.
    """
    if campaign.absent is not None and stop is None and not campaign.state.over:
        raise campaign.absent
    file, state = campaign.file, campaign.state
    ports = ServicePorts(context, caller, campaign.name, file, smoke_jobs(state), _failed_runs(file, state), hashes)
    path, log = f"{FOLDER}/{campaign.name}.yaml", _Log(context, context.store.campaigns, campaign.name)
    by = sanitize.line(f"{caller.principal or context.owner.user} ({caller.client})")[:_NAME]
    done = await advance(
        campaign.data, path, campaign.name, ports, log, context.clock, stop=stop, decision=decision, by=by, known=state,
        turn=turn,
    )  # fmt: skip
    _keep(context, campaign.name, done.state)
    return done


_NAME = 200
"""Characters of who called and by which client: the client names itself."""


def _failed_runs(file: CampaignFile, state: CampaignState) -> set[str]:
    stages = {stage.name: stage for stage in file.stages}
    failed = (one.trial for one in state.trials.values() if one.failed and one.trial.stage in stages)
    return {run_key(trial, stages[trial.stage]) for trial in failed}


def smoke_jobs(state: CampaignState) -> dict[str, str]:
    """For each stage the job whose smoke run passed with what the stage runs now."""
    return {
        one.trial.stage: one.end.job_id
        for one in state.trials.values()
        if one.end is not None and one.passed and state.is_smoke(one.trial.id) and not state.changed_code(one.trial.id)
    }


async def _sleep(context: ClusterContext, ask: AdvanceCampaign, progress: Progress | None, seconds: float) -> None:
    """Sleep, and say now and then that the wait goes on."""
    while seconds > 0:
        part = seconds if progress is None else min(seconds, _HEARTBEAT)
        await context.clock.sleep(part)
        seconds -= part
        if progress is not None and seconds > 0:
            await progress(ask.timeout_seconds - seconds, ask.timeout_seconds, f"campaign {ask.name} goes on")


def _advanced(
    context: ClusterContext,
    ask: AdvanceCampaign,
    campaign: OpenedCampaign,
    done: _Passes,
    running: Collection[TrialId],
) -> CampaignReply:
    """How it stands now, and what these passes did."""
    last = done.last
    wait = None if last is None or done.over else last.wait_seconds
    answer = reply(context, campaign, running)
    told = "" if wait is None else f" Call again in {math.ceil(wait)} s."
    if last is not None and last.busy:
        told = f" Another process is advancing it.{told}"
    whole = answer.model_copy(
        update={
            "summary": answer.summary + told,
            "happened": list(done.happened),
            "submitted": list(done.submitted),
            "next_poll_seconds": None if wait is None else math.ceil(wait),
        }
    )
    return whole if ask.detail == "full" else told_short(whole)


def told_short(answer: CampaignReply) -> CampaignReply:
    """The answer with what happened as a brief one has it: the last few sentences, each cut short."""
    lines, more = campaign_view.brief_lines(answer.happened)
    return answer.model_copy(update={"happened": lines, "happened_not_shown": more})


# --- what is shown ----------------------------------------------------------------------------------------------------


async def stage_counts(context: ClusterContext, name: str) -> dict[str, CampaignCounts]:
    """How many trials of each stage stand where."""
    campaign = await opened(context, name)
    running = await running_trials(context, campaign.state)
    return campaign_view.by_stage(campaign.file, campaign.state, running)


def reply(context: ClusterContext, campaign: OpenedCampaign, running: Collection[TrialId]) -> CampaignReply:
    """What every view shows."""
    file, state = campaign.file, campaign.state
    return CampaignReply(
        status=state.status,
        summary=campaign_view.summary(file, state, campaign.name, running) + campaign.note,
        as_of=context.clock.now(),
        round=state.round if state.revision else None,
        counts=campaign_view.counts(state, running),
        best=campaign_view.best(file, state, campaign.name),
        spent=campaign_view.spent(state),
        limits=campaign_view.limits(file),
        question=campaign_view.question(state),
        report_path=next((note.text for note in reversed(state.notes) if note.what == "report"), None),
    )
