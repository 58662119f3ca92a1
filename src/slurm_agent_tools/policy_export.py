"""`policy export`: the limits that Slurm itself can hold."""

from __future__ import annotations

import argparse
from pathlib import Path

from slurm_agent_tools import printing
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.policy.export import Site, job_submit_lua, qos_lines
from slurm_agent_tools.policy.loading import LoadedPolicy

DONE = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define `policy export job-submit-lua` and `policy export qos`."""
    forms = parser.add_subparsers(dest="form", required=True, metavar="job-submit-lua|qos")
    lua = forms.add_parser("job-submit-lua", help="a plugin of the controller that refuses what is beyond the limits")
    lua.add_argument("--exempt-user", action="append", default=[], metavar="NAME", help="who passes unjudged")
    lua.add_argument("--exempt-account", action="append", default=[], metavar="NAME", help="whose jobs pass unjudged")
    lua.add_argument("--threads-per-core", type=int, default=1, metavar="N", help="of the nodes (default: 1)")
    lua.add_argument("--most-gpus-per-node", type=int, metavar="N", help="of the largest node (default: not known)")
    qos = forms.add_parser("qos", help="sacctmgr lines for the limits of QOS")
    qos.add_argument("--qos", action="append", metavar="NAME", help="a QOS to limit (default: normal)")
    for form in (lua, qos):
        form.add_argument("--output", type=Path, metavar="FILE", help="a new file (default: standard output)")


def run(args: argparse.Namespace, loaded: LoadedPolicy) -> int:
    """Write one of the forms. Raises InputError, also for a file that is there already."""
    text = qos_lines(loaded, args.qos or ["normal"]) if args.form == "qos" else job_submit_lua(loaded, _site(args))
    if args.output is None:
        printing.lines(text.splitlines())
        return DONE
    try:
        with args.output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InputError("output", str(args.output), f"cannot be made: {error.strerror}") from error
    return DONE


def _site(args: argparse.Namespace) -> Site:
    return Site(args.exempt_user, args.exempt_account, args.threads_per_core, args.most_gpus_per_node)
