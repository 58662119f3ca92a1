"""Runs every benchmark and prints one table; exit code 1 when a limit does not hold.

    python -m benchmarks.run [NAME ...]

NAME: start, cli, check_script, hostile, logs (which writes 5 GB), web, everyday, campaigns, planning and prediction (on
the traces in the folder TRACES), and answers, evals, scale, sync, tickets and connect, each on a private Slurm.
"""

from __future__ import annotations

import importlib
import sys

from benchmarks.table import Row, show

NAMES = (
    "start",
    "cli",
    "check_script",
    "hostile",
    "logs",
    "web",
    "everyday",
    "campaigns",
    "planning",
    "prediction",
    "answers",
    "evals",
    "scale",
    "sync",
    "tickets",
    "connect",
)


def main() -> int:
    """Run those that are named, or all."""
    rows: list[Row] = []
    for name in sys.argv[1:] or NAMES:
        print(f"running {name}", file=sys.stderr)
        rows += importlib.import_module(f"benchmarks.{name}").rows()
    print(show(rows))
    broken = [row.what for row in rows if not row.holds]
    for what in broken:
        print(f"over its limit: {what}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
