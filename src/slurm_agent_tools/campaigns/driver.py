"""Carries out what is next in a campaign, through ports; every fact is an event before anything follows from it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from slurm_agent_tools.campaigns.batch import check_scripts
from slurm_agent_tools.campaigns.campaign_pass import AWAY, CampaignPass, SlotTurn
from slurm_agent_tools.campaigns.event_record import EventRecord
from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.campaigns.kept_rounds import next_revision
from slurm_agent_tools.campaigns.next_step import (
    CampaignStep,
    Decide,
    FindBatch,
    LookAtTrials,
    SaveTrials,
    SendAgain,
    SendTrials,
    WaitFor,
    WriteReport,
    needs_revision,
    next_steps,
    seconds_to_wait,
)
from slurm_agent_tools.campaigns.ports import CampaignLog, CampaignPorts, TrialLook
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.campaigns.steps import keeping, looking, sending
from slurm_agent_tools.errors import InputError, SlurmUnreachable
from slurm_agent_tools.models.campaign import CampaignStopped, PersonDecided, Trial, TrialId
from slurm_agent_tools.models.campaign_file import CampaignFile
from slurm_agent_tools.transport.base import Clock


@dataclass(frozen=True, slots=True)
class Advanced:
    """What one pass did. `wait_seconds`: until the next is worth it; None where nothing, or only a person, is awaited.

    `busy`: another process is advancing the campaign, and this one did not. `looks`: what was seen of sent trials.
    `undone`: something could not be done and is left to a later pass, also where the campaign is over. `ready`: what
    could be sent and was not, because it is another campaign's turn.
    """

    state: CampaignState
    happened: tuple[str, ...] = ()
    submitted: tuple[str, ...] = ()
    wait_seconds: float | None = None
    why: str | None = None
    busy: bool = False
    looks: Mapping[TrialId, TrialLook] = field(default_factory=dict)
    undone: bool = False
    ready: tuple[Trial, ...] = ()


async def advance(
    data: bytes,
    path: str,
    name: str,
    ports: CampaignPorts,
    log: CampaignLog,
    clock: Clock,
    *,
    stop: str | None = None,
    decision: str | None = None,
    by: str = "",
    known: CampaignState | None = None,
    turn: SlotTurn | None = None,
) -> Advanced:
    """Do all that can be done now in the campaign of a file, and say when a further pass is worth it; never waits.

    `data`, `path`: the file as it is now. `stop`: why nothing more is to be sent. `decision`: one of the choices of
    the open question; `by`: who says so. `known`: the state as the log's events made it before, so that only those
    behind it are read. `turn`: what it may send where campaigns share the slots; None: all that fits. A pass that was
    killed anywhere is made good by the next one. Raises ConfigError for a file that cannot be read, InputError for a
    script that has an option which no limit counts (nothing is sent then) and for a decision that answers no question,
    StorageError.
    """
    record = EventRecord(log, clock, known)
    this = CampaignPass(path, name, ports, record, clock, turn)
    await record.refresh()
    await _hear(record, stop, decision, by)
    with log.lock() as mine:
        if mine:
            await record.refresh()
            if await _begin(this, data):
                await _run(this)
    return _result(this, busy=not mine)


def _result(this: CampaignPass, *, busy: bool) -> Advanced:
    wait = this.wait
    if busy:
        wait = (seconds_to_wait(this.state, this.clock.now()), "another process is advancing this campaign")
    seconds, why = wait or (None, None)
    return Advanced(
        this.state,
        tuple(this.record.happened),
        tuple(this.submitted),
        seconds,
        why,
        busy=busy,
        looks=this.looks,
        undone=this.undone or this.away,
        ready=this.ready,
    )


# --- what a person says -----------------------------------------------------------------------------------------------


async def _hear(record: EventRecord, stop: str | None, decision: str | None, by: str) -> None:
    """Write down a stop and a decision, at once and whoever is advancing the campaign. Raises InputError."""
    if stop is not None:
        if not record.state.events:
            raise InputError("stop", stop, "means nothing: the campaign has not begun")
        while not record.state.over and not await record.add(CampaignStopped(stop, by)):
            continue
    while decision is not None:
        question = record.state.question
        if question is None:
            raise InputError("decision", decision, "answers no question: none is open")
        if decision not in question.choices:
            hint = f"Choose one of: {', '.join(question.choices)}."
            raise InputError("decision", decision, "is no choice of the question", hint=hint)
        if await record.add(PersonDecided(question.question, decision, by)):
            return


# --- the file ---------------------------------------------------------------------------------------------------------


async def _begin(this: CampaignPass, data: bytes) -> bool:
    """Take the file as it is now; False where that has to wait: for the cluster, or until it is known what was sent."""
    state, sha256 = this.state, hashlib.sha256(data).hexdigest()
    if state.status == "stopped" or (state.over and state.file_sha256 == sha256):
        this.file = read_campaign(state.document().encode(), this.path)
        return True
    file = read_campaign(data, this.path)
    try:
        code = {stage.name: await this.ports.code_hash(stage) for stage in file.stages}
    except SlurmUnreachable as error:  # what its stages run lies there
        this.unreachable(error)
        return False
    if not needs_revision(state, sha256, code):
        this.file = file
        return True
    order = await _order(this, file)
    check_scripts(file, await this.texts(file))  # before anything of the new revision is sent
    for key in dict.fromkeys(one.key for one in state.in_phase("sending")):
        await sending.find(this, key or "")
    if this.state.phases.get("sending"):
        this.wait_for(AWAY, "the file was changed, and it is not known yet whether all that was sent is there")
        return False
    this.file = file
    while needs_revision(this.state, sha256, code) and not await this.record.add(
        next_revision(file, data, code, this.state, this.path, order)
    ):
        continue
    return True


async def _order(this: CampaignPass, file: CampaignFile) -> tuple[str, ...]:
    """The jobs of the file's plan by their starts: as before where it is that plan still, which may be gone by now."""
    before = this.state.revisions.get(this.state.revision)
    if file.plan is None or (before is not None and before.plan == file.plan):
        return before.order if before is not None and file.plan is not None else ()
    return await this.ports.plan_order(file.plan)


# --- steps ------------------------------------------------------------------------------------------------------------


async def _run(this: CampaignPass) -> None:
    """Carry out steps until one pass over them adds nothing."""
    before = -1
    while before != this.state.events:
        before, this.ready = this.state.events, ()
        for step in next_steps(this.file_of(this.state.revision), this.name, this.state, this.clock.now()):
            await _carry_out(this, step)
            if this.state.events != before:
                break


async def _carry_out(this: CampaignPass, step: CampaignStep) -> None:
    match step:
        case Decide(event):
            await this.record.add(event)
        case WriteReport() if this.first(step):
            await keeping.report(this)
        case WaitFor():
            this.wait_for(step.seconds, step.why)
        case _ if not this.away:
            try:
                await _ask_outside(this, step)
            except SlurmUnreachable as error:
                this.unreachable(error)


async def _ask_outside(this: CampaignPass, step: CampaignStep) -> None:
    match step:
        case SaveTrials():
            await keeping.save(this, step)
        case LookAtTrials() if this.first(f"look {step.why}"):  # once more after a stop
            await looking.look(this, step)
        case FindBatch(key) if this.first(f"find {key}"):
            await sending.find(this, key)
        case SendAgain(key) if not this.paused and this.first(f"send {key}"):
            await sending.send_again(this, key)
        case SendTrials() if not this.paused:
            await sending.send_new(this, step)
