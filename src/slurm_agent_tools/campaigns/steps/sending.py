"""Sending trials as jobs: each is written down before it is sent, and what became of it when that is known."""

from __future__ import annotations

from dataclasses import replace

from slurm_agent_tools.campaigns.batch import Batch, batches
from slurm_agent_tools.campaigns.campaign_pass import AWAY, PASSING, CampaignPass, SlotTurn
from slurm_agent_tools.campaigns.event_sentences import plain, trials_in_words
from slurm_agent_tools.campaigns.next_step import SendTrials
from slurm_agent_tools.campaigns.ports import (
    BatchHasToWait,
    BatchIsRefused,
    BatchIsSent,
    BatchIsUnconfirmed,
    BatchWasNeverSent,
    FoundBatch,
    SendOutcome,
)
from slurm_agent_tools.errors import InputError, SlurmUncertain, SlurmUnreachable, StorageError
from slurm_agent_tools.models.campaign import BatchIntended, BatchRefused, BatchSent, Trial, TrialsLeftOut
from slurm_agent_tools.models.campaign_file import CampaignFile

_CHANGED = "the file, or what it runs, was changed before it was sent"

_OF_A_NARROW_ONE = 4
"""Trials for each free slot, where fewer are free than the campaign may have: an array keeps its throttle for good, and
what is left is sent as wide as there are slots then."""


async def send_new(this: CampaignPass, step: SendTrials) -> None:
    """Send planned trials, as many as fit. Raises SlurmUnreachable, and InputError for what cannot become a job."""
    if this.turn is not None:
        await _send_turn(this, this.turn, step)
        return
    file = this.file_of(this.state.revision)
    free = min(step.at_once, await this.ports.free_slots())
    if free < 1:
        this.wait_for(AWAY / 2, "the guard lets in no more jobs of this user now")
        this.paused = True
        return
    wanted = min(file.limits.at_once, this.ports.most_slots)
    trials = step.trials if free >= wanted else step.trials[: free * _OF_A_NARROW_ONE]
    texts = await this.texts(file)
    together = [[one] for one in trials] if this.state.order else [trials]  # a plan's order is one of single jobs
    made = [batch for part in together for batch in batches(this.name, file, part, free, texts=texts)]
    for batch in sorted(made, key=lambda one: -len(one.trials)):  # the longest keeps its whole throttle
        if batch.width > free or this.paused or this.away:
            break
        free -= batch.width
        if not await _begin(this, batch):
            break


async def _send_turn(this: CampaignPass, turn: SlotTurn, step: SendTrials) -> None:
    """Send the first trials, each as a job of its own, as many as are this campaign's turn; the others stay ready."""
    this.ready = step.trials
    file = this.file_of(this.state.revision)
    for trial in step.trials:
        if this.turns_left < 1 or this.paused or this.away:
            return
        this.turns_left -= 1
        if not await _begin(this, await _placed(this, file, trial, turn)):
            return
        this.ready = tuple(one for one in this.ready if one.id != trial.id)


async def _placed(this: CampaignPass, file: CampaignFile, trial: Trial, turn: SlotTurn) -> Batch:
    """The trial as a job where it is placed. Its key is that of the trial wherever it goes, and its script is kept."""
    texts = await this.texts(file)
    (batch,) = batches(this.name, file, [trial], 1, texts=texts)
    stated = any(line.startswith("#SBATCH --partition=") for line in batch.script_text.splitlines())
    partition = None if stated else turn.partition_for(file.stage(trial.stage), trial)
    if partition is None:
        return batch
    there = replace(trial, request=replace(trial.request, partition=partition))
    (placed,) = batches(this.name, file, [there], 1, texts=texts)
    return replace(batch, script_text=placed.script_text)


async def _begin(this: CampaignPass, batch: Batch) -> bool:
    """Write its files, write down that it is sent, and send it; False where it is to be asked for anew."""
    problem = await _written(this, batch)
    if this.paused:
        return False
    intended = BatchIntended(
        batch.key, batch.trials, batch.script_path, batch.script_sha256, batch.task_ids, batch.at_once
    )
    if not await this.record.add(intended):
        return False
    this.first(f"send {batch.key}")
    if problem is not None:
        await _came(this, batch, problem)
    else:
        await _send(this, batch)
    return True


async def _written(this: CampaignPass, batch: Batch) -> BatchIsRefused | None:
    """Write its files; the refusal where they may not be written. What passes by itself pauses the pass."""
    try:
        await this.ports.write(batch)
    except InputError as error:
        return _refusal(error)
    except PASSING as error:
        this.left_undone(f"{trials_in_words(batch.trials)} could not be sent, as its files were not written", error)
        this.paused = True
    return None


async def send_again(this: CampaignPass, key: str) -> None:
    """Send what was about to be sent. Raises SlurmUnreachable, and StorageError for what is not the same any more."""
    batch = await _made(this, key)
    problem = await _written(this, batch)
    if this.paused:
        return
    if problem is not None:
        found = await this.ports.find(key)
        await _came(this, batch, problem if isinstance(found, BatchWasNeverSent) else found)
    else:
        await _send(this, batch)


async def _made(this: CampaignPass, key: str) -> Batch:
    """A batch that was about to be sent, made again. Raises StorageError where it is not the same any more."""
    known = this.state.batches[key]
    file = this.file_of(known.revision)
    trials = [this.state.trials[trial].trial for trial in known.intended.trials]
    made = batches(this.name, file, trials, known.intended.at_once or 1, texts=await this.texts(file))
    same = made[0] if [batch.key for batch in made] == [key] else None
    if same is not None and same.script_sha256 != known.intended.script_sha256:
        same = await _as_written(this, same, known.intended)
    if same is None:
        raise StorageError(
            f"{trials_in_words(known.intended.trials)} were about to be sent as {key}, and that job cannot be made"
            " again: another version of this tool, or of a file, is there now",
            hint="Stop the campaign, and begin one under another name.",
        )
    return same


async def _as_written(this: CampaignPass, batch: Batch, intended: BatchIntended) -> Batch | None:
    """The batch with the script that was written for it, where only lines for Slurm are others by now; else None."""
    try:
        text = (await this.ports.texts([intended.script]))[intended.script]
    except InputError:
        return None
    before = replace(batch, script_text=text)
    return before if before.script_sha256 == intended.script_sha256 else None


async def _send(this: CampaignPass, batch: Batch) -> None:
    stage = this.stage_of(batch.trials[0])
    try:
        outcome: SendOutcome = await this.ports.send(batch, stage)
    except SlurmUncertain as error:
        outcome = BatchIsUnconfirmed(error.message)
    except InputError as error:  # what cannot be sent as it is, is refused, unless it was sent before
        found = await this.ports.find(batch.key)
        outcome = _refusal(error) if isinstance(found, BatchWasNeverSent) else found
    await _came(this, batch, outcome)


def _refusal(error: InputError) -> BatchIsRefused:
    return BatchIsRefused(f"{error.message} {error.hint}".strip(), person=False)


async def _came(this: CampaignPass, batch: Batch, outcome: SendOutcome) -> None:
    """Write down, or tell, what came of it."""
    match outcome:
        case BatchIsSent(job_id):
            await _is_sent(this, batch.key, job_id)
        case BatchIsRefused():
            refused = BatchRefused(
                batch.key, outcome.reason, outcome.person, outcome.rules, outcome.artifacts, outcome.manual_commands
            )
            await this.record.add_facts(refused)
        case BatchHasToWait():
            this.wait_for(outcome.seconds, plain(outcome.why))
            this.tell(f"{trials_in_words(batch.trials)} could not be sent yet: {plain(outcome.why)}")
            this.paused = True
        case BatchIsUnconfirmed():
            this.wait_for(AWAY / 6, f"it is not known yet whether Slurm has {trials_in_words(batch.trials)}")
            this.tell(f"{trials_in_words(batch.trials)}: Slurm's answer was lost; asked again later.")
            this.paused = True


async def _is_sent(this: CampaignPass, key: str, job_id: int) -> None:
    await this.record.add_facts(BatchSent(key, job_id))
    this.submitted.append(str(job_id))


async def find(this: CampaignPass, key: str) -> None:
    """Find out whether Slurm has a batch; one that it never got is left out."""
    try:
        found: FoundBatch = await this.ports.find(key)
    except (SlurmUnreachable, SlurmUncertain) as error:
        found = BatchIsUnconfirmed(error.message)
    match found:
        case BatchIsSent(job_id):
            await _is_sent(this, key, job_id)
        case BatchWasNeverSent():
            trials = this.state.batches[key].intended.trials
            await this.record.add_facts(TrialsLeftOut(trials, this.state.reason or _CHANGED))
        case BatchIsUnconfirmed(why):
            unknown = (
                f"it is not known yet whether Slurm has {trials_in_words(this.state.batches[key].intended.trials)}"
            )
            this.tell(f"{unknown[0].upper()}{unknown[1:]}: {plain(why)}")
            this.wait_for(AWAY, unknown)
            this.undone = True
