"""`doctor` says where each setting came from and whether Slurm answers."""

import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from slurm_agent_tools import settings
from slurm_agent_tools.api.context_registry import open_store
from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import doctor_command
from slurm_agent_tools.settings import setting_sources
from slurm_agent_tools.store import ledger_location


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SLURM_AGENT_SLURM__BIN_DIR", str(tmp_path / "no-slurm-here"))
    (tmp_path / "slurm-agent.toml").write_text('log_level = "error"\n[slurm]\nread_timeout = 3\n')
    return tmp_path


def test_each_setting_has_its_origin() -> None:
    found = {name: source for name, _, source in doctor_command.origins(settings.load())}
    assert found["project_root"] == "environment"
    assert found["slurm.bin_dir"] == "environment"
    assert found["log_level"] == "slurm-agent.toml"
    assert found["slurm.read_timeout"] == "slurm-agent.toml"
    assert found["tool_prefix"] == "default"
    assert found["slurm.cache_seconds"] == "default"
    assert found["rates.gpu_hour"] == found["clusters"] == "default"


def test_of_a_table_in_one_variable_only_what_it_holds_is_from_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_AGENT_RATES", '{"currency": "EUR"}')
    found = {name: source for name, _, source in doctor_command.origins(settings.load())}
    assert (found["rates.currency"], found["rates.cpu_hour"]) == ("environment", "default")


def test_without_slurm_it_exits_1_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["doctor", "--json"]) == 1
    body = json.loads(capsys.readouterr().out)
    assert body["clusters"]["local"]["reachable"] is False
    (step,) = body["clusters"]["local"]["steps"]
    assert (step["name"], step["ok"]) == ("slurm", False)
    assert "sinfo is not installed" in step["seen"]
    assert "bin_dir" in step["todo"]
    assert body["settings"]["slurm.read_timeout"] == {"value": 3.0, "from": "slurm-agent.toml"}
    assert len(body["policy"]["sha256"]) == 64
    assert Path(body["ledger"]["folder"]).is_absolute()


def test_the_line_that_ended_a_command_is_shown_and_where_to_mend_it(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = project.parent / "bin"
    folder.mkdir()
    command = folder / "sinfo"
    command.write_text(
        "#!/bin/sh\necho 'sinfo: error: lookup failed' >&2\necho 'sinfo: fatal: no source' >&2\nexit 1\n"
    )
    command.chmod(0o755)
    monkeypatch.setenv("SLURM_AGENT_SLURM__BIN_DIR", str(folder))
    assert main.main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "NO  slurm       sinfo: fatal: no source\n" in out
    assert "SLURM_AGENT_SLURM__BIN_DIR" in out.partition("no source")[2]


def test_a_ledger_that_had_to_move_is_told_with_the_reason(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = ledger_location.LedgerFolder(Path("/var/tmp/mine"), "It lies on a network file system (nfs4).")
    monkeypatch.setattr(doctor_command, "ledger_folder", lambda _: moved)
    main.main(["doctor"])
    out = capsys.readouterr().out
    assert "folder: /var/tmp/mine" in out
    assert "network file system (nfs4)" in out


def test_a_ledger_that_cannot_be_used_is_told_and_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reached(*_: object) -> dict[str, dict[str, object]]:
        return {"local": {"reachable": True, "steps": []}}

    monkeypatch.setattr(doctor_command, "_clusters", reached)
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "records"))
    assert main.main(["doctor", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ledger"]["problem"] is None
    open_store(settings.load()).close()
    with closing(sqlite3.connect(tmp_path / "records" / doctor_command.LEDGER)) as ledger:
        ledger.execute("PRAGMA user_version = 9999")
    assert main.main(["doctor"]) == 1
    assert "written by a newer version. Update slurm-agent-tools." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("own", "told"),
    [("devcluster", "the cluster local (Slurm's own name for it is devcluster),"), ("local", "the cluster local,")],
)
def test_a_cluster_is_told_by_the_name_that_get_status_gives_it_as_well(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, own: str, told: str
) -> None:
    async def reached(*_: object) -> dict[str, dict[str, object]]:
        return {"local": {"reachable": True, "steps": [], "slurm_name": own}}

    monkeypatch.setattr(doctor_command, "_clusters", reached)
    main.main(["doctor"])
    assert told in capsys.readouterr().out


def test_a_slurm_conf_of_the_terminal_alone_is_told_with_the_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = {"name": "walls", "ok": True, "seen": "No wall holds.", "todo": ""}

    async def reached(*_: object) -> dict[str, dict[str, object]]:
        return {"local": {"reachable": True, "steps": [wall]}}

    monkeypatch.setattr(doctor_command, "_clusters", reached)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    main.main(["doctor"])
    assert "SLURM_CONF" not in capsys.readouterr().out
    monkeypatch.setenv("SLURM_CONF", "/srv/slurm.conf")
    main.main(["doctor"])
    out = capsys.readouterr().out
    assert "within the policy. SLURM_CONF is this terminal's: a client that hands no environment on needs" in out
    assert '`"SLURM_CONF": "/srv/slurm.conf"` in `env` of its own file' in out
    assert "  note walls      No wall holds." in out


def test_a_person_reads_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "slurm.read_timeout" in out
    assert "cluster local:" in out
    assert "NO  slurm" in out


def test_the_verdict_comes_first_and_defaults_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    main.main(["doctor"])
    short = capsys.readouterr().out
    main.main(["doctor", "--settings"])
    long = capsys.readouterr().out

    assert short.startswith("Does not work: cluster local, at the step slurm")
    assert len(short.splitlines()) <= 24
    assert "slurm.cache_seconds" not in short
    assert "slurm.cache_seconds    10.0  (default)" in long
    main.main(["doctor", "--json"])
    body = json.loads(capsys.readouterr().out)
    assert body["works"] is False
    assert body["verdict"] == [short.splitlines()[0]]


def test_client_files_are_told_with_what_they_start(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def clients() -> dict[str, tuple[bool, str]]:
        main.main(["doctor", "--json"])
        return {one["name"]: (one["ok"], one["seen"]) for one in json.loads(capsys.readouterr().out)["clients"]}

    assert clients() == {"clients": (False, f"no client file in {project} names this server")}
    main.main(["init", str(project), "--client", "claude-code", "--client", "codex"])
    capsys.readouterr()
    (project / ".vscode").mkdir()
    url = "http://127.0.0.1:8642/mcp"
    body = {"servers": {"slurm-agent-tools": {"type": "http", "url": url}}}
    (project / ".vscode/mcp.json").write_text(json.dumps(body))
    monkeypatch.setenv("PATH", str(project / "bin"))
    found = clients()
    assert found["claude code"] == (False, ".mcp.json starts slurm-agent-tools, which is not found on PATH")
    assert found["vs code"] == (True, f".vscode/mcp.json asks {url}")
    (project / "bin").mkdir()
    (project / "bin/slurm-agent-tools").write_text("#!/bin/sh\n")
    (project / "bin/slurm-agent-tools").chmod(0o755)
    assert clients()["codex"] == (True, ".codex/config.toml starts slurm-agent-tools")


def test_a_setting_that_is_wrong_is_exit_2_and_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "slurm-agent.toml").write_text('log_level = "loud"\n')
    assert main.main(["doctor", "--json"]) == 2
    assert "log_level" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_each_cluster_of_the_settings_is_looked_at_up_to_its_first_fault(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    far = '[clusters.far]\nhost = "no-such-host.invalid"\nremote_root = "x"\nconnect_timeout = 2\n'
    near = f'[clusters.near.slurm]\nbin_dir = "{project.parent}/none"\n'
    path = setting_sources.user_file()
    path.parent.mkdir(parents=True)
    path.write_text(far + near)
    assert main.main(["doctor", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)["clusters"]
    assert {name: [(step["name"], step["ok"]) for step in way["steps"]] for name, way in found.items()} == {
        "far": [("name", False)],
        "near": [("slurm", False)],
    }
    assert "host" in found["far"]["steps"][0]["todo"]
    assert main.main(["doctor", "--cluster", "near", "--json"]) == 1
    assert list(json.loads(capsys.readouterr().out)["clusters"]) == ["near"]


def test_a_memory_server_is_asked_whether_it_takes_records(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    main.main(["doctor", "--json"])
    assert json.loads(capsys.readouterr().out)["memory"] is None
    server = Path(__file__).parents[1] / "services" / "memories.py"
    for way, line in (
        ("", "ok  memory      m 1, tool store_memory"),
        ("bare", "NO  memory      the memory server has none"),
    ):
        monkeypatch.setenv("SLURM_AGENT_MEMORY__COMMAND", json.dumps([sys.executable, str(server), "/dev/null", way]))
        main.main(["doctor"])
        assert line in capsys.readouterr().out
