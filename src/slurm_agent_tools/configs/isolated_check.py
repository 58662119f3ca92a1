"""The check against a schema in a process of its own, which can be ended: a regular expression or a form may take ages.

`python -m slurm_agent_tools.configs.isolated_check SUFFIX SIZE` reads SIZE bytes of configuration and then
the schema, and prints `{"complaints": [...]}` or, for a schema that cannot be used, `{"problem": ..., "hint": ...}`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from slurm_agent_tools.configs.experiment_config import parse_config
from slurm_agent_tools.configs.schema_check import UnusableSchema, complaints_against

SECONDS = 10

MEMORY = 2 * 2**30
"""Bytes of address space, where the system knows such a limit."""


def checked_apart(suffix: str, config: bytes, schema: bytes) -> dict[str, Any]:
    """What is printed. A configuration that nobody can read was refused before."""
    try:
        found = complaints_against(parse_config(config, suffix, "config_path"), schema)
    except UnusableSchema as error:
        return {"problem": error.problem, "hint": error.hint}
    return {"complaints": [complaint.model_dump() for complaint in found]}


def main() -> None:
    """Answer the one question on standard input."""
    _bound()
    suffix, size = sys.argv[1], int(sys.argv[2])
    data = sys.stdin.buffer.read()
    sys.stdout.write(json.dumps(checked_apart(suffix, data[:size], data[size:])))


def _bound() -> None:
    try:
        import resource  # noqa: PLC0415 - not everywhere
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))  # should nobody be left to end it
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


if __name__ == "__main__":
    main()
