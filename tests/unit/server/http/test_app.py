"""The server's parts are put together only for `serve --http`, and its address is told as clients write it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from slurm_agent_tools.server.http import app, listener
from slurm_agent_tools.server.http.listener import Address


def test_standard_input_is_served_without_loading_the_server_over_http():
    code = "import sys, slurm_agent_tools.cli.commands.serve_command; print(*sorted(n for n in sys.modules if n.startswith('slurm_agent_tools.server.http')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize(
    ("host", "ip", "start"), [("127.0.0.1", "127.0.0.1", "http://127.0.0.1:"), ("::1", "::1", "https://[::1]:")]
)
def test_an_address_is_told_as_it_is_called(host: str, ip: str, start: str):
    address = Address(host=host, ip=ip)
    with listener.listening(address) as made:
        told = app.name(address, made, tls=start.startswith("https"))
    assert told.startswith(start)
    assert told.endswith("/mcp")
    assert ":0/" not in told


def test_a_socket_is_told_by_its_path(tmp_path: Path):
    address = Address(path=tmp_path / "s" / "mcp.sock")
    with listener.listening(address) as made:
        assert app.name(address, made, tls=False) == f"unix:{tmp_path}/s/mcp.sock (path /mcp)"
