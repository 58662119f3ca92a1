"""What a person is asked when the file does not say how to go on, and the choices: each narrows or ends. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from slurm_agent_tools.campaigns.file_reader import FOLDER, read_campaign
from slurm_agent_tools.campaigns.state import AGAIN, GO_ON, LEAVE_OUT, STOP, STOP_TOLD, BatchState, CampaignState
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign import QuestionAsked, StageStopped, Trial, TrialId
from slurm_agent_tools.models.campaign_file import CampaignFile


def question(file: CampaignFile, name: str, state: CampaignState, *, settled: bool) -> QuestionAsked | None:
    """The next question; None where there is none to be asked now.

    About a refused job it is asked at once; about a stage that stopped when all else is settled, and again, with one
    choice more, after what the stage runs, or what the file says of it, has changed.
    """
    if state.question is not None:
        return _again(file, name, state)
    for about in state.undecided:
        batch = state.batches.get(about)
        if batch is not None:
            return _about_refusal(state, about, batch)
        if settled:
            return _about_stop(file, name, state, about)
    return None


def _number(state: CampaignState) -> str:
    return f"q{len(state.questions) + 1}"


def _again(file: CampaignFile, name: str, state: CampaignState) -> QuestionAsked | None:
    asked = state.question
    if asked is None or asked.about is None or asked.about in state.batches or GO_ON in asked.choices:
        return None
    if state.asked_in[asked.question] == state.revision or not _changed(file, name, state, asked.about):
        return None
    return _about_stop(file, name, state, asked.about)


def _about_refusal(state: CampaignState, key: str, batch: BatchState) -> QuestionAsked | None:
    refused = batch.refused
    if refused is None:
        return None
    trials = ", ".join(map(str, batch.intended.trials[:3])) + (" ..." if len(batch.intended.trials) > 3 else "")
    choices = {LEAVE_OUT: f"go on without {trials}", STOP: STOP_TOLD}
    if refused.person:
        choices = {AGAIN: "ask once more, after a person did what the guard wants", **choices}
    return QuestionAsked(_number(state), f"{trials} was not sent: {refused.reason}", choices, key)


def _about_stop(file: CampaignFile, name: str, state: CampaignState, cause: str) -> QuestionAsked:
    stops = [stop for stop in state.stops.values() if stop.cause == cause]
    stages = ", ".join(stop.stage for stop in stops)
    text = "; ".join(f"stage {stop.stage} was stopped: {stop.reason}" for stop in stops)
    choices = {LEAVE_OUT: f"go on without what {stages} has not run yet", STOP: STOP_TOLD}
    if _changed(file, name, state, cause):
        choices = {GO_ON: f"run {stages} again, as it is now: it was changed since", **choices}
    return QuestionAsked(_number(state), f"{text}.", choices, cause)


def _changed(file: CampaignFile, name: str, state: CampaignState, cause: str) -> bool:
    """Whether what failed would not run as it did: other code, or another stage, fix or limit in the file."""
    stages = {stop.stage for stop in state.stops.values() if stop.cause == cause}
    tried = [one for one in state.trials.values() if one.trial.stage in stages and (one.failed or one.key is not None)]
    if not tried:
        return False
    last = tried[-1]
    if state.changed_code(last.trial.id):
        return True
    if last.revision == state.revision:
        return False
    try:
        before = read_campaign(state.document(last.revision).encode(), f"{FOLDER}/{name}.yaml")
    except InputError:  # another version of this tool read it
        return True
    return any(_said(before, stage) != _said(file, stage) for stage in stages)


def _said(file: CampaignFile, stage: str) -> tuple[object, ...]:
    """What the file says of a stage and its failures."""
    found = next((one for one in file.stages if one.name == stage), None)
    fixes = tuple(fix for fix in file.fixes if fix.stages is None or stage in fix.stages)
    return found, fixes, file.limits.same_failure


# --- runs that change what they run -----------------------------------------------------------------------------------


def changing(state: CampaignState, wave: Iterable[Trial]) -> StageStopped | None:
    """The stop of a stage that would run the same once more, as what it runs was another at each run before.

    A run that writes over a file which its command names would go on so until a limit is spent. Twice is borne in a
    round, and once more each time that a person says to go on.
    """
    ran: dict[tuple[object, ...], list[TrialId]] = {}
    new = [trial for trial in wave if trial.reuses is None]
    for number in {trial.id.round for trial in new}:
        for one in state.of_round(number):
            if one.passed and one.trial.reuses is None:
                ran.setdefault(_but_for_code(one.trial), []).append(one.trial.id)
    for trial in new:
        cause, before = f"changes: {trial.stage}", ran.get(_but_for_code(trial), [])
        if len(before) >= _BORNE + _went_on(state, cause):
            ids = ", ".join(map(str, before))
            why = f"{ids} ran the same and passed, and what the stage runs was changed after each"
            who = "by a person, or by the runs, where they write to a file that the stage reads"
            return StageStopped(trial.stage, cause, f"{why}: {who}")
    return None


_BORNE = 2
"""Runs of the same in one round that may pass, each of other code, before a person is asked."""


def _but_for_code(trial: Trial) -> tuple[object, ...]:
    """What is the same for all trials of a round that run the same, whatever their stage runs by now."""
    return trial.id.round, trial.stage, trial.arm, trial.repeat, tuple(sorted(trial.settings.items()))


def _went_on(state: CampaignState, cause: str) -> int:
    """How often a person said to go on after a stop of this cause."""
    asked = (state.questions[question] for question, said in state.decisions.items() if said.choice == GO_ON)
    return sum(one.about == cause for one in asked)
