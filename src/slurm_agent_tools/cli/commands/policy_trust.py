"""`policy trust`: a person lets one file loosen the policy on this machine; a change of the file ends it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from slurm_agent_tools.api import printing
from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.policy import policy_files

DONE, BLOCKED = 0, 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `policy trust`."""
    parser.description = (
        "Trust a policy file on this machine: it may also loosen the shipped policy. Only where there is no site file"
        f" ({policy_files.SITE}), only on a terminal, and only as long as the file does not change."
    )
    parser.add_argument("file", nargs="?", metavar="FILE")
    parser.add_argument("--remove", action="store_true", help="trust no file any more")


def run(args: argparse.Namespace) -> int:
    """Ask the person and write it down; returns the exit code."""
    if args.remove:
        printing.lines(["No file is trusted any more." if policy_files.distrust() else "No file was trusted."])
        return DONE
    if args.file is None:
        raise InputError("file", None, "is required", hint="slurm-agent-tools policy trust FILE")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        hint = "Run it yourself in a terminal window."
        raise AgentToolsError("trusting a policy needs a person at a terminal, and this is none", hint=hint)
    path = Path(args.file).resolve()
    content, made = policy_files.trustworthy(path)
    changed = policy_files.changed_from_shipped(made)
    printing.lines([f"{path} over the shipped policy:", *(f"  {line}" for line in changed or ["changes nothing"])])
    printing.lines(["Type trust to let it decide on this machine:"])
    if sys.stdin.readline().strip().lower() != "trust":
        printing.lines(["Nothing was changed."])
        return BLOCKED
    policy_files.trust(path, content)
    printing.lines([f"Trusted until it changes. `slurm-agent-tools policy show` tells what is in force ({made.name})."])
    return DONE
