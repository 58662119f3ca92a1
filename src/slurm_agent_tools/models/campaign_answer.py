"""What get_campaign and advance_campaign answer: counts in place of rows, and a table only where it is asked for."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.campaign import CampaignStatus
from slurm_agent_tools.models.shapes import Reply, Shape, no_items


class CampaignCounts(Shape):
    """Trials of the campaign so far, by how they stand; `done` passed, or the same had passed before."""

    planned: int = 0
    pending: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0


class BestShown(Shape):
    """The configuration of a stage to go on with, its objective's value, and the trial that was run with it."""

    stage: str
    settings: dict[str, object]
    value: float | None = None
    trial: str | None = None
    verdict: str | None = None


class CampaignSpent(Shape):
    """Of ended trials what they took, of all others that were sent what they asked for. None: not known, no price."""

    gpu_hours: float | None = None
    cpu_hours: float | None = None
    cost: float | None = None
    currency: str | None = None


class CampaignQuestion(Shape):
    """What a person has to decide: choices by the word for `decision`, and what each means."""

    text: str
    choices: dict[str, str]


class CampaignReply(Reply):
    """The answer of both. `table`: rows under its first, which names the columns."""

    written_by_others: ClassVar[tuple[str, ...]] = ("happened", "question", "table", "best")

    status: CampaignStatus
    round: int | None = None
    counts: CampaignCounts = Field(default_factory=CampaignCounts)
    best: list[BestShown] = Field(default_factory=no_items)
    spent: CampaignSpent = Field(default_factory=CampaignSpent)
    limits: dict[str, float] = Field(default_factory=dict)
    question: CampaignQuestion | None = None
    happened: list[str] = Field(default_factory=no_items)
    happened_not_shown: int = 0
    submitted: list[str] = Field(default_factory=no_items)
    next_poll_seconds: int | None = None
    table: list[list[object]] | None = None
    rows_not_shown: int = 0
    report_path: str | None = None


class FedCampaign(Shape):
    """One campaign beside the others. `used_gpu_hours` in the window, a run without GPUs as one with one GPU.

    `part`: of what all used. `why`: what keeps it from sending more.
    """

    name: str
    status: CampaignStatus | Literal["unreadable"]
    share: float
    used_gpu_hours: float = 0.0
    part: float = 0.0
    active: int = 0
    ready: int = 0
    starved: bool = False
    why: str | None = None


class FeedReply(Reply):
    """What `campaign run --all` did until now. `free_slots`: as the guard counts them; None: not known.

    `ticks`: how often it looked; `ticks_with_room`: after how many of them a slot was left free beside work.
    """

    written_by_others: ClassVar[tuple[str, ...]] = ("campaigns", "happened")

    status: Literal["running", "finished", "needs_decision"]
    campaigns: list[FedCampaign] = Field(default_factory=no_items)
    free_slots: int | None = None
    ticks: int = 0
    ticks_with_room: int = 0
    submitted: list[str] = Field(default_factory=no_items)
    happened: list[str] = Field(default_factory=no_items)
