"""Keeping what came out: results, lessons and the report. What cannot be written holds nothing up."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.campaigns.campaign_pass import CampaignPass
from slurm_agent_tools.campaigns.event_sentences import plain
from slurm_agent_tools.campaigns.next_step import SaveTrials
from slurm_agent_tools.errors import AgentToolsError, SlurmUnreachable
from slurm_agent_tools.models.campaign import Noted, TrialId

_AT_ONCE = 200
"""Results that are saved together: after a crash in between, these are looked for among those that are there."""


async def save(this: CampaignPass, step: SaveTrials) -> None:
    """Save results and lessons, and note where. Raises SlurmUnreachable."""
    for at in range(0, len(step.results), _AT_ONCE):
        await this.record.add_facts(*await _saved(this, step.results[at : at + _AT_ONCE]))
    await this.record.add_facts(*[await _learned(this, trial) for trial in step.lessons])


async def _saved(this: CampaignPass, trials: Sequence[TrialId]) -> list[Noted]:
    found = [this.state.trials[trial] for trial in trials]
    try:
        places = await this.ports.save_results([(one.trial, one.end) for one in found if one.end is not None])
    except SlurmUnreachable:
        raise
    except AgentToolsError as error:
        places = dict.fromkeys(trials, f"not saved: {error.message}")
    return [Noted("result", places.get(trial, "nothing to save"), trial) for trial in trials]


async def _learned(this: CampaignPass, trial: TrialId) -> Noted:
    mended = this.state.trials[trial]
    replaced = mended.trial.replaces
    failed = None if replaced is None else this.state.trials[replaced].end
    if mended.end is None or failed is None:
        return Noted("lesson", "nothing was mended", trial)
    try:
        line = await this.ports.write_lesson(failed, mended.trial, mended.end)
    except SlurmUnreachable:
        raise
    except AgentToolsError as error:
        line = f"not written: {error.message}"
    return Noted("lesson", line or "written down before", trial)


async def report(this: CampaignPass) -> None:
    """A report that cannot be written is tried again by the next pass."""
    try:
        path = await this.ports.write_report(this.file_of(this.state.revision), this.state)
    except AgentToolsError as error:
        this.tell(f"The report was not written: {plain(error.message)}")
        return
    if path is not None:
        await this.record.add_facts(Noted("report", path))
