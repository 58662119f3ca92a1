"""`policy export`: the limits that Slurm itself can hold."""

from __future__ import annotations

import argparse

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.policy.loading import LoadedPolicy


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("form", choices=["job-submit-lua", "qos"])


def run(args: argparse.Namespace, loaded: LoadedPolicy) -> int:
    """Print one of the forms."""
    raise InputError("form", args.form, f"cannot be made from {loaded.name} yet")
