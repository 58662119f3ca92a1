"""The schemas that come with the package are those of the tools as they are."""

from __future__ import annotations

import json
import os
from pathlib import Path

import slurm_agent_tools
from slurm_agent_tools.api import catalogue, schemas

FILE = Path(slurm_agent_tools.__file__).parent / schemas.WRITTEN


def made() -> dict[str, dict[str, schemas.Schema]]:
    return {
        tool.name: {
            "input": schemas.input_schema(tool.ask),
            "output": schemas.output_schema(schemas.replies()[tool.name]),
        }
        for tool in catalogue.TOOLS
    }


def test_the_committed_schemas_are_those_of_the_tools():
    text = json.dumps(made(), indent=1) + "\n"
    if os.environ.get("UPDATE_REFERENCE") == "1":
        FILE.write_text(text, encoding="utf-8")
    assert FILE.read_text(encoding="utf-8") == text, "UPDATE_REFERENCE=1 pytest tests/unit/api/test_schemas.py"


def test_what_a_server_hands_out_is_what_was_committed():
    assert schemas.written() == made()
