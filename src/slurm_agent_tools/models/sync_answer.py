"""The answer of sync_files."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.decision import Blocked
from slurm_agent_tools.models.shapes import Reply, Shape, no_items


class KeptShown(Shape):
    """A file that was not touched, and why."""

    path: str
    why: str


class SyncReply(Reply, Blocked):
    """Answer of sync_files. Counts are files, `bytes` their size at most; of a dry run, what would be.

    Of a file that grew only its end comes back, and is counted. Of one that changed rsync sends less than is counted.
    """

    written_by_others: ClassVar = ("differs", "deleted", "kept")

    status: Literal["done", "blocked", "partial"]
    direction: Literal["push", "pull", "status"]
    dry_run: bool = False
    sent: int = 0
    received: int = 0
    unchanged: int = 0
    bytes: int = 0
    differs: list[str] = Field(default_factory=no_items, description="Files that are not the same on both sides now")
    differs_not_shown: int = 0
    deleted: list[str] = Field(default_factory=no_items)
    kept: list[KeptShown] = Field(default_factory=no_items, description="Files that were not touched, and why")
    kept_not_shown: int = 0
