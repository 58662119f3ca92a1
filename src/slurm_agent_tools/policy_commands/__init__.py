"""The subcommand `policy`: check, test, explain, show, trust and export the policy, and read what was decided."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from slurm_agent_tools import config
from slurm_agent_tools.policy_commands import cases, history, judging, showing, trusting
from slurm_agent_tools.policy_commands.judging import check, check_bytes
from slurm_agent_tools.toolbox import load_policy_for
from slurm_agent_tools.toolbox.desks import ledger_place

__all__ = ["add_arguments", "check", "check_bytes", "run"]
_METAVAR = "check|test|show|explain|schema|trust|export|log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the subcommands."""
    parser.description = "The rules that decide what an agent may submit."
    commands = parser.add_subparsers(dest="what", required=True, metavar=_METAVAR)
    made = commands.add_parser("check", help="decide on scripts without a cluster; 0 when all are allowed, else 3")
    made.add_argument("files", nargs="+", metavar="FILE")
    made.add_argument("--json", action="store_true", help="print one decision a line")
    cases.add_arguments(commands.add_parser("test", help="run cases: scripts or requests and what is expected of them"))
    made = commands.add_parser("show", help="the policy in force, its layers and what was ignored")
    made.add_argument("--json", action="store_true", help="print one JSON document")
    made = commands.add_parser("explain", help="what a rule is for, what it may be set to, examples with remedies")
    made.add_argument("rule", metavar="RULE")
    commands.add_parser("schema", help="the JSON Schema of a policy file, for editors")
    trusting.add_arguments(commands.add_parser("trust", help="let a file loosen the policy on this machine (a person)"))
    showing.add_export_arguments(commands.add_parser("export", help="limits that Slurm itself can hold"))
    history.add_arguments(commands.add_parser("log", help="the decisions taken here"))


def run(args: argparse.Namespace) -> int:
    """Run one of them; returns the exit code."""
    settings = config.load()
    without_policy: dict[str, Callable[[], int]] = {
        "schema": showing.schema,
        "log": lambda: history.show(ledger_place(settings).folder / "decisions.jsonl", args),
        "trust": lambda: trusting.run(args),
    }
    if args.what in without_policy:
        return without_policy[args.what]()
    loaded = load_policy_for(settings)
    with_policy: dict[str, Callable[[], int]] = {
        "check": lambda: judging.judge(args.files, loaded, settings, as_json=args.json),
        "test": lambda: cases.run(args, loaded, settings),
        "explain": lambda: showing.explain(args.rule, loaded),
        "export": lambda: showing.export(args, loaded),
        "show": lambda: showing.show(loaded, as_json=args.json),
    }
    return with_policy[args.what]()
