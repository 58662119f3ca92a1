"""`serve`: over standard input and output, or over HTTP with the options of the command line before the settings."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import serve_command
from slurm_agent_tools.server.http import app
from slurm_agent_tools.settings import Settings, devcluster_place, workstation_place


@pytest.fixture
def served(monkeypatch, tmp_path: Path) -> list[tuple[str, Settings]]:
    """What was served, and how it was set."""
    found: list[tuple[str, Settings]] = []

    async def over_standard_input(settings: Settings) -> None:
        found.append(("stdio", settings))

    async def over_http(settings: Settings) -> None:
        found.append(("http", settings))

    monkeypatch.setattr(serve_command, "serve", over_standard_input)
    monkeypatch.setattr(app, "serve", over_http)
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    return found


def test_without_options_it_speaks_on_standard_input(served):
    assert main.main(["serve"]) == 0
    assert [how for how, _ in served] == ["stdio"]


def test_on_a_terminal_it_says_what_it_waits_for(served, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert main.main(["serve"]) == 0
    told = capsys.readouterr()
    assert "waits for an MCP client to speak on standard input" in told.err
    assert told.out == ""


def test_to_a_client_it_says_nothing_of_its_own_where_slurm_is_known(served, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    monkeypatch.setenv("SLURM_CONF", "/srv/slurm.conf")
    assert main.main(["serve"]) == 0
    assert capsys.readouterr() == ("", "")


def test_where_no_slurm_is_known_it_says_how_to_get_one(served, monkeypatch, capsys):
    monkeypatch.setattr(workstation_place, "is_root", lambda: False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr(workstation_place, "_OTHERS", ())
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert main.main(["serve"]) == 0
    assert "To make this machine a cluster of its own, run: slurm-agent-tools workstation up" in capsys.readouterr().err
    monkeypatch.setattr(workstation_place, "is_root", lambda: True)
    assert main.main(["serve"]) == 0
    told = capsys.readouterr().err
    assert ("slurm-agent-tools devcluster up --yes" in told, "workstation up" in told) == (True, False)
    monkeypatch.setattr("shutil.which", lambda _: "/opt/slurm/bin/sbatch")  # it knows its own configuration
    assert main.main(["serve"]) == 0
    assert capsys.readouterr().err == ""


def test_a_devcluster_that_runs_is_told_before_a_workstation(served, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr(workstation_place, "_OTHERS", ())
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(devcluster_place, "unused", lambda: "export SLURM_CONF=/srv/d/etc/slurm.conf")
    monkeypatch.setattr(workstation_place, "is_root", lambda: False)
    assert main.main(["serve"]) == 0
    told = capsys.readouterr().err
    assert told.index("export SLURM_CONF=/srv/d/etc/slurm.conf") < told.index("slurm-agent-tools workstation up")
    monkeypatch.setattr(workstation_place, "is_root", lambda: True)
    assert main.main(["serve"]) == 0
    assert "devcluster up" not in capsys.readouterr().err


def test_a_workstation_that_is_not_up_is_told_by_serve(served, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(workstation_place, "is_root", lambda: False)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    monkeypatch.setattr(workstation_place, "_OTHERS", ())
    monkeypatch.setenv(workstation_place.VARIABLE, str(tmp_path))
    (tmp_path / "cluster.json").write_text('{"base_port": 16000, "user": "ada"}')
    assert main.main(["serve"]) == 0
    told = capsys.readouterr().err
    assert told.startswith("The workstation is not up. Run: slurm-agent-tools workstation up; to forget it")
    assert told.endswith(": slurm-agent-tools workstation down --wipe\n")
    assert served[0][1].cluster == "workstation"


@pytest.mark.parametrize(
    ("typed", "meant"), [("serv", "serve"), ("wait-for-jobs", "wait_for_job"), ("doctr", "doctor")]
)
def test_a_misspelt_command_is_told_what_was_meant(typed, meant, capsys):
    assert main.main([typed]) == 2
    assert f"Did you mean {meant}?" in capsys.readouterr().err


def test_a_word_that_is_like_no_command_gets_no_guess(capsys):
    assert main.main(["xyzzy"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


def test_the_options_come_before_the_settings(served, monkeypatch):
    monkeypatch.setenv("SLURM_AGENT_HTTP__LISTEN", "127.0.0.1:1")
    words = ["--listen", "127.0.0.1:8642", "--public-host", "a.example", "--public-host", "b.example"]
    assert main.main(["serve", "--http", *words, "--tls-cert", "c.pem", "--tls-key", "k.pem"]) == 0
    ((how, settings),) = served
    assert (how, settings.http.listen, settings.http.hosts) == ("http", "127.0.0.1:8642", ("a.example", "b.example"))
    assert (settings.http.tls_cert, settings.http.tls_key) == (Path("c.pem"), Path("k.pem"))
    assert settings.http.proxy == ()


@pytest.mark.parametrize("words", [["--listen", "x"], ["--public-host", "x"], ["--tls-key", "x"]])
def test_options_of_http_without_http_are_refused_with_the_mend(served, words, capsys):
    assert main.main(["serve", *words]) == 2
    assert f"Write: serve --http {words[0]} ..." in capsys.readouterr().err
    assert served == []


def test_the_package_is_the_command(monkeypatch):
    called = []
    monkeypatch.setattr(main, "command", lambda: called.append("once"))
    runpy.run_module("slurm_agent_tools", run_name="__main__")
    assert called == ["once"]


@pytest.mark.parametrize(("code", "broken", "ends"), [(0, False, 0), (3, False, 3), (0, True, 1), (3, True, 3)])
def test_a_process_ends_with_its_code_and_tells_of_a_reader_that_went_away(monkeypatch, code, broken, ends):
    class Stream:
        def flush(self) -> None:
            if broken:
                raise BrokenPipeError

    class Ended(BaseException):
        pass

    def end(given: int) -> None:
        raise Ended(given)

    monkeypatch.setenv("PYDANTIC_DISABLE_PLUGINS", "mine")  # what is set stays
    monkeypatch.setattr("os._exit", end)
    monkeypatch.setattr("gc.disable", lambda: None)
    monkeypatch.setattr("sys.stdout", Stream())
    with pytest.raises(Ended) as caught:
        main.whole(lambda: code)
    assert caught.value.args == (ends,)
