"""The subcommand `doctor`: what works and what does not, the verdict first; then what is in force and from where."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel

from slurm_agent_tools.api import printing, render
from slurm_agent_tools.api.context_registry import (
    OpenedContexts,
    chosen_cluster,
    ledger_folder,
    load_policy_for,
    open_store,
)
from slurm_agent_tools.cli.commands.doctor_steps import check_steps, client_steps, slurm_name
from slurm_agent_tools.cli.terminal import at_terminal
from slurm_agent_tools.errors import MemoryUnreachable, StorageError
from slurm_agent_tools.settings import MemorySettings, Settings, devcluster_place, load, sources
from slurm_agent_tools.transport.base import asker

DONE, FAILED = 0, 1

LEDGER = "ledger.sqlite3"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `doctor`."""
    parser.description = (
        "Say what works here and what does not: the way to each cluster, step by step, the policy in force, the"
        " records, and what the settings say."
    )
    parser.add_argument("--cluster", metavar="NAME", help="look at this cluster alone")
    parser.add_argument("--settings", action="store_true", help="show every setting, the defaults too")
    parser.add_argument("--json", action="store_true", help="print one JSON document, with every setting")


def run(args: argparse.Namespace) -> int:
    """Print the findings; 0 when every cluster answers, else 1. Settings or a policy that cannot be used are raised."""
    settings = load()
    policy = load_policy_for(settings)
    clusters, ledger = anyio.run(_clusters, settings, args.cluster), _ledger(settings)
    works = ledger["problem"] is None and all(found["reachable"] for found in clusters.values())
    body = {
        "works": works,
        "verdict": list(_verdict(settings, ledger["problem"], clusters)),
        "settings": {name: {"value": value, "from": source} for name, value, source in origins(settings)},
        "policy": {
            "name": policy.name,
            "version": policy.version,
            "sha256": policy.sha256,
            "source": policy.source,
            "notes": list(policy.notes),
        },
        "ledger": ledger,
        "clusters": clusters,
        "clients": [asdict(step) for step in client_steps(settings.project_root)],
        "memory": anyio.run(_memory, settings.memory) if settings.memory.on else None,
    }
    if args.json:
        printing.lines([json.dumps(body, indent=2)])
    else:
        printing.show(_pieces(body, every=args.settings))
    return DONE if works else FAILED


def origins(settings: Settings) -> list[tuple[str, object, str]]:
    """Every setting as (dotted name, value, where from)."""
    said = sources(settings.project_root)
    return [(name, _plain(value), _origin(name, said)) for name, value in _leaves(settings, "")]


def _ledger(settings: Settings) -> dict[str, str | None]:
    """Where the records are, why not in the usual folder, and why they cannot be read. Raises ConfigError."""
    lies, problem = ledger_folder(settings), None
    if (lies.folder / LEDGER).exists():
        try:
            open_store(settings).close()
        except StorageError as error:
            problem = f"{error.message}. {error.hint}".strip()
    return {"folder": str(lies.folder), "note": lies.note, "problem": problem}


async def _clusters(settings: Settings, name: str | None) -> dict[str, dict[str, Any]]:
    """The way to each cluster, or to the one that is named: its steps up to the first that fails."""
    asker.set(at_terminal)
    usual = chosen_cluster(settings, name)
    registry = OpenedContexts(settings)
    try:
        return {each: await _way(registry, each) for each in ([usual] if usual is not None else settings.clusters)}
    finally:
        await registry.close()


async def _way(registry: OpenedContexts, name: str) -> dict[str, Any]:
    place = registry.place(name)
    found = [asdict(step) async for step in check_steps(place)]
    reachable = all(step["ok"] for step in found)
    return {"reachable": reachable, "steps": found, "slurm_name": await slurm_name(place) if reachable else None}


def _named(name: str, found: Mapping[str, Any]) -> str:
    """A cluster by its name in the settings, and by Slurm's own where that is another one: get_status tells that."""
    own = found.get("slurm_name")
    return name if own in {None, name} else f"{name} (Slurm's own name for it is {own})"


async def _memory(settings: MemorySettings) -> dict[str, Any]:
    """Whether the memory server takes records, as a step; what no tool waits for makes no failure of this command."""
    from slurm_agent_tools.insights import memory_server  # noqa: PLC0415 - few have such a server

    try:
        with anyio.fail_after(settings.timeout):
            async with memory_server.connected(settings) as keeper:
                return {"ok": True, "name": "memory", "seen": f"{keeper.server}, tool {keeper.tool}", "todo": ""}
    except MemoryUnreachable as error:
        return {"ok": False, "name": "memory", "seen": error.message, "todo": error.hint}
    except TimeoutError:
        seen = f"no answer within {settings.timeout:g} s"
        return {"ok": False, "name": "memory", "seen": seen, "todo": memory_server.HINT}


def _verdict(settings: Settings, problem: str | None, clusters: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A sentence for each thing: what an agent can do here now, and what it cannot."""
    for name, found in clusters.items():
        if found["reachable"]:
            where = _named(name, found)
            one = settings.clusters.get(name)
            more = "" if one and (one.host or one.slurm.conf) else devcluster_place.of_terminal(settings.slurm.conf)
            yield f"Works: an agent in {settings.project_root} can use the cluster {where}, within the policy.{more}"
        else:
            step = found["steps"][-1]
            yield f"Does not work: cluster {name}, at the step {step['name']} (below: what to do)."
    if problem is not None:
        yield f"Does not work: the records: {problem}"


def _leaves(part: BaseModel, before: str) -> Iterator[tuple[str, object]]:
    for name in type(part).model_fields:
        value = getattr(part, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, f"{before}{name}.")
        elif isinstance(value, dict) and value:
            for key, inner in value.items():
                path = f"{before}{name}.{key}"
                yield from _leaves(inner, f"{path}.") if isinstance(inner, BaseModel) else [(path, inner)]
        else:
            yield before + name, value


def _origin(name: str, said: Mapping[str, Mapping[str, Any]]) -> str:
    """The first source that holds it, or default."""
    return next((source for source, tables in said.items() if _holds(tables, name.split("."))), "default")


def _holds(table: object, parts: Sequence[str]) -> bool:
    return not parts or (isinstance(table, Mapping) and parts[0] in table and _holds(table[parts[0]], parts[1:]))


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def _pieces(body: Mapping[str, Any], *, every: bool) -> list[render.Piece]:
    said = {name: entry for name, entry in body["settings"].items() if every or entry["from"] != "default"}
    rows = [
        (name, str(each["value"]) if each["value"] is not None else "-", each["from"]) for name, each in said.items()
    ]
    told = [f"  {name:<22} {value}  ({source})" for name, value, source in rows]
    ways = [
        piece
        for name, found in body["clusters"].items()
        for piece in _way_told(f"cluster {_named(name, found)}:", found["steps"])
    ]
    rest = len(body["settings"]) - len(said)
    more = f"  {rest} more are as they come: slurm-agent-tools doctor --settings"
    return [
        *(render.Line(render.plain(line), "ok" if line.startswith("Works") else "failed") for line in body["verdict"]),
        *ways,
        *_way_told(f"clients of {body['settings']['project_root']['value']}:", body["clients"]),
        *(_way_told("memory server:", [body["memory"]]) if body["memory"] is not None else []),
        *render.facts({"policy": body["policy"], "ledger": body["ledger"]}),
        render.Line("settings:", "heading"),
        render.table(("setting", "value", "from"), rows, told),
        *([render.Line(more, "faint")] if rest else []),
    ]


def _way_told(title: str, found: Sequence[Mapping[str, Any]]) -> Iterator[render.Line]:
    yield render.Line(render.plain(title), "heading")
    for step in found:
        mark = "NO " if not step["ok"] else "note" if step["name"] == "walls" else "ok "
        named = f"{mark} {step['name']}"
        text = f"  {named:<15} {step['seen']}"
        yield render.Line(render.plain(text), "ok" if step["ok"] else "failed")
        if step["todo"]:
            yield render.Line(render.plain(f"      {step['todo']}"))
