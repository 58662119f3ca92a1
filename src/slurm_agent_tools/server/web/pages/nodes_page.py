"""Fleet: every node by its state and load, tiers, partitions, who waits where, reservations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.insights.capacity import usable
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.models.toolset_arguments import GetFleet
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.web_page import PageAsked, WebPage, look_fresh
from slurm_agent_tools.services import fleet_look
from slurm_agent_tools.services.context import ClusterContext
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
    nodes = await look_fresh(context)
    ask = GetFleet(sections=["inventory", "waits"], detail="full")
    told = (await fleet_look.get_fleet(context, ask)).model_dump(mode="json")
    found: Sequence[Node] = nodes.answer or ()
    groups = by_kind(found)
    return fragments.plain(
        {
            "inventory": told["inventory"],
            "waits": told["waits"],
            "kinds": [{"kind": kind, "what": what, "nodes": len(groups.get(kind, ()))} for kind, what in KINDS.items()],
            "map": node_map(found, groups),
            "problem": str(nodes.error) if isinstance(nodes.error, SlurmError) else None,
            "not_measured": told["not_measured"],
        }
    )


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


def node_map(nodes: Sequence[Node], groups: Mapping[str, Sequence[Node]]) -> dict[str, Any]:
    """Where the squares of a map lie: `squares` one by one with what each is, of many nodes `paths` by kind alone."""
    across = min(_ACROSS, max(1, len(nodes)))
    places = {node.name: (_SIDE * (at % across), _SIDE * (at // across)) for at, node in enumerate(nodes)}
    few = len(nodes) <= _NAMED
    return {
        "width": _SIDE * across,
        "height": _SIDE * max(1, -(-len(nodes) // across)),
        "side": _SIDE - 2,
        "told": ", ".join(f"{len(members)} {KINDS[kind]}" for kind, members in groups.items()),
        "squares": [_square(node, *places[node.name]) for node in nodes] if few else [],
        "paths": {}
        if few
        else {kind: _path([places[one.name] for one in members]) for kind, members in groups.items()},
    }


def _square(node: Node, x: int, y: int) -> dict[str, Any]:
    gpus = f", {node.gpus_used if node.gpus_used is not None else '?'} of {node.gpus} GPUs" if node.gpus else ""
    cpus = f"{node.cpus_used if node.cpus_used is not None else '?'} of {node.cpus} CPUs"
    told = f"{node.name}: {node.state}, {cpus}{gpus}" + (f" ({node.reason})" if node.reason else "")
    return {"kind": kind_of(node), "x": x, "y": y, "told": sanitize.line(told)[:300]}


def _path(places: Sequence[tuple[int, int]]) -> list[str]:
    """The outlines of squares; 250 in a text, since longer texts are cut before they are shown."""
    corners = [f"M{x} {y}h{_SIDE - 2}v{_SIDE - 2}h-{_SIDE - 2}z" for x, y in places]
    return ["".join(corners[at : at + 250]) for at in range(0, len(corners), 250)]


PAGE = WebPage("fleet", "Fleet", gather)
