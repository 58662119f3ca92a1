"""The sections of get_fleet in their order: what each needs to be read, how it is made and said in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.sections import (
    fleet_alerts,
    free_now,
    idle_use,
    inventory,
    matching,
    pending_waits,
    quota_shares,
    spending,
)
from slurm_agent_tools.models.fleet_answer import NotMeasured

Source = Literal[
    "nodes", "partitions", "reservations", "queue", "use", "past", "ran", "alerts", "prices", "associations"
]
"""What is read of the cluster, by a word."""


@dataclass(frozen=True, slots=True)
class FleetSectionMaker:
    """One section. `needs`: without these it is an error; `helps`: read for it as well, and told where it is missing.

    `unknown` tells what in it is not measured.
    """

    needs: tuple[Source, ...]
    make: Callable[[FleetFacts], Any]
    sentence: Callable[[Any], str]
    unknown: Callable[[FleetFacts], Sequence[NotMeasured]] = lambda _: ()
    helps: tuple[Source, ...] = ()
    asked: str | None = None
    """The section that callers ask for, where it has another name."""


SECTIONS: dict[str, FleetSectionMaker] = {
    "inventory": FleetSectionMaker(
        ("nodes", "partitions"), inventory.section, inventory.sentence, inventory.unknown, ("reservations",)
    ),
    "free": FleetSectionMaker(
        ("nodes", "partitions"), free_now.section, free_now.sentence, free_now.unknown, ("reservations",)
    ),
    "match": FleetSectionMaker(
        ("nodes", "partitions"), matching.section, matching.sentence, matching.unknown, ("reservations", "associations")
    ),
    "idle": FleetSectionMaker(("queue",), idle_use.idle, idle_use.idle_sentence, idle_use.unknown, ("use", "ran")),
    "use": FleetSectionMaker(("queue",), idle_use.beside, lambda _: "", helps=("use",), asked="idle"),
    "ends_soon": FleetSectionMaker(("queue",), idle_use.endings, lambda _: "", asked="idle"),
    "waits": FleetSectionMaker(
        ("queue",), pending_waits.section, pending_waits.sentence, pending_waits.unknown, ("past",)
    ),
    "cost": FleetSectionMaker(("ran", "prices"), spending.section, spending.sentence, spending.unknown, ("queue",)),
    "shares": FleetSectionMaker(
        ("ran",), quota_shares.section, quota_shares.sentence, quota_shares.unknown, ("queue", "nodes")
    ),
    "alerts": FleetSectionMaker(
        ("queue",),
        fleet_alerts.section,
        fleet_alerts.sentence,
        fleet_alerts.unknown,
        ("nodes", "partitions", "use", "ran", "alerts"),
    ),
}
"""By the name of the answer's field, in its order."""
