"""The subcommand `policy`: check, test, explain, show, trust and export the policy, and read what was decided."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing

from slurm_agent_tools.api import printing
from slurm_agent_tools.cli.commands import policy_cases, policy_check, policy_log, policy_show, policy_trust
from slurm_agent_tools.policy import policy_files
from slurm_agent_tools.settings import Settings, load
from slurm_agent_tools.transport.local import user_name

_METAVAR = "check|test|show|explain|schema|trust|export|log"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the subcommands."""
    parser.description = "The rules that decide what an agent may submit."
    commands = parser.add_subparsers(dest="what", required=True, metavar=_METAVAR)
    made = commands.add_parser("check", help="decide on scripts without a cluster; 0 when all are allowed, else 3")
    made.add_argument("files", nargs="+", metavar="FILE")
    made.add_argument("--json", action="store_true", help="print one decision a line")
    policy_cases.add_arguments(
        commands.add_parser("test", help="run cases: scripts or requests and what is expected of them")
    )
    made = commands.add_parser("show", help="the policy in force, its layers and what was ignored")
    made.add_argument("--json", action="store_true", help="print one JSON document")
    made = commands.add_parser("explain", help="what a rule is for, what it may be set to, examples with remedies")
    made.add_argument("rule", metavar="RULE")
    commands.add_parser("schema", help="the JSON Schema of a policy file, for editors")
    policy_trust.add_arguments(
        commands.add_parser("trust", help="let a file loosen the policy on this machine (a person)")
    )
    policy_show.add_export_arguments(commands.add_parser("export", help="limits that Slurm itself can hold"))
    policy_log.add_arguments(commands.add_parser("log", help="the decisions taken here"))


def run(args: argparse.Namespace) -> int:
    """Run one of them; returns the exit code."""
    settings = load()
    without_policy: dict[str, Callable[[], int]] = {
        "schema": policy_show.schema,
        "log": lambda: _log(args, settings),
        "trust": lambda: policy_trust.run(args),
    }
    if args.what in without_policy:
        return without_policy[args.what]()
    loaded = policy_files.load_for(settings.project_root, settings.policy)
    with_policy: dict[str, Callable[[], int]] = {
        "check": lambda: policy_check.judge(args.files, loaded, settings, as_json=args.json),
        "test": lambda: policy_cases.run(args, loaded, settings),
        "explain": lambda: policy_show.explain(args.rule, loaded),
        "export": lambda: policy_show.export(args, loaded),
        "show": lambda: policy_show.show(loaded, as_json=args.json),
    }
    return with_policy[args.what]()


def _log(args: argparse.Namespace, settings: Settings) -> int:
    """What was decided here."""
    from slurm_agent_tools.api.context_registry import ledger_folder, open_store  # noqa: PLC0415 - checking a script loads no ledger

    path = ledger_folder(settings).folder / "decisions.jsonl"
    if args.begin_anew:
        with closing(open_store(settings)) as store:
            printing.lines([f"Kept as {store.log.begin_anew(user_name())}; {path} begins anew."])
        return 0
    return policy_log.verify(path, args) if args.verify else policy_log.show(path, args)
