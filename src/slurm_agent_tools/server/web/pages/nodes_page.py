"""Fleet: every node by its state and load, tiers, partitions, who waits where, reservations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from html import escape
from typing import Any

from markupsafe import Markup

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.insights.capacity import usable
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.models.toolset_arguments import GetFleet
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.web_page import TICK, PageAsked, WebPage
from slurm_agent_tools.services import fleet_look
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all
from slurm_agent_tools.text import sanitize

KINDS = {
    "idle": "nothing given away",
    "some": "partly given away",
    "full": "all GPUs, or all CPUs, given away",
    "kept": "drained, reserved or kept for work",
    "away": "powered off, or not known",
    "down": "down, failing or silent",
}
"""Kinds of nodes, the best first, and what each means."""

_ACROSS, _SIDE, _NAMED = 50, 14, 400
"""Nodes in a row, pixels that one takes, and up to how many each says its name under the pointer."""

_KEPT_STATES = ("drain", "drng", "resv", "maint", "plnd", "futr")


async def gather(context: ClusterContext, _: PageAsked) -> dict[str, Any]:
    """The record of the page."""
    age = TICK * context.slurm.verdict.factor
    nodes = ConcurrentQuestion(partial(context.slurm.running.nodes, age))
    await ask_all(nodes, ConcurrentQuestion(partial(context.slurm.queue, max_age=age)))
    ask = GetFleet(sections=["inventory", "waits"], detail="full")
    told = (await fleet_look.get_fleet(context, ask)).model_dump(mode="json")
    found: Sequence[Node] = nodes.answer or ()
    groups = by_kind(found)
    record = fragments.plain(
        {
            "inventory": told["inventory"],
            "waits": told["waits"],
            "kinds": [{"kind": kind, "what": what, "nodes": len(groups.get(kind, ()))} for kind, what in KINDS.items()],
            "problem": str(nodes.error) if isinstance(nodes.error, SlurmError) else None,
            "not_measured": told["not_measured"],
        }
    )
    return record | {"map": node_map(found), "marks": {kind: mark(kind) for kind in KINDS}}


def kind_of(node: Node) -> str:
    """Which of KINDS a node is."""
    state = node.state.lower()
    if node.troubled:
        return "down"
    if state.startswith(_KEPT_STATES) or node.drained or node.flags & {"MAINTENANCE", "RESERVED"}:
        return "kept"
    if not usable(node) or node.cpus_used is None:
        return "away"
    if not node.cpus_used and not node.gpus_used:
        return "idle"
    full = node.cpus_used >= node.cpus or (node.gpus > 0 and (node.gpus_used or 0) >= node.gpus)
    return "full" if full else "some"


def by_kind(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    """Nodes by their kind, each in the order given."""
    found: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        found[kind_of(node)].append(node)
    return dict(found)


def node_map(nodes: Sequence[Node]) -> Markup:
    """A square a node, coloured by its kind; of few nodes each says under the pointer what it is.

    Of many all squares of a kind are one path, so that 2,000 nodes stay small. Colours are classes of the style sheet.
    """
    across = min(_ACROSS, max(1, len(nodes)))
    places = {node.name: (_SIDE * (at % across), _SIDE * (at // across)) for at, node in enumerate(nodes)}
    size = f"{_SIDE * across} {_SIDE * (-(-len(nodes) // across) or 1)}"
    side = _SIDE - 2
    pieces = []
    for kind, members in by_kind(nodes).items():
        if len(nodes) <= _NAMED:
            pieces += [_square(node, kind, places[node.name], side) for node in members]
        else:
            spots = "".join(f"M{x} {y}h{side}v{side}h-{side}z" for x, y in (places[node.name] for node in members))
            pieces.append(f'<path class="{kind}" d="{spots}"><title>{len(members)}: {KINDS[kind]}</title></path>')
    told = ", ".join(f"{len(members)} {KINDS[kind]}" for kind, members in by_kind(nodes).items())
    width = size.split(maxsplit=1)[0]
    return Markup(  # noqa: S704 - names are escaped in _square
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{width}" role="img"'
        f' aria-label="Nodes by load: {escape(told)}">{"".join(pieces)}</svg>'
    )


def _square(node: Node, kind: str, place: tuple[int, int], side: int) -> str:
    gpus = f", {node.gpus_used if node.gpus_used is not None else '?'} of {node.gpus} GPUs" if node.gpus else ""
    cpus = f"{node.cpus_used if node.cpus_used is not None else '?'} of {node.cpus} CPUs"
    told = f"{node.name}: {node.state}, {cpus}{gpus}" + (f" ({node.reason})" if node.reason else "")
    shown = escape(sanitize.shown(sanitize.line(told))[:300])
    x, y = place
    return f'<rect class="{kind}" x="{x}" y="{y}" width="{side}" height="{side}"><title>{shown}</title></rect>'


def mark(kind: str) -> Markup:
    """The square of one kind for the legend."""
    return Markup(  # noqa: S704 - our own words
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 12 12" aria-hidden="true">'
        f'<rect class="{kind}" width="12" height="12"/></svg>'
    )


PAGE = WebPage("fleet", "Fleet", gather)
