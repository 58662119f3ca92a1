"""The subcommand `policy`: check scripts without a cluster, show the policy, show what was decided."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio

from slurm_agent_tools import config, faces, printing, render
from slurm_agent_tools.config import Settings
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.model import Resources
from slurm_agent_tools.policy.check import check_text
from slurm_agent_tools.policy.document import LoadedPolicy
from slurm_agent_tools.policy.pins import pins
from slurm_agent_tools.reader import read_script
from slurm_agent_tools.replies import DecisionShown
from slurm_agent_tools.slurm.local import LocalFiles
from slurm_agent_tools.toolbox import load_policy_for
from slurm_agent_tools.toolbox.case import resolved
from slurm_agent_tools.units import format_duration, human_memory

DONE, BLOCKED = 0, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define `policy check`, `policy show` and `policy log`."""
    parser.description = "The rules that decide what an agent may submit."
    commands = parser.add_subparsers(dest="what", required=True, metavar="check|show|log")
    check = commands.add_parser("check", help="decide on scripts without a cluster; 0 when all are allowed, else 3")
    check.add_argument("files", nargs="+", metavar="FILE")
    check.add_argument("--json", action="store_true", help="print one decision a line")
    shown = commands.add_parser("show", help="the policy in force")
    shown.add_argument("--json", action="store_true", help="print one JSON document")
    log = commands.add_parser("log", help="the decisions taken here")
    log.add_argument("--last", type=int, default=20, metavar="N", help="the newest N (20)")
    log.add_argument("--json", action="store_true", help="print one decision a line")


def run(args: argparse.Namespace) -> int:
    """Run one of them; returns the exit code."""
    settings = config.load()
    if args.what == "show":
        return _show(load_policy_for(settings), as_json=args.json)
    if args.what == "log":
        return _log(settings.state_dir / "decisions.jsonl", args.last, as_json=args.json)
    loaded = load_policy_for(settings)
    verdicts = []
    for name in args.files:
        decision = anyio.run(check, name, loaded, settings)
        verdicts.append(decision.verdict)
        body = {"script": name, **decision.model_dump(mode="json")}
        printing.lines([faces.text(body)] if args.json else [f"{name}:", *render.decision(body)])
    return DONE if set(verdicts) <= {"allow"} else BLOCKED


async def check(name: str, loaded: LoadedPolicy, settings: Settings) -> DecisionShown:
    """The decision on one script, as far as it can be told without a cluster."""
    project = str(settings.project_root.resolve())
    data, problem = _read(Path(name), loaded.policy.sizes.script_bytes)
    if data is None:
        return check_text(None, problem, loaded, project=project, resources=Resources())
    reading = await read_script(data, _shown(name, project), project=project, files=LocalFiles())
    pinned = pins(reading.request, loaded.policy, None)
    request, resources = resolved(reading.request, pinned, None)
    reading = replace(reading, request=request)
    return check_text(reading, None, loaded, project=project, resources=resources, pinned=pinned)


def _shown(name: str, project: str) -> str:
    """Relative to the project where it lies inside."""
    path = Path(name).resolve()
    return str(path.relative_to(project)) if path.is_relative_to(project) else str(path)


def _read(path: Path, limit: int) -> tuple[bytes | None, str | None]:
    """The script's bytes, or why it is no batch script: the rule script-exists says so in the decision."""
    try:
        if not path.is_file():
            return None, f"{path} is not a regular file" if path.exists() else f"{path} does not exist"
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        return None, f"{path} cannot be read: {error}"
    if len(data) > limit:
        return None, f"{path} is larger than {limit} bytes"
    if not data.strip():
        return None, f"{path} is empty"
    if b"\0" in data:
        return None, f"{path} is a binary file"
    return (data, None) if data.startswith(b"#!") else (None, f"{path} does not start with #!")


def _show(loaded: LoadedPolicy, *, as_json: bool) -> int:
    body = {
        "name": loaded.name,
        "version": loaded.version,
        "sha256": loaded.sha256,
        "source": loaded.source,
        "notes": list(loaded.notes),
        "policy": loaded.policy.model_dump(mode="json"),
    }
    printing.lines([json.dumps(body, indent=2)] if as_json else render.facts(_readable(body, "")))
    return DONE


def _readable(value: Any, name: str) -> Any:
    """The policy with bytes and seconds as people write them; `name` is the way to the value."""
    if isinstance(value, dict):
        return {key: _readable(inner, f"{name}.{key}") for key, inner in value.items()}
    if isinstance(value, int) and ("memory" in name or name.endswith("_bytes")):
        return human_memory(value)
    return format_duration(value) if isinstance(value, int) and "time_limit" in name else value


def _log(path: Path, last: int, *, as_json: bool) -> int:
    entries = list(_entries(path))[-max(last, 0) :] if last else []
    if as_json:
        printing.lines(json.dumps(entry, separators=(",", ":")) for entry in entries)
    else:
        printing.lines(
            render.plain(f"{entry['at']}  {entry['event']:<10} {entry['verdict']:<8} {entry['tool']}  {_about(entry)}")
            for entry in entries
        )
    return DONE


def _about(entry: dict[str, object]) -> str:
    """What the decision was about."""
    return str(entry.get("script") or entry.get("path") or entry.get("job_id") or "")


def _entries(path: Path) -> Iterator[dict[str, object]]:
    """The decisions, oldest first. Raises StorageError for a log that cannot be read."""
    try:
        for line in path.read_text(encoding="ascii").splitlines():
            yield json.loads(line)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise StorageError(f"the decision log {path} cannot be read: {error}", hint="Look at the file.") from error
