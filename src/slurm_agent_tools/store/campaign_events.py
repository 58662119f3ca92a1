"""What happened to campaigns: events in the ledger, numbered without gaps, that are never changed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, get_args

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.campaign import CampaignEvent, Stamped
from slurm_agent_tools.store.database import Database
from slurm_agent_tools.store.ledger_location import named_lock
from slurm_agent_tools.store.submissions import Owner, from_text, to_text
from slurm_agent_tools.transport.base import Clock

_KINDS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(CampaignEvent)}

_LOCKS = "campaign-locks"


@dataclass(frozen=True, slots=True)
class CampaignEntry:
    """A campaign of the ledger: how much happened to it, first and last."""

    name: str
    events: int
    begun: datetime
    updated: datetime


class CampaignLedger:
    """The campaigns of one ledger. Every change is committed before it returns. Raises StorageError."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db, self._clock = db, clock

    def events(self, owner: Owner, name: str, *, after: int = 0) -> list[Stamped]:
        """What happened to a campaign, in order; only what came after that many events."""
        rows = self._db.rows(
            "SELECT number, at, kind, event FROM campaign_events WHERE user = ? AND project = ? AND cluster = ?"
            " AND campaign = ? AND number > ? ORDER BY number",
            (owner.user, owner.project, owner.cluster, name, after),
        )
        found = [_stamped(name, row["number"], row["at"], row["kind"], row["event"]) for row in rows]
        if any(one.number != after + place for place, one in enumerate(found, 1)):
            raise StorageError(f"the events of the campaign {name} have a gap: the ledger was changed")
        return found

    def append(
        self, owner: Owner, name: str, events: Sequence[CampaignEvent], *, expected: int
    ) -> tuple[Stamped, ...] | None:
        """Add events behind the `expected` ones that there are; None, and nothing added, where there are others."""
        now = self._clock.now()
        place = (owner.user, owner.project, owner.cluster, name)
        with self._db.change() as db:
            (last,) = db.execute(
                "SELECT coalesce(max(number), 0) FROM campaign_events"
                " WHERE user = ? AND project = ? AND cluster = ? AND campaign = ?",
                place,
            ).fetchone()
            if last != expected:
                return None
            stamped = tuple(Stamped(number, now, event) for number, event in enumerate(events, expected + 1))
            db.executemany(
                "INSERT INTO campaign_events VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (*place, one.number, now.timestamp(), type(one.event).__name__, to_text(one.event))
                    for one in stamped
                ],
            )
        return stamped

    def listed(self, owner: Owner) -> list[CampaignEntry]:
        """The campaigns of this caller, by name."""
        rows = self._db.rows(
            "SELECT campaign, count(*) AS events, min(at) AS begun, max(at) AS updated FROM campaign_events"
            " WHERE user = ? AND project = ? AND cluster = ? GROUP BY campaign ORDER BY campaign",
            (owner.user, owner.project, owner.cluster),
        )
        return [
            CampaignEntry(row["campaign"], row["events"], _time(row["begun"]), _time(row["updated"])) for row in rows
        ]

    @contextmanager
    def lock(self, owner: Owner, name: str) -> Iterator[bool]:
        """Try to be the only one who advances a campaign; yields False where another does. Freed by a crash."""
        words = f"{owner.user}\0{owner.project}\0{owner.cluster}\0{name}"
        digest = hashlib.sha256(words.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        with named_lock(self._db.path.parent / _LOCKS, f"{digest}.sqlite3") as held:
            yield held


def _stamped(campaign: str, number: int, at: float, kind: str, text: str) -> Stamped:
    try:
        return Stamped(number, _time(at), from_text(_KINDS[kind], text))
    except (KeyError, ValueError) as error:
        raise StorageError(
            f"event {number} of the campaign {campaign} cannot be read ({kind})",
            hint="It was written by a newer version: update slurm-agent-tools.",
        ) from error


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
