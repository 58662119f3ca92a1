"""Which rounds stand when the file of a campaign changes, and which it goes through again. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.campaigns.next_step import BUDGET
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.campaigns.trial_identity import measures, ways_told
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign import RevisionBegun
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage, Round


def next_revision(
    file: CampaignFile,
    data: bytes,
    code: Mapping[str, str],
    state: CampaignState,
    path: str,
    order: tuple[str, ...] = (),
) -> RevisionBegun:
    """The revision that begins with a file, read from `data`; `code`: a hash of what each of its stages runs.

    `order`: of the plan that the file names.
    """
    kept, sha256 = rounds_kept(file, state, path), hashlib.sha256(data).hexdigest()
    return RevisionBegun(state.revision + 1, sha256, data.decode(), code, kept, file.plan, order)


def rounds_kept(file: CampaignFile, state: CampaignState, path: str) -> int | None:
    """How many of the first rounds stay as they are when `file` takes the place of the present revision's.

    A round is gone through again where it, or one before it, says something else now, had trials left out for a limit,
    or has a stage that is new, is told its values otherwise, or is measured otherwise: later rounds rest on it.
    What has run of it just so is not run again. None: all stay.
    """
    if not state.revision:
        return None
    try:
        before = read_campaign(state.document().encode(), path)
    except InputError:  # another version of this tool read it
        return None
    new = _other_stages(before, file)
    cut = _cut_short(state)
    pairs = list(zip(before.rounds, file.rounds, strict=False))
    stands = (number not in cut and _same(old, now, new) for number, (old, now) in enumerate(pairs))
    return next((number for number, stays in enumerate(stands) if not stays), len(pairs))


def _other_stages(before: CampaignFile, file: CampaignFile) -> frozenset[str]:
    """Stages of the file of which the verdicts that there are say nothing. A parameter that is added changes none."""
    old = {stage.name: stage for stage in before.stages}
    return frozenset(
        stage.name for stage in file.stages if stage.name not in old or _runs_otherwise(old[stage.name], stage)
    )


def _runs_otherwise(old: CampaignStage, now: CampaignStage) -> bool:
    told, tells = ways_told(old), ways_told(now)
    return measures(old) != measures(now) or any(told[name] != tells[name] for name in told.keys() & tells.keys())


def _same(old: Round, now: Round, new: AbstractSet[str]) -> bool:
    """Whether the rounds try the same in the same stages, whatever is said of them."""
    if old.model_copy(update={"hypothesis": now.hypothesis}) != now:
        return False
    return not new if now.stages is None else new.isdisjoint(now.stages)


def _cut_short(state: CampaignState) -> frozenset[int]:
    """Rounds of which trials were left out for a limit."""
    return frozenset(
        one.trial.id.round
        for one in state.in_phase("left_out")
        if one.revision == state.revision and (one.why or "").startswith(BUDGET)
    )
