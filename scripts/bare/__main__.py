"""A bare system of this distribution, to see what the project does on a machine that has never seen it. Needs root.

python3 scripts/bare make FOLDER                       about half a minute and 300 MB
python3 scripts/bare enter FOLDER [OPTIONS] -- COMMAND...
python3 scripts/bare newcomer FOLDER DIST              with what `make dist` made: each way to install it, the tutorial
python3 scripts/bare remove FOLDER
"""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

import cgroups
import ci
import newcomer

import system


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="scripts/bare", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    commands = top.add_subparsers(dest="what", required=True)
    for name in ("make", "enter", "newcomer", "remove"):
        commands.add_parser(name).add_argument("folder", type=Path)
    commands.choices["newcomer"].add_argument("dist", type=Path)
    commands.add_parser("ci").add_argument("command", nargs="+", metavar="-- COMMAND")
    enter = commands.choices["enter"]
    enter.add_argument("--user", default="root", choices=("root", system.NEWCOMER))
    enter.add_argument("--cgroup", choices=cgroups.LAYOUTS, help="what it sees of cgroups (as this machine has them)")
    enter.add_argument("--host-address", default=system.LOOPBACK, help="what the machine's name stands for")
    enter.add_argument("--over", metavar="LAYER", help="begin with what was kept in a layer")
    enter.add_argument("--layer", help="keep what is changed in a layer of this name (else it is thrown away)")
    enter.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    enter.add_argument("command", nargs="+", metavar="-- COMMAND")
    return top


def main() -> int:
    """Run one of them; the exit code is the command's, or 69 where no bare system can be had."""
    args = parser().parse_args()
    # As Ctrl-C: what was started ends, and nothing stays mounted.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        if args.what == "ci":
            return ci.run(args.command)
        if args.what == "make":
            args.folder.mkdir(parents=True, exist_ok=True)
            system.make(args.folder.resolve())
        elif args.what == "newcomer":
            folder = args.folder.resolve()
            return ci.ran(folder, ((step,) for step in newcomer.steps(folder, args.dist)))
        elif args.what == "remove":
            system.remove(args.folder.resolve())
        else:
            view = system.View(args.user, args.cgroup, args.host_address, args.over, args.layer)
            variables = dict(pair.split("=", 1) for pair in args.env)
            return system.enter(args.folder.resolve(), args.command, view, variables)
    except system.CannotBeMadeError as error:
        print(f"bare: {error}", file=sys.stderr)
        return 69
    return 0


if __name__ == "__main__":
    sys.exit(main())
