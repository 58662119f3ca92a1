"""What a campaign needs from outside, as ports: services carry them out, tests replay them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.models.campaign import Trial, TrialEnd, TrialId
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
    """A trial that Slurm has: `job_id` 123 or 123_4."""

    trial: Trial
    job_id: str


@dataclass(frozen=True, slots=True)
class TrialLook:
    """What was seen of a trial. `end` where it has ended and its end is known in full."""

    trial: TrialId
    phase: Literal["pending", "running", "ended"]
    started: datetime | None = None
    end: TrialEnd | None = None
    expected_start: datetime | None = None
    """When Slurm expects a pending one to start."""


class SendableBatch(Protocol):
    """Trials that are sent as one job, with all that is written for them (`batch.Batch`)."""

    @property
    def key(self) -> str:
        """The idempotency key: the same trials have the same key."""
        ...

    @property
    def trials(self) -> tuple[TrialId, ...]:
        """The trials, in the order of their tasks."""
        ...

    @property
    def script_path(self) -> str:
        """Where the script lies, from the project's root."""
        ...

    @property
    def script_text(self) -> str:
        """The job script."""
        ...

    @property
    def files(self) -> Mapping[str, str]:
        """Other files to write, path -> text."""
        ...

    @property
    def task_ids(self) -> tuple[int, ...] | None:
        """Each trial's task of the array; None where it is one trial and no array."""
        ...

    @property
    def at_once(self) -> int | None:
        """The array's throttle."""
        ...

    @property
    def arguments(self) -> Mapping[str, object]:
        """Those of submit_job but for its stage."""
        ...


class CampaignPorts(Protocol):
    """The outside of a campaign. Each may raise the errors of `errors.py`; SlurmUnreachable: nothing was changed."""

    async def code_hash(self, stage: CampaignStage) -> str:
        """A hash of what a stage runs: script, the files it reads, its configuration file."""
        ...

    async def texts(self, paths: Sequence[str]) -> Mapping[str, str]:
        """Text files of the project (`batch.needed_texts`), path -> text."""
        ...

    async def write(self, batch: SendableBatch) -> None:
        """Write the script and files of a batch into the project; writing them again changes nothing."""
        ...

    async def send(self, batch: SendableBatch, stage: CampaignStage) -> SendOutcome:
        """Submit it as submit_job does, under the policy and the cap. A key that was sent answers with its job."""
        ...

    async def find(self, key: str) -> FoundBatch:
        """What became of a batch that was about to be sent, without sending it."""
        ...

    async def look(self, sent: Sequence[SentTrial]) -> Sequence[TrialLook]:
        """Where trials stand that Slurm has."""
        ...

    async def cancel(self, sent: Sequence[SentTrial], reason: str) -> None:
        """Cancel trials that have not started."""
        ...

    async def save_result(self, trial: Trial, end: TrialEnd) -> str | None:
        """Save the result of a trial, once, as any result; its path, None where there is nothing to save."""
        ...

    async def write_lesson(self, failed: TrialEnd, mended: Trial, end: TrialEnd) -> str | None:
        """Write down, once, which failure was mended and how; the line, None where it is there already."""
        ...

    async def write_report(self, file: CampaignFile, state: CampaignState) -> str | None:
        """Write the report beside the file; its path."""
        ...
