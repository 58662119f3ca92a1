"""What a campaign needs from outside, as ports: services carry them out, tests replay them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from slurm_agent_tools.campaigns.batch import Batch
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.models.campaign import CampaignEvent, Stamped, Trial, TrialEnd, TrialId
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage


@dataclass(frozen=True, slots=True)
class BatchIsSent:
    """Slurm has it, under this number: of an array the array's."""

    job_id: int


@dataclass(frozen=True, slots=True)
class BatchHasToWait:
    """Nothing was sent, and nothing is wrong with it: a cap or a rate does not let it in now. Seconds until a try."""

    seconds: float
    why: str


@dataclass(frozen=True, slots=True)
class BatchIsRefused:
    """Nothing was sent. `person`: a person has to act before it can be, such as approve it."""

    reason: str
    person: bool
    rules: tuple[str, ...] = ()
    artifacts: tuple[str, ...] = ()
    manual_commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchIsUnconfirmed:
    """It may have been sent: asking again with the same key finds out, and never sends it twice."""

    why: str


SendOutcome = BatchIsSent | BatchHasToWait | BatchIsRefused | BatchIsUnconfirmed


@dataclass(frozen=True, slots=True)
class BatchWasNeverSent:
    """Slurm has no job of this key, and will have none: it was not sent."""


FoundBatch = BatchIsSent | BatchWasNeverSent | BatchIsUnconfirmed


@dataclass(frozen=True, slots=True)
class SentTrial:
    """A trial that Slurm has: `job_id` 123 or 123_4. `stage`: its own, as the file had it when it was designed.

    `smoke`: it is a smoke run, or mends one.
    """

    trial: Trial
    job_id: str
    stage: CampaignStage | None = None
    smoke: bool = False


@dataclass(frozen=True, slots=True)
class TrialLook:
    """What was seen of a trial. `end` where it has ended and its end is known in full; `why` it is unknown.

    `gone`: an unknown one that the controller, which answers, does not show. `unrecorded`: the accounting answers as
    well, and has no record of it.
    """

    trial: TrialId
    phase: Literal["pending", "running", "ended", "unknown"]
    started: datetime | None = None
    end: TrialEnd | None = None
    expected_start: datetime | None = None
    """When Slurm expects a pending one to start."""
    why: str | None = None
    gone: bool = False
    unrecorded: bool = False


class CampaignLog(Protocol):
    """The events of one campaign in the ledger (`store.campaign_events`)."""

    async def events(self, *, after: int = 0) -> Sequence[Stamped]:
        """What happened, in order; only what came after that many events."""
        ...

    async def append(self, events: Sequence[CampaignEvent], *, expected: int) -> Sequence[Stamped] | None:
        """Add events behind the `expected` ones; None, and nothing added, where there are others by now."""
        ...

    def lock(self) -> AbstractContextManager[bool]:
        """Try to be the only one who advances the campaign; yields False where another does."""
        ...


class CampaignPorts(Protocol):
    """The outside of a campaign. Each may raise the errors of `errors.py`; SlurmUnreachable: nothing was changed."""

    async def code_hash(self, stage: CampaignStage) -> str:
        """A hash of what a stage runs: script, the files it reads, its configuration file."""
        ...

    async def texts(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Text files of the project (`batch.needed_texts`), path -> text."""
        ...

    async def plan_order(self, uri: str) -> tuple[str, ...]:
        """The jobs of a plan that name trials, by their starts. Raises InputError for one that cannot serve."""
        ...

    async def write(self, batch: Batch) -> None:
        """Write the script and files of a batch into the project; writing them again changes nothing."""
        ...

    @property
    def most_slots(self) -> int:
        """How many runs the guard's limit of concurrent jobs lets in where nothing else of this user is active."""
        ...

    async def free_slots(self) -> int:
        """How many more runs the guard's limit of concurrent jobs lets in now; not below 0."""
        ...

    async def send(self, batch: Batch, stage: CampaignStage) -> SendOutcome:
        """Submit it as submit_job does, under the policy and the cap. A key that was sent answers with its job."""
        ...

    async def find(self, key: str) -> FoundBatch:
        """What became of a batch that was about to be sent, without sending it."""
        ...

    async def look(self, sent: Sequence[SentTrial]) -> Sequence[TrialLook]:
        """Where trials stand that Slurm has."""
        ...

    async def cancel(self, sent: Sequence[SentTrial], reason: str) -> Mapping[TrialId, str | None]:
        """Cancel trials that have not started. Those that were not cancelled, and why; None: it began, or is over."""
        ...

    async def save_results(self, ended: Sequence[tuple[Trial, TrialEnd]]) -> Mapping[TrialId, str]:
        """Save the results of trials, each once, as any result: where they are, or why one could not be saved."""
        ...

    async def write_lesson(self, failed: TrialEnd, mended: Trial, end: TrialEnd) -> str | None:
        """Write down, once, which failure was mended and how; the line, None where it is there already."""
        ...

    async def write_report(self, file: CampaignFile, state: CampaignState) -> str | None:
        """Write the report beside the file; its path."""
        ...
