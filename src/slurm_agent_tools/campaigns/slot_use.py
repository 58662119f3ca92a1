"""How much of the shared slots a campaign used, and what its active runs may yet take, in GPU seconds. Pure.

A run without GPUs counts as one with one GPU: it takes a slot as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from slurm_agent_tools.campaigns.next_step import expected_seconds
from slurm_agent_tools.campaigns.ports import TrialLook
from slurm_agent_tools.campaigns.state import CampaignState, TrialState
from slurm_agent_tools.models.campaign import Trial, TrialEnd, TrialId


def weight(trial: Trial) -> int:
    """How many GPUs it counts as."""
    return max(1, trial.request.gpus)


def used(state: CampaignState, looks: Mapping[TrialId, TrialLook], since: datetime, now: datetime) -> float:
    """What its runs had between both moments, those that run included."""
    total = 0.0
    for one in state.trials.values():
        if one.end is not None and one.trial.reuses is None:
            total += weight(one.trial) * _ended_seconds(state, one, one.end, since)
        elif one.phase == "sent":
            total += weight(one.trial) * _running_seconds(looks.get(one.trial.id), since, now)
    return total


def ahead(state: CampaignState, looks: Mapping[TrialId, TrialLook], now: datetime) -> float:
    """What its queued and running runs may yet take."""
    active = [*state.in_phase("sending"), *state.in_phase("sent")]
    return sum(weight(one.trial) * _left(state, one, looks.get(one.trial.id), now) for one in active)


def begun(state: CampaignState) -> datetime | None:
    """When its first run was sent; None before."""
    return min((batch.at for batch in state.batches.values()), default=None)


def shortest_expected(state: CampaignState) -> float | None:
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


WINDOW = timedelta(hours=24)
"""Over so long the used time is compared with the shares, unless the caller says otherwise."""
