"""The subcommand `site`: the guard as a service of the site, for an administrator to install, look at and remove."""

from __future__ import annotations

import argparse
import importlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from slurm_agent_tools.api import printing
from slurm_agent_tools.cli.commands import site_check
from slurm_agent_tools.cli.commands.site_install import Installation
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.site import site_config, site_layout
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.server.site.site_layout import TargetSystem

DONE, FAILED = 0, 1

_SERVICE = "slurm_agent_tools.server.site.service"
"""A server, which the other subcommands need not load."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the subcommands."""
    parser.description = (
        "The guard as a service under an account of its own: users submit, it judges, and the controller asks for its"
        " ticket. For administrators."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="install|check|remove|serve")
    install = actions.add_parser("install", help="show what it would make; make it with --yes, as root")
    check = actions.add_parser("check", help="whether everything stands as it should; 0 when it does, else 1")
    check.add_argument("--json", action="store_true", help="print one JSON document")
    remove = actions.add_parser("remove", help="show what it would take away; take it away with --yes, as root")
    remove.add_argument("--keep-log", action="store_true", help="let the decision log stay, as root's")
    for changing in (install, remove):
        changing.add_argument("--yes", action="store_true", help="do it (root)")
    for action in (install, check, remove):
        action.add_argument(
            "--root", type=Path, default=Path("/"), metavar="DIR", help="of a system that is being made in a folder"
        )
    serve = actions.add_parser("serve", help="answer on the socket, as the service's unit does")
    for action in (install, check, remove, serve):
        action.add_argument(
            "--config", type=Path, default=site_config.PLACE, metavar="FILE", help="site.toml (default: %(default)s)"
        )


def run(args: argparse.Namespace) -> int:
    """Run one of them; returns the exit code. Raises AgentToolsError."""
    if args.action == "serve":
        importlib.import_module(_SERVICE).serve(site_config.read(args.config))
        return DONE
    root = Path(os.path.realpath(args.root))
    machine = TargetSystem(root)
    if not args.config.is_absolute():
        raise ConfigError("config", str(args.config), "is no whole path", hint="Begin it with /.")
    config = _config(machine, args.config)
    if config is None and args.action == "remove":
        printing.lines([f"There is no {args.config}, so nothing is installed by it. Nothing was changed."])
        return DONE
    site = Installation(config or SiteConfig(), args.config, machine)
    if args.action == "check":
        return _check(site, as_json=args.json)
    return _install(site, yes=args.yes) if args.action == "install" else _remove(site, args.keep_log, yes=args.yes)


def _config(machine: TargetSystem, place: Path) -> SiteConfig | None:
    found = machine.at(place)
    return site_config.read(found) if os.path.lexists(found) else None


def _install(site: Installation, *, yes: bool) -> int:
    loaded = site_layout.policy(site.config, site.machine)
    if yes:
        printing.lines(site.install(loaded))
    else:
        printing.lines(["Nothing was changed. This is what `--yes` does, as root; what is there stays:"])
        printing.lines(site.plan(loaded))
    printing.lines(["then, by you"])
    printing.lines(f"  {line}" for line in _next(site))
    return DONE


def _next(site: Installation) -> Iterator[str]:
    """What an administrator does, since it is theirs: policy, slurm.conf, starting by hand."""
    config = site.config
    if not site.machine.at(config.policy).exists():
        yield f"write the site's policy, with who may approve, to {config.policy}: the service does not start without"
    yield f"put this line into slurm.conf beside {config.plugin}, where it is not there: JobSubmitPlugins=lua"
    yield "scontrol reconfigure; slurmctld.log then names the plugin and the policy"
    if not site_layout.systemd_runs(site.config, site.machine):
        yield site_layout.by_hand(config, site.place)
    yield "slurm-agent-tools site check"


def _check(site: Installation, *, as_json: bool) -> int:
    found = site_check.findings(site)
    wrong = any(one.outcome == "wrong" for one in found)
    if as_json:
        body = {"status": "wrong" if wrong else "ok", "summary": site_check.verdict(found)}
        printing.lines([json.dumps({**body, "findings": [asdict(one) for one in found]}, indent=2)])
        return FAILED if wrong else DONE
    printing.lines([site_check.verdict(found)])
    width = max(len(one.about) for one in found)
    for one in found:
        printing.lines([f"  {one.outcome:<9}  {one.about:<{width}}  {one.says}"])
        if one.mend and one.outcome != "ok":
            printing.lines([f"  {'':<9}  {'':<{width}}  -> {one.mend}"])
    return FAILED if wrong else DONE


def _remove(site: Installation, keep_log: bool, *, yes: bool) -> int:
    if yes:
        printing.lines(site.remove(keep_log=keep_log))
        return DONE
    printing.lines(["Nothing was changed. This is what `--yes` takes away, as root:"])
    printing.lines(f"  {path}" for path in site.leftovers(keep_log=keep_log))
    there = site.machine.user(site.config.account) is not None
    printing.lines([f"  account {site.config.account}"] if there else [])
    told = f"The decision log in {site.config.state} "
    printing.lines([told + ("stays, as root's." if keep_log else "goes with it; --keep-log keeps it.")])
    return DONE
