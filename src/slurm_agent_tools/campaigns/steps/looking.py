"""Looking where trials stand that Slurm has, and cancelling those that are not wanted any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from slurm_agent_tools.campaigns.campaign_pass import AWAY, PASSING, CampaignPass
from slurm_agent_tools.campaigns.event_sentences import plain, trials_in_words
from slurm_agent_tools.campaigns.next_step import LookAtTrials
from slurm_agent_tools.campaigns.outcomes import LOST_AFTER, lost
from slurm_agent_tools.campaigns.ports import SentTrial, TrialLook
from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.models.campaign import CampaignEvent, Noted, TrialEnded

_NOT_DONE: tuple[type[AgentToolsError], ...] = (InputError, *PASSING)


async def look(this: CampaignPass, step: LookAtTrials) -> None:
    """Write down which trials ended, tell of which it is not known, and cancel. Raises SlurmUnreachable."""
    looks = await this.ports.look([replace(one, stage=this.stage_of(one.trial.id)) for one in step.sent])
    this.looks = {look.trial: look for look in looks}
    ended = [TrialEnded(look.trial, look.end) for look in looks if look.phase == "ended" and look.end is not None]
    await this.record.add_facts(*ended, *_missed(this, looks))
    _tell_unknown(this, looks)
    if any(look.phase == "unknown" and not look.gone and look.trial in step.cancel for look in looks):
        this.wait_for(AWAY, "it is not known which trials have not begun, and are to be cancelled")
        this.undone = True
    waiting = {look.trial for look in looks if look.phase == "pending"} & step.cancel
    if waiting:
        await _cancel(this, [one for one in step.sent if one.trial.id in waiting], step.why)


def _missed(this: CampaignPass, looks: Sequence[TrialLook]) -> Iterator[CampaignEvent]:
    """When the end of a run was first asked for in vain, when it is told after all, and when it is taken as lost."""
    for look in looks:
        since, job_id = this.state.missed.get(look.trial), this.state.trials[look.trial].job_id
        if not look.gone:
            if since is not None and look.phase in {"pending", "running"}:
                yield Noted("seen", "Slurm shows it again", look.trial)
        elif since is None:
            said = f"{look.trial} is over, and how it ended is not told now: {plain(look.why or 'nobody can tell')}"
            yield Noted("missed", said, look.trial)
        elif this.clock.now() - since >= LOST_AFTER:
            yield TrialEnded(look.trial, lost(job_id or ""))


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
