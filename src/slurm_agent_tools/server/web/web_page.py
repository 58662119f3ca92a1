"""What a page of the dashboard is, what was asked of it, and the record that its view shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from markupsafe import Markup

from slurm_agent_tools.models.node import Node
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all

TICK = 2.9
"""Seconds for which one look serves all who watch: a little less than two times that an open page asks again.

So one page and fifty make the same looks. A change is seen after this and one such time, which is under five seconds.
"""

_QUICK = 1.5

SLOW = 15.0
"""The same of what the accounting or many files have to tell."""

_SELDOM = 60.0
"""The same of partitions, as get_fleet asks for them."""


@dataclass(frozen=True, slots=True)
class PageAsked:
    """What stands behind a page's name in the address: `rest` of the path, `query` by name."""

    rest: str = ""
    query: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str, longest: int = 200) -> str:
        """What is asked under a name, cut to what a person would type."""
        return self.query.get(name, "")[:longest].strip()


@dataclass(frozen=True, slots=True)
class WebPage:
    """One page. `gather` makes the plain record that the template `views/NAME.html` shows; raises AgentToolsError.

    What a query chooses of it, `narrow` takes out: so all queries share one look.

    `age`: seconds for which the record serves everybody. `listed`: whether it stands in the navigation. `named`:
    whether the address may go on behind the page's name; a record is kept of each thing that is named so. `every`:
    seconds after which an open page asks again. `script`: a file of ours beside live.js.
    """

    name: str
    title: str
    gather: Callable[[ClusterContext, PageAsked], Awaitable[dict[str, Any]]]
    narrow: Callable[[Mapping[str, Any], PageAsked], dict[str, Any]] | None = None
    age: float = TICK
    listed: bool = True
    named: bool = False
    script: str | None = None

    @property
    def every(self) -> float:
        """Half of what one look serves for; where a record is kept for long, a third of that."""
        return max(_QUICK, round(self.age / 3))

    def shown(self, record: Mapping[str, Any], asked: PageAsked, base: str) -> Markup:
        """What was asked of the record as HTML."""
        chosen = record if self.narrow is None else self.narrow(record, asked)
        return fragments.fragment(self.name, chosen, base)


async def look_fresh(
    context: ClusterContext, *beside: Callable[[], Awaitable[Any]]
) -> ConcurrentQuestion[tuple[Node, ...]]:
    """See that queue and nodes are a tick old at most; the nodes, or why they could not be read.

    What else a page of the fleet rests on is asked at the same time as they are, where it is not known: so a first view
    waits for the longest of these questions, not for one after the other. What could not be read is told where it is
    shown.
    """
    slurm, age = context.slurm, TICK * context.slurm.verdict.factor
    nodes = ConcurrentQuestion(partial(slurm.nodes, max_age=age))
    others: list[Callable[[], Awaitable[Any]]] = [
        partial(slurm.queue, max_age=age),
        partial(slurm.partitions, max_age=_SELDOM),
        slurm.running.reservations,
        slurm.configuration,
        *beside,
    ]
    await ask_all(nodes, *map(ConcurrentQuestion[Any], others))
    return nodes
