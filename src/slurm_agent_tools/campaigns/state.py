"""What is known of a campaign: records that `event_folding.fold` makes of what happened to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from slurm_agent_tools.campaigns.campaign_budget import CampaignSpending
from slurm_agent_tools.models.campaign import (
    BatchIntended,
    BatchRefused,
    CampaignStatus,
    Noted,
    PersonDecided,
    QuestionAsked,
    RevisionBegun,
    RoundJudged,
    StageStopped,
    Trial,
    TrialEnd,
    TrialId,
    TrialRequest,
)
from slurm_agent_tools.models.campaign_file import CampaignFile

TrialPhase = Literal["planned", "sending", "sent", "ended", "refused", "left_out"]
"""sending: it is written down that it is sent, and not known yet whether Slurm has it."""

AGAIN = "again"
"""The choice to ask the guard once more for a batch that it refused: nothing of it was ever sent."""

STOP, LEAVE_OUT = "stop", "leave_out"
"""The choices to end the campaign, and to go on without what failed."""

STOP_TOLD = "end the campaign; what runs is left to end, what waits is cancelled"

LOST = "lost"
"""The choice to take runs of which nobody tells as over: a person has looked whether they still run."""

GO_ON = "go_on"
"""The choice to run a stopped stage again, offered only after what it runs was changed."""


@dataclass(frozen=True, slots=True)
class TrialState:
    """A trial and what came of it. `job_id`: 123 or 123_4. `end`: also of a reused trial. `why`: refused, left out."""

    trial: Trial
    phase: TrialPhase
    revision: int
    key: str | None = None
    job_id: str | None = None
    end: TrialEnd | None = None
    why: str | None = None

    @property
    def passed(self) -> bool:
        """Whether it ended, and well."""
        return self.end is not None and self.end.passed

    @property
    def failed(self) -> bool:
        """Whether it ended, and not well."""
        return self.end is not None and not self.end.passed


@dataclass(frozen=True, slots=True)
class BatchState:
    """Trials that are one job. `job_id` once Slurm has it; `refused` while it does not take it."""

    intended: BatchIntended
    revision: int
    at: datetime
    job_id: int | None = None
    refused: BatchRefused | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """Since when nobody tells of a run, and since when the accounting answers each time that it has no record of it.

    `given_up`: a person said since that it is over.
    """

    since: datetime
    unrecorded: datetime | None = None
    given_up: bool = False


@dataclass(frozen=True, slots=True)
class CampaignState:
    """A campaign as it stands after `events` events. Trials are in the order in which they were designed."""

    status: CampaignStatus = "planned"
    revision: int = 0
    file_sha256: str | None = None
    code: Mapping[str, str] = field(default_factory=dict)
    round: int = 0
    """The open one, or the last; 0 before any."""
    trials: Mapping[TrialId, TrialState] = field(default_factory=dict)
    judged: Mapping[int, RoundJudged] = field(default_factory=dict)
    chance_spent: float = 0.0
    """The sum of `RoundJudged.chance` over all judgements there were, also those that a revision took back."""
    hypotheses: Mapping[int, str] = field(default_factory=dict)
    question: QuestionAsked | None = None
    """The open one."""
    stops: Mapping[str, StageStopped] = field(default_factory=dict)
    """Stages of which nothing more is sent, by name."""
    notes: tuple[Noted, ...] = ()
    reason: str | None = None
    """Why it ended."""
    events: int = 0
    last_at: datetime | None = None
    spent: CampaignSpending = CampaignSpending()
    revisions: Mapping[int, RevisionBegun] = field(default_factory=dict)
    batches: Mapping[str, BatchState] = field(default_factory=dict)
    questions: Mapping[str, QuestionAsked] = field(default_factory=dict)
    decisions: Mapping[str, PersonDecided] = field(default_factory=dict)
    asked_in: Mapping[str, int] = field(default_factory=dict)
    """The revision in which each question was asked."""
    phases: Mapping[TrialPhase, Mapping[TrialId, None]] = field(default_factory=dict)
    rounds: Mapping[int, tuple[TrialId, ...]] = field(default_factory=dict)
    replaced: Mapping[TrialId, TrialId] = field(default_factory=dict)
    """A failed trial -> the one that mends it."""
    passed_identities: Mapping[str, TrialId] = field(default_factory=dict)
    failed_requests: Mapping[tuple[str, TrialRequest], TrialId] = field(default_factory=dict)
    """What failed, exactly as it ran: nothing of it is ever sent again."""
    arms: Mapping[tuple[str, str], tuple[TrialId, ...]] = field(default_factory=dict)
    undecided: Mapping[str, None] = field(default_factory=dict)
    """What a person has to decide on, asked or not yet: causes for which stages stopped, keys of refused batches."""
    forgiven: Mapping[TrialId, None] = field(default_factory=dict)
    """Failures that do not count any more, because a person said to go on after what runs was changed."""
    unsaved: Mapping[TrialId, None] = field(default_factory=dict)
    """Ended trials of which no result is noted."""
    unlearned: Mapping[TrialId, None] = field(default_factory=dict)
    """Trials that mended a failure, of which no lesson is noted."""
    missed: Mapping[TrialId, Missed] = field(default_factory=dict)
    """Sent trials that the controller does not show, and of which nobody tells how they ended."""
    report_due: bool = False

    @property
    def stopped_stages(self) -> frozenset[str]:
        """Stages of which nothing more is sent."""
        return frozenset(self.stops)

    @property
    def over(self) -> bool:
        """Whether nothing is sent any more, for good."""
        return self.status in {"finished", "stopped"}

    def of_round(self, round: int) -> list[TrialState]:  # noqa: A002 - the field's own name
        """The trials of a round, by number."""
        return [self.trials[trial] for trial in self.rounds.get(round, ())]

    def in_phase(self, phase: TrialPhase) -> list[TrialState]:
        """The trials of a phase."""
        return [self.trials[trial] for trial in self.phases.get(phase, ())]

    def finished(self, stage: str, arm: str) -> list[TrialState]:
        """The runs of a configuration that ended and passed, of any length; each once, however often it is reused."""
        listed = (self.trials[trial] for trial in self.arms.get((stage, arm), ()))
        return [found for found in listed if found.passed and found.trial.reuses is None]

    def chain(self, trial: TrialId) -> list[TrialState]:
        """A trial and those that it mends, newest first; of a reusing trial those of the reused one."""
        found: list[TrialState] = []
        now: TrialId | None = trial
        while now is not None:
            state = self.trials[now]
            if state.trial.reuses is None:
                found.append(state)
            now = state.trial.reuses or state.trial.replaces
        return found

    def is_smoke(self, trial: TrialId) -> bool:
        """Whether it is a smoke run, or mends one: then it opens its stage as the one that failed would have."""
        return self.chain(trial)[-1].trial.purpose == "smoke"

    @property
    def order(self) -> tuple[str, ...]:
        """The jobs of the plan that the present revision follows, by their starts; () where it follows none."""
        return self.revisions[self.revision].order if self.revision else ()

    def changed_code(self, trial: TrialId) -> bool:
        """Whether its stage runs something else now than when it was designed."""
        found = self.trials[trial]
        return self.revisions[found.revision].code.get(found.trial.stage) != self.code.get(found.trial.stage)

    def document(self, revision: int | None = None) -> str:
        """The file's text in a revision; the present one without. Raises KeyError."""
        return self.revisions[self.revision if revision is None else revision].document


def objective_value(file: CampaignFile, end: TrialEnd, mended: Sequence[TrialEnd] = ()) -> float | None:
    """What counts of a run: the metric, or queue and run seconds, its own and those of the failed runs it mends."""
    if file.objective.metric is not None:
        return end.metrics.get(file.objective.metric)
    total = 0.0
    for one in (end, *mended):
        if one.run_seconds is None or one.queue_seconds is None:
            return None
        total += one.queue_seconds + one.run_seconds
    return total


def trial_value(file: CampaignFile, state: CampaignState, trial: TrialId) -> float | None:
    """The objective's value of a trial with the failed runs that it mends; None before its end or where not known."""
    own, *before = (found.end for found in state.chain(trial))
    return None if own is None else objective_value(file, own, [end for end in before if end is not None])
