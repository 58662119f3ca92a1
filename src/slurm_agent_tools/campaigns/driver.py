"""Carries out what is next in a campaign, through ports; every fact is an event before anything follows from it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from slurm_agent_tools.campaigns.batch import Batch, batches, needed_texts
from slurm_agent_tools.campaigns.event_record import EventRecord
from slurm_agent_tools.campaigns.event_sentences import plain, trials_in_words
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
from slurm_agent_tools.campaigns.ports import (
    BatchHasToWait,
    BatchIsRefused,
    BatchIsSent,
    BatchIsUnconfirmed,
    BatchWasNeverSent,
    CampaignLog,
    CampaignPorts,
    FoundBatch,
    SendOutcome,
    TrialLook,
)
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.errors import AgentToolsError, InputError, SlurmUncertain, SlurmUnreachable, StorageError
from slurm_agent_tools.models.campaign import (
    BatchIntended,
    BatchRefused,
    BatchSent,
    CampaignStopped,
    Noted,
    PersonDecided,
    TrialEnded,
    TrialId,
    TrialsLeftOut,
)
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage
from slurm_agent_tools.transport.base import Clock

_AWAY = 60.0
"""Seconds after which a cluster that did not answer is asked again."""

_CHANGED = "the file, or what it runs, was changed before it was sent"


@dataclass(frozen=True, slots=True)
class Advanced:
    """What one pass did. `wait_seconds`: until the next is worth it; None where nothing, or only a person, is awaited.

    `busy`: another process is advancing the campaign, and this one did not. `looks`: what was seen of sent trials.
    """

    state: CampaignState
    happened: tuple[str, ...] = ()
    submitted: tuple[str, ...] = ()
    wait_seconds: float | None = None
    why: str | None = None
    busy: bool = False
    looks: Mapping[TrialId, TrialLook] = field(default_factory=dict)


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
) -> Advanced:
    """Do all that can be done now in the campaign of a file, and say when a further pass is worth it; never waits.

    `data`, `path`: the file as it is now. `stop`: why nothing more is to be sent. `decision`: one of the choices of
    the open question; `by`: who says so. A pass that was killed anywhere is made good by the next one. Raises
    ConfigError for a file that cannot be read (nothing is sent then), InputError for a decision that answers no
    question, StorageError.
    """
    driving = _Driving(path, name, ports, log, clock)
    await driving.record.refresh()
    await driving.hear(stop, decision, by)
    with log.lock() as mine:
        if not mine:
            return driving.result(busy=True)
        await driving.record.refresh()
        if await driving.begin(data):
            await driving.run()
    return driving.result()


class _Driving:
    """One pass over one campaign."""

    def __init__(self, path: str, name: str, ports: CampaignPorts, log: CampaignLog, clock: Clock) -> None:
        self.path, self.name, self.ports, self.clock = path, name, ports, clock
        self.record = EventRecord(log, clock)
        self.file: CampaignFile | None = None
        self.files: dict[int, CampaignFile] = {}
        self.submitted: list[str] = []
        self.looks: dict[TrialId, TrialLook] = {}
        self.tried: set[CampaignStep | str] = set()
        self.away = self.paused = False
        self.wait: tuple[float, str] | None = None

    @property
    def state(self) -> CampaignState:
        return self.record.state

    def result(self, *, busy: bool = False) -> Advanced:
        wait = self.wait
        if busy:
            wait = (seconds_to_wait(self.state, self.clock.now()), "another process is advancing this campaign")
        seconds, why = wait or (None, None)
        return Advanced(
            self.state, tuple(self.record.happened), tuple(self.submitted), seconds, why, busy=busy, looks=self.looks
        )

    # --- what a person says --------------------------------------------------------------------------------------

    async def hear(self, stop: str | None, decision: str | None, by: str) -> None:
        """Write down a stop and a decision, at once and whoever is advancing the campaign. Raises InputError."""
        if stop is not None:
            if not self.state.events:
                raise InputError("stop", stop, "means nothing: the campaign has not begun")
            while not self.state.over and not await self.record.add(CampaignStopped(stop, by)):
                continue
        while decision is not None:
            question = self.state.question
            if question is None:
                raise InputError("decision", decision, "answers no question: none is open")
            if decision not in question.choices:
                hint = f"Choose one of: {', '.join(question.choices)}."
                raise InputError("decision", decision, "is no choice of the question", hint=hint)
            if await self.record.add(PersonDecided(question.question, decision, by)):
                return

    # --- the file ----------------------------------------------------------------------------------------------------

    async def begin(self, data: bytes) -> bool:
        """Take the file as it is now; False where a changed one has to wait until it is known what was sent."""
        state, sha256 = self.state, hashlib.sha256(data).hexdigest()
        if state.status == "stopped" or (state.over and state.file_sha256 == sha256):
            self.file = read_campaign(state.document().encode(), self.path)
            return True
        file = read_campaign(data, self.path)
        code = {stage.name: await self.ports.code_hash(stage) for stage in file.stages}
        if not needs_revision(state, sha256, code):
            self.file = file
            return True
        for key in dict.fromkeys(one.key for one in state.in_phase("sending")):
            await self._find(key or "")
        if self.state.phases.get("sending"):
            self._wait(_AWAY, "the file was changed, and it is not known yet whether all that was sent is there")
            return False
        self.file = file
        while needs_revision(self.state, sha256, code) and not await self.record.add(
            next_revision(file, data, code, self.state, self.path)
        ):
            continue
        return True

    def _file_of(self, revision: int) -> CampaignFile:
        if self.file is not None and revision == self.state.revision:
            return self.file
        if revision not in self.files:
            self.files[revision] = read_campaign(self.state.document(revision).encode(), self.path)
        return self.files[revision]

    def _stage_of(self, trial: TrialId) -> CampaignStage:
        """As the file had it when the trial was designed: a later one may not have it at all."""
        found = self.state.trials[trial]
        return self._file_of(found.revision).stage(found.trial.stage)

    # --- steps -------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Carry out steps until one pass over them adds nothing."""
        before = -1
        while before != self.state.events:
            before = self.state.events
            for step in next_steps(self._file_of(self.state.revision), self.name, self.state, self.clock.now()):
                await self._carry_out(step)
                if self.state.events != before:
                    break

    async def _carry_out(self, step: CampaignStep) -> None:
        match step:
            case Decide(event):
                await self.record.add(event)
            case SaveTrials():
                await self._save(step)
            case WriteReport() if self._first(step):
                await self._report()
            case WaitFor():
                self._wait(step.seconds, step.why)
            case _ if not self.away:
                try:
                    await self._ask_slurm(step)
                except SlurmUnreachable as error:
                    self.away = True
                    self.record.happened.append(
                        f"The cluster does not answer, and nothing was changed: {plain(error.message)}"
                    )
                    self._wait(_AWAY, "the cluster does not answer")

    def _first(self, step: CampaignStep | str) -> bool:
        """Whether this was not tried yet in this pass."""
        new = step not in self.tried
        self.tried.add(step)
        return new

    def _wait(self, seconds: float, why: str) -> None:
        if self.wait is None or not (self.away or self.paused):
            self.wait = (seconds, why)

    async def _ask_slurm(self, step: CampaignStep) -> None:
        match step:
            case LookAtTrials() if self._first(f"look {step.why}"):  # once more after a stop
                await self._look(step)
            case FindBatch(key) if self._first(f"find {key}"):
                await self._find(key)
            case SendAgain(key) if not self.paused and self._first(f"send {key}"):
                await self._send(await self._made(key))
            case SendTrials() if not self.paused:
                await self._send_new(step)

    # --- sending -----------------------------------------------------------------------------------------------------

    async def _texts(self, file: CampaignFile) -> Mapping[str, str]:
        needed = needed_texts(file)
        return await self.ports.texts(needed) if needed else {}

    async def _made(self, key: str) -> Batch:
        """A batch that was about to be sent, made again. Raises StorageError where it is not the same any more."""
        known = self.state.batches[key]
        file = self._file_of(known.revision)
        trials = [self.state.trials[trial].trial for trial in known.intended.trials]
        made = batches(self.name, file, trials, known.intended.at_once or 1, texts=await self._texts(file))
        if [batch.key for batch in made] != [key] or made[0].script_sha256 != known.intended.script_sha256:
            raise StorageError(
                f"{trials_in_words(known.intended.trials)} were about to be sent as {key}, and that job cannot be made"
                " again: another version of this tool, or of a file, is there now",
                hint="Stop the campaign, and begin one under another name.",
            )
        await self.ports.write(made[0])
        return made[0]

    async def _send_new(self, step: SendTrials) -> None:
        file = self._file_of(self.state.revision)
        free = min(step.at_once, await self.ports.free_slots())
        if free < 1:
            self._wait(_AWAY / 2, "the guard lets in no more jobs of this user now")
            self.paused = True
            return
        made = batches(self.name, file, step.trials, free, texts=await self._texts(file))
        for batch in sorted(made, key=lambda one: -len(one.trials)):  # the longest keeps its whole throttle
            if batch.width > free or self.paused or self.away:
                break
            free -= batch.width
            await self.ports.write(batch)
            intended = BatchIntended(
                batch.key, batch.trials, batch.script_path, batch.script_sha256, batch.task_ids, batch.at_once
            )
            if not await self.record.add(intended):
                break
            self.tried.add(f"send {batch.key}")
            await self._send(batch)

    async def _send(self, batch: Batch) -> None:
        stage = self._stage_of(batch.trials[0])
        try:
            outcome: SendOutcome = await self.ports.send(batch, stage)
        except SlurmUncertain as error:
            outcome = BatchIsUnconfirmed(error.message)
        except InputError as error:
            outcome = await self._after_error(batch.key, error)
        match outcome:
            case BatchIsSent(job_id):
                await self._is_sent(batch.key, job_id)
            case BatchIsRefused():
                refused = BatchRefused(
                    batch.key, outcome.reason, outcome.person, outcome.rules, outcome.artifacts, outcome.manual_commands
                )
                await self.record.add_facts(refused)
            case BatchHasToWait():
                self._wait(outcome.seconds, plain(outcome.why))
                self.record.happened.append(
                    f"{trials_in_words(batch.trials)} could not be sent yet: {plain(outcome.why)}"
                )
                self.paused = True
            case BatchIsUnconfirmed():
                self._wait(_AWAY / 6, f"it is not known yet whether Slurm has {trials_in_words(batch.trials)}")
                self.record.happened.append(
                    f"{trials_in_words(batch.trials)}: Slurm's answer was lost; asked again later."
                )
                self.paused = True

    async def _after_error(self, key: str, error: InputError) -> SendOutcome:
        """What cannot be sent as it is, is refused, unless it was sent before."""
        found = await self.ports.find(key)
        if isinstance(found, BatchWasNeverSent):
            return BatchIsRefused(f"{error.message} {error.hint}".strip(), person=False)
        return found

    async def _is_sent(self, key: str, job_id: int) -> None:
        await self.record.add_facts(BatchSent(key, job_id))
        self.submitted.append(str(job_id))

    async def _find(self, key: str) -> None:
        try:
            found: FoundBatch = await self.ports.find(key)
        except (SlurmUnreachable, SlurmUncertain) as error:
            found = BatchIsUnconfirmed(error.message)
        match found:
            case BatchIsSent(job_id):
                await self._is_sent(key, job_id)
            case BatchWasNeverSent():
                trials = self.state.batches[key].intended.trials
                await self.record.add_facts(TrialsLeftOut(trials, self.state.reason or _CHANGED))
            case BatchIsUnconfirmed():
                self._wait(_AWAY, f"it is not known yet whether Slurm has {key}")

    # --- looking, and what is kept -----------------------------------------------------------------------------------

    async def _look(self, step: LookAtTrials) -> None:
        looks = await self.ports.look([replace(one, stage=self._stage_of(one.trial.id)) for one in step.sent])
        self.looks = {look.trial: look for look in looks}
        ended = [TrialEnded(look.trial, look.end) for look in looks if look.phase == "ended" and look.end is not None]
        await self.record.add_facts(*ended)
        for why in dict.fromkeys(look.why for look in looks if look.phase == "unknown"):
            unknown = trials_in_words([look.trial for look in looks if look.phase == "unknown" and look.why == why])
            self.record.happened.append(f"How {unknown} stands is not known now: {plain(why or 'nobody can tell')}")
        waiting = {look.trial for look in looks if look.phase == "pending"} & step.cancel
        if waiting:
            sent = [one for one in step.sent if one.trial.id in waiting]
            await self.ports.cancel(sent, step.why)
            self.record.happened.append(f"{trials_in_words(sorted(waiting))} had not begun and were cancelled.")

    async def _save(self, step: SaveTrials) -> None:
        await self.record.add_facts(
            *[await self._saved(trial) for trial in step.results],
            *[await self._learned(trial) for trial in step.lessons],
        )

    async def _saved(self, trial: TrialId) -> Noted:
        found = self.state.trials[trial]
        if found.end is None:
            return Noted("result", "nothing to save", trial)
        try:
            path = await self.ports.save_result(found.trial, found.end)
        except SlurmUnreachable:
            raise
        except AgentToolsError as error:
            path = f"not saved: {error.message}"
        return Noted("result", path or "nothing to save", trial)

    async def _learned(self, trial: TrialId) -> Noted:
        mended = self.state.trials[trial]
        replaced = mended.trial.replaces
        failed = None if replaced is None else self.state.trials[replaced].end
        if mended.end is None or failed is None:
            return Noted("lesson", "nothing was mended", trial)
        try:
            line = await self.ports.write_lesson(failed, mended.trial, mended.end)
        except SlurmUnreachable:
            raise
        except AgentToolsError as error:
            line = f"not written: {error.message}"
        return Noted("lesson", line or "written down before", trial)

    async def _report(self) -> None:
        """A report that cannot be written holds nothing up; the next pass tries again."""
        try:
            path = await self.ports.write_report(self._file_of(self.state.revision), self.state)
        except AgentToolsError as error:
            self.record.happened.append(f"The report was not written: {plain(error.message)}")
            return
        if path is not None:
            await self.record.add_facts(Noted("report", path))
