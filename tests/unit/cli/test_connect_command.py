"""`connect`: MCP with a site's service as the judge, and nothing where no service listens."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import connect_command
from slurm_agent_tools.settings import Settings


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Settings]:
    """The settings that the server was started with."""
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    found: list[Settings] = []

    async def serve(settings: Settings) -> None:
        found.append(settings)

    monkeypatch.setattr(connect_command, "serve", serve)
    return found


def test_the_service_that_is_named_judges(served: list[Settings], tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "site.sock"))
        assert main.main(["connect", "--socket", "site.sock"]) == 0
    assert [settings.site_socket for settings in served] == [tmp_path / "site.sock"]


def test_the_settings_name_it_where_the_command_does_not(
    served: list[Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_AGENT_SITE_SOCKET", str(tmp_path / "own.sock"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "own.sock"))
        assert main.main(["connect"]) == 0
    assert [settings.site_socket for settings in served] == [tmp_path / "own.sock"]


@pytest.mark.parametrize("kind", ["nothing", "a file"])
def test_without_a_service_nothing_is_served(
    served: list[Settings], tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    if kind == "a file":
        (tmp_path / "site.sock").touch()
    assert main.main(["connect", "--socket", "site.sock"]) == 2
    assert "is no socket of a site's service" in capsys.readouterr().err
    assert served == []
