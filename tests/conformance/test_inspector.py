"""The official MCP Inspector in CLI mode against `slurm-agent-tools serve` over stdio, in both eras."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slurm_agent_tools.api.catalogue import TOOLS

pytestmark = pytest.mark.conformance
ERAS = ["legacy", "modern"]
IS_ERROR = 5  # the Inspector's exit code for a result with isError


Inspect = Callable[..., tuple[int, Any, str]]
CALL = ["--method", "tools/call", "--tool-name", "validate_config", "--tool-args-json"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "slurm-agent.toml").write_text("")
    (folder / "train.yaml").write_text("lr: 0.1\nepochs: 3\n")
    return folder


@pytest.fixture
def inspect(node: Callable[..., subprocess.CompletedProcess[str]], packages: Path, project: Path) -> Inspect:
    """Returns the exit code, the JSON answer and what was said beside it."""
    launcher = packages / "inspector" / "clients" / "launcher" / "build" / "index.js"
    home = project.parent / "home"
    home.mkdir()
    server = [sys.executable, "-m", "slurm_agent_tools", "serve", "--cwd", project]
    places = ["-e", f"SLURM_AGENT_PROJECT_ROOT={project}", "-e", f"SLURM_AGENT_STATE_DIR={home / 'state'}"]

    def ask(era: str, *words: str) -> tuple[int, Any, str]:
        argv = [launcher, "--cli", *server, *places, *words, "--format", "json", "--protocol-era", era]
        done = node(argv, 90, home=home)
        return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr

    return ask


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_lists_all_tools_and_finds_no_portability_error(inspect: Inspect, era: str) -> None:
    code, answer, said = inspect(era, "--method", "tools/list", "--strict")
    assert code == 0, said
    assert [tool["name"] for tool in answer["result"]["tools"]] == [tool.name for tool in TOOLS]
    assert "Error:" not in said


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_calls_a_tool_and_gets_its_structured_answer(inspect: Inspect, era: str) -> None:
    code, answer, said = inspect(era, *CALL, '{"config_path": "train.yaml"}')
    assert code == 0, said
    result = answer["result"]
    assert result["structuredContent"]["status"] == "valid"
    assert result["content"][0]["text"].startswith(f"valid: {result['structuredContent']['summary']}")


@pytest.mark.parametrize("era", ERAS)
def test_the_inspector_sees_a_bad_argument_as_a_tool_error(inspect: Inspect, era: str) -> None:
    code, answer, said = inspect(era, *CALL, '{"config": "train.yaml"}')
    assert code == IS_ERROR, said
    error = answer["result"]["structuredContent"]["error"]
    assert error["code"] == "invalid_input"
    assert "config_path" in error["hint"]
