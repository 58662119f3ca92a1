"""Looking where trials stand that Slurm has, and cancelling those that are not wanted any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from slurm_agent_tools.campaigns.campaign_pass import AWAY, PASSING, CampaignPass
from slurm_agent_tools.campaigns.event_sentences import plain, trials_in_words
from slurm_agent_tools.campaigns.next_step import LookAtTrials
from slurm_agent_tools.campaigns.outcomes import ASKED_AFTER, LOST_AFTER, lost
from slurm_agent_tools.campaigns.ports import SentTrial, TrialLook
from slurm_agent_tools.campaigns.state import LOST, STOP, STOP_TOLD
from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.models.campaign import CampaignEvent, Noted, QuestionAsked, TrialEnded

_NAMED = 5

_NOT_DONE: tuple[type[AgentToolsError], ...] = (InputError, *PASSING)


async def look(this: CampaignPass, step: LookAtTrials) -> None:
    """Write down which trials ended, tell of which it is not known, and cancel. Raises SlurmUnreachable."""
    looks = await this.ports.look([replace(one, stage=this.stage_of(one.trial.id)) for one in step.sent])
    this.looks = {look.trial: look for look in looks}
    ended = [TrialEnded(look.trial, look.end) for look in looks if look.phase == "ended" and look.end is not None]
    await this.record.add_facts(*ended, *_missed(this, looks))
    await _ask(this)
    _tell_unknown(this, looks)
    if any(look.phase == "unknown" and not look.gone and look.trial in step.cancel for look in looks):
        this.wait_for(AWAY, "it is not known which trials have not begun, and are to be cancelled")
        this.undone = True
    waiting = {look.trial for look in looks if look.phase == "pending"} & step.cancel
    if waiting:
        await _cancel(this, [one for one in step.sent if one.trial.id in waiting], step.why)


def _missed(this: CampaignPass, looks: Sequence[TrialLook]) -> Iterator[CampaignEvent]:
    """When a run was first asked for in vain, when it is told after all, when a person is asked, when it is lost.

    It is lost where a person says so, or where controller and accounting answered for `LOST_AFTER` that they do not
    have it, at each look. An accounting that is silent, that calls it active still, or that this cluster does not keep
    proves nothing: it was perhaps just begun, or is not told yet.
    """
    now = this.clock.now()
    for look in looks:
        known, job_id = this.state.missed.get(look.trial), this.state.trials[look.trial].job_id
        if not look.gone:
            if known is not None and look.phase in {"pending", "running"}:
                yield Noted("seen", "Slurm shows it again", look.trial)
        elif known is not None and known.given_up:
            yield TrialEnded(look.trial, lost(job_id or "", by_word=True))
        elif known is None or look.unrecorded is (known.unrecorded is None):
            said = f"the controller does not show {look.trial} any more: {plain(look.why or 'nobody can tell')}"
            yield Noted("unrecorded" if look.unrecorded else "missed", said, look.trial)
        elif known.unrecorded is not None and now - known.unrecorded >= LOST_AFTER:
            yield TrialEnded(look.trial, lost(job_id or ""))


async def _ask(this: CampaignPass) -> None:
    """Ask a person about runs of which nobody tells for long; the question goes once Slurm tells of all of them."""
    state, now = this.state, this.clock.now()
    unclear = [trial for trial, one in state.missed.items() if now - one.since >= ASKED_AFTER and not one.given_up]
    if not unclear or state.over or state.question is not None:
        return
    jobs = ", ".join(dict.fromkeys(state.trials[trial].job_id or "" for trial in unclear[:_NAMED]))
    more = "" if len(unclear) <= _NAMED else f" and {len(unclear) - _NAMED} more"
    hours = round(ASKED_AFTER.total_seconds() / 3600)
    text = (
        f"For {hours} h the controller has not shown {trials_in_words(unclear)} (job {jobs}{more}), and nobody tells"
        " how that ended. Look with squeue and sacct on that cluster whether it still runs"
    )
    choices = {LOST: "they are over: count them as failed, nothing of them is sent again", STOP: STOP_TOLD}
    await this.record.add(QuestionAsked(f"q{len(state.questions) + 1}", f"{text}.", choices, trials=tuple(unclear)))


def _tell_unknown(this: CampaignPass, looks: Sequence[TrialLook]) -> None:
    for why in dict.fromkeys(look.why for look in looks if look.phase == "unknown"):
        unknown = trials_in_words([look.trial for look in looks if look.phase == "unknown" and look.why == why])
        this.tell(f"How {unknown} stands is not known now: {plain(why or 'nobody can tell')}")


async def _cancel(this: CampaignPass, sent: Sequence[SentTrial], why: str) -> None:
    """Cancel what waits; what is left is told, and cancelled by a later pass."""
    try:
        kept = await this.ports.cancel(sent, why)
    except _NOT_DONE as error:
        this.left_undone(f"{trials_in_words([one.trial.id for one in sent])} could not be cancelled", error)
        return
    gone = sorted(one.trial.id for one in sent if one.trial.id not in kept)
    if gone:
        this.tell(f"{trials_in_words(gone)} had not begun and were cancelled.")
    for reason in dict.fromkeys(said for said in kept.values() if said is not None):
        left = trials_in_words(sorted(trial for trial, said in kept.items() if said == reason))
        this.tell(f"{left} could not be cancelled: {plain(reason)} It is tried again with the next call.")
        this.wait_for(AWAY, f"{left} could not be cancelled")
        this.undone = True
