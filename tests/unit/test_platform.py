"""Users' own machines run macOS and Windows too: nothing on the way over SSH asks for what only POSIX has."""

import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from slurm_agent_tools.api.catalogue import TOOLS

POORER = str(Path(__file__).with_name("no_posix.py"))
RUN = "from slurm_agent_tools.cli.main import main; raise SystemExit(main(sys.argv[1:]))"
IMPORTS = """
import os
for name in ("pwd", "fcntl"):  # the machine is poorer indeed
    try:
        __import__(name)
        print(name)
    except ImportError:
        pass
print(hasattr(os, "killpg"))
failed = walk()
print(chr(10).join(failed) or "all")
"""
COMMANDS = """
from slurm_agent_tools.cli.main import main
for words in (["policy", "show"], ["policy", "explain", "gpus"], ["--version"], []):
    print("exit code", main(words), flush=True)
"""


def poorer(code, *words, **more):
    """Run code in a Python without POSIX."""
    return subprocess.run([sys.executable, POORER, code, *words], capture_output=True, text=True, timeout=60, **more)


@pytest.mark.proves("no-posix-over-ssh")
def test_every_module_is_imported_without_posix():
    done = poorer(IMPORTS)
    assert (done.stdout, done.returncode) == ("False\nall\n", 0), done.stderr


@pytest.mark.proves("no-posix-over-ssh")
def test_the_commands_run_without_posix(tmp_path):
    env = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "USERNAME": "alice"}
    done = poorer(COMMANDS, cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    shown, explained, named, alone = done.stdout.split("exit code 0\n")[:4]
    assert done.stdout.count("exit code") == 4
    assert "This machine:" in alone
    assert "version" in shown
    assert "gpus" in explained
    assert "slurm-agent-tools" in named


@pytest.mark.proves("no-posix-over-ssh")
async def test_the_server_answers_and_writes_without_posix(tmp_path):
    (tmp_path / "slurm-agent.toml").write_text("")
    environment = {"HOME": str(tmp_path / "home"), "PATH": "/nowhere", "USERNAME": "alice"}
    server = StdioServerParameters(
        command=sys.executable, args=[POORER, RUN, "serve"], env=environment, cwd=str(tmp_path)
    )
    async with Client(server) as client:
        assert len((await client.list_tools()).tools) == len(TOOLS)
        status = (await client.call_tool("get_status", {"sections": ["policy"]})).structured_content
        saved = (await client.call_tool("save_result", {"name": "n", "status": "success"})).structured_content
    assert status["policy"]["name"]
    assert saved["status"] == "saved", saved
    assert (tmp_path / saved["file_path"]).exists()
