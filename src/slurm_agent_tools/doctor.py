"""The subcommand `doctor`: each setting and where it came from, the policy, and whether Slurm answers."""

from __future__ import annotations

import argparse
import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel

from slurm_agent_tools import config, printing, render
from slurm_agent_tools.config import FILE_NAME, Settings
from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.toolbox import Toolbox, load_policy_for

DONE, FAILED = 0, 1
_PREFIX = "SLURM_AGENT_"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `doctor`."""
    parser.description = "Show each setting and where it came from, the policy in force, and whether Slurm answers."
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Print the findings; 0 when Slurm answers, else 1. Settings or a policy that cannot be used are raised."""
    settings = config.load()
    policy = load_policy_for(settings)
    cluster = anyio.run(_cluster, settings)
    body = {
        "settings": {name: {"value": value, "from": source} for name, value, source in origins(settings)},
        "policy": {
            "name": policy.name,
            "version": policy.version,
            "sha256": policy.sha256,
            "source": policy.source,
            "notes": list(policy.notes),
        },
        "cluster": cluster,
    }
    printing.lines([json.dumps(body, indent=2)] if args.json else _lines(body))
    return DONE if cluster["reachable"] else FAILED


def origins(settings: Settings) -> list[tuple[str, object, str]]:
    """Every setting as (dotted name, value, where from)."""
    path = settings.project_root / FILE_NAME
    written = tomllib.loads(path.read_text()) if path.is_file() else {}
    return [(name, _plain(value), _origin(name, written)) for name, value in _leaves(settings, "")]


async def _cluster(settings: Settings) -> dict[str, Any]:
    """Whether Slurm answers, or the error that says why not."""
    toolbox = Toolbox.open(settings)
    try:
        info = await toolbox.desk.slurm.info()
    except AgentToolsError as error:
        return {"reachable": False, "error": {"code": error.code, "message": error.message, "hint": error.hint}}
    else:
        return {"reachable": True, "name": info.name, "version": info.version}
    finally:
        await toolbox.close()


def _leaves(part: BaseModel, before: str) -> Iterator[tuple[str, object]]:
    for name in type(part).model_fields:
        value = getattr(part, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield before + name, value


def _origin(name: str, written: Mapping[str, Any]) -> str:
    """environment, the file, or default; in this order the settings are looked up."""
    given = {key.upper() for key, value in os.environ.items() if value}
    parts = name.upper().split(".")
    if any(_PREFIX + "__".join(parts[:end]) in given for end in range(1, len(parts) + 1)):
        return "environment"
    found: Any = written
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return "default"
        found = found[part]
    return FILE_NAME


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


def _lines(body: Mapping[str, Any]) -> list[str]:
    settings = [
        f"  {name:<22} {entry['value'] if entry['value'] is not None else '-'}  ({entry['from']})"
        for name, entry in body["settings"].items()
    ]
    rest = render.facts({key: body[key] for key in ("policy", "cluster")})
    return [render.plain(line) for line in ("settings:", *settings, *rest)]
