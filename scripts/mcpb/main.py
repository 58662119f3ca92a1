"""Starts the server of the bundle. The client's form hands over its fields as variables; an empty one says nothing."""

from __future__ import annotations

import os
import sys

UNSET = "${user_config."  # some clients hand over the placeholder of a field that was left empty


def main() -> int:
    """Serve over standard input and output."""
    for name, value in list(os.environ.items()):
        if name.startswith("SLURM_AGENT_") and (not value or value.startswith(UNSET)):
            del os.environ[name]
    from slurm_agent_tools.cli.main import main as command  # noqa: PLC0415 - reads the environment when it is loaded

    return command(["serve"])


if __name__ == "__main__":
    sys.exit(main())
