"""`watch` with a real target on this machine: each alert once, failures tried again, and no address anywhere."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from slurm_agent_tools.cli.commands import watch_command
from slurm_agent_tools.cli.main import main
from slurm_agent_tools.fleet import notices
from slurm_agent_tools.models.shapes import Alert
from slurm_agent_tools.store.ledger_location import named_lock

pytestmark = [
    pytest.mark.proves("told-once"),
    pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning"),  # a plugin of Apprise loads it
]

SECRET = "hush-7c1a9e"
IDLE = Alert(severity="high", code="gpus-idle", message="Job 7 holds 2 GPUs that do nothing.", job_id="7")


class Target:
    """A service of HTTP that takes messages, or says no."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []
        self.status = 200
        target = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if target.status == 200:
                    target.heard.append(json.loads(body))
                self.send_response(target.status)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"json://user:{SECRET}@127.0.0.1:{self.server.server_port}/{SECRET}"


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    thread = threading.Thread(target=made.server.serve_forever, daemon=True)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: Target) -> list[Alert]:
    """A project whose alerts are in the returned list; the target is named by a variable."""
    found = [IDLE]

    async def alerts(*_: object) -> tuple[list[Alert], bool]:
        return list(found), True

    for name, value in {
        "PROJECT_ROOT": str(tmp_path), "STATE_DIR": str(tmp_path / "state"), "SLURM__BIN_DIR": str(tmp_path / "none"),
        "NOTIFY": '{"env": ["ALERTS_TO"]}',
    }.items():  # fmt: skip
        monkeypatch.setenv(f"SLURM_AGENT_{name}", value)
    monkeypatch.setenv("ALERTS_TO", target.address)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(watch_command, "_alerts", alerts)
    return found


def test_an_alert_is_sent_once_over_restarts(there: list[Alert], target: Target, tmp_path: Path, capsys):
    for _ in range(3):
        assert main(["watch", "--once"]) == 0
    assert [(one["title"], one["message"]) for one in target.heard] == [
        ("slurm: 1 alert, high", "high: Job 7 holds 2 GPUs that do nothing.")
    ]
    there.append(Alert(severity="critical", code="job-failed", message="Job 8 failed.", job_id="8"))
    assert main(["watch", "--once"]) == 0
    assert [one["message"] for one in target.heard[1:]] == ["critical: Job 8 failed."]
    said = capsys.readouterr()
    assert "ALERTS_TO (json): took slurm: 1 alert, high" in said.out
    (book,) = (tmp_path / "state").glob("watch-*.json")
    assert book.stat().st_mode & 0o777 == 0o600
    assert SECRET not in said.out + said.err + book.read_text()


@pytest.mark.usefixtures("there")
def test_a_target_that_says_no_is_told_and_tried_again_without_doubles(target: Target, monkeypatch, capsys):
    target.status = 503
    assert main(["watch", "--once"]) == 1
    said = capsys.readouterr()
    assert "ALERTS_TO (json) did not take it (HTTP 503)" in said.err
    target.status = 200
    assert main(["watch", "--once"]) == 1  # not yet tried again
    assert target.heard == []
    later = watch_command.time.time() + notices._FIRST + 5
    monkeypatch.setattr(watch_command.time, "time", lambda: later)
    for _ in range(2):
        assert main(["watch", "--once"]) == 0
    assert len(target.heard) == 1
    more = capsys.readouterr()
    assert SECRET not in said.out + said.err + more.out + more.err


@pytest.mark.usefixtures("there")
def test_a_target_that_is_not_there_is_told(target: Target, monkeypatch, capsys):
    monkeypatch.setenv("ALERTS_TO", f"json://127.0.0.1:1/{SECRET}")
    assert main(["watch", "--once"]) == 1
    said = capsys.readouterr()
    assert "ALERTS_TO (json) did not take it" in said.err
    assert SECRET not in said.out + said.err


def test_two_targets_of_which_one_fails_are_told_once_each(there, target: Target, tmp_path, monkeypatch):
    other = tmp_path / "targets"
    other.write_text(f"# where else\n\njson://127.0.0.1:1/{SECRET}\n")
    other.chmod(0o600)
    monkeypatch.setenv("SLURM_AGENT_NOTIFY", json.dumps({"env": ["ALERTS_TO"], "file": str(other)}))
    assert main(["watch", "--once"]) == 1
    other.write_text(other.read_text().replace(f"json://127.0.0.1:1/{SECRET}", target.address + "/more"))
    assert main(["watch", "--once"]) == 0
    assert main(["watch", "--once"]) == 0
    assert len(target.heard) == 2


@pytest.mark.usefixtures("there")
def test_a_word_to_try_the_way(target: Target, capsys):
    assert main(["watch", "--test"]) == 0
    assert [one["title"] for one in target.heard] == ["slurm-agent-tools"]
    target.status = 404
    assert main(["watch", "--test"]) == 1
    assert "ALERTS_TO (json): did not take it (HTTP 404)" in capsys.readouterr().out


@pytest.mark.usefixtures("there")
def test_quiet_hours_hold_what_is_not_critical(target: Target, monkeypatch):
    monkeypatch.setenv("SLURM_AGENT_NOTIFY", '{"env": ["ALERTS_TO"], "quiet_hours": "00:00-23:59"}')
    monkeypatch.setattr(watch_command, "is_quiet", lambda hours, _: hours == "00:00-23:59")
    assert main(["watch", "--once"]) == 0
    assert target.heard == []
    monkeypatch.setattr(watch_command, "is_quiet", lambda *_: False)
    assert main(["watch", "--once"]) == 0
    assert len(target.heard) == 1


@pytest.mark.usefixtures("there")
def test_without_a_target_alerts_are_printed_once(monkeypatch, capsys):
    monkeypatch.delenv("SLURM_AGENT_NOTIFY")
    for _ in range(2):
        assert main(["watch", "--once"]) == 0
    assert capsys.readouterr().out.count("Job 7 holds 2 GPUs") == 1


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize(
    ("address", "said"),
    [("", "is not set in the environment"), (SECRET, "holds no address"), (f"nothing://{SECRET}", "no address that Apprise understands")],
)  # fmt: skip
def test_an_address_that_is_none_is_an_error_without_its_text(monkeypatch, capsys, address: str, said: str):
    monkeypatch.setenv("ALERTS_TO", address)
    assert main(["watch", "--once"]) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert SECRET not in told.out + told.err


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("name", ["ENV", "FILE", "LEAST", "URL", ""])
@pytest.mark.parametrize("value", ["{}", '["{}"]', '["{}', '{{"env": ["{}"]}}'])
def test_an_address_where_its_name_should_stand_is_not_told(monkeypatch, capsys, target: Target, name: str, value: str):
    monkeypatch.setenv("SLURM_AGENT_NOTIFY" + (f"__{name}" if name else ""), value.format(target.address))
    for command in (["watch", "--test"], ["doctor"]):
        code = main(command)
        told = capsys.readouterr()
        assert SECRET not in told.out + told.err
        assert code != 0
        assert "notify" in told.err.lower()


@pytest.mark.parametrize("line", ['env = ["{}"]', 'file = "{}"', 'url = "{}"'])
def test_an_address_in_the_projects_file_is_refused_and_not_told(tmp_path, capsys, target: Target, line: str):
    (tmp_path / "slurm-agent.toml").write_text(f"[notify]\n{line.format(target.address)}\n")
    assert main(["watch", "--test"]) == 2
    told = capsys.readouterr()
    assert "notify" in told.err
    assert SECRET not in told.out + told.err


def test_a_file_of_addresses_that_others_can_read_is_refused(tmp_path, monkeypatch, capsys):
    path = tmp_path / "targets"
    path.write_text(f"json://127.0.0.1/{SECRET}\n")
    path.chmod(0o640)
    monkeypatch.setenv("SLURM_AGENT_NOTIFY", json.dumps({"file": str(path)}))
    assert main(["watch", "--once"]) == 2
    told = capsys.readouterr()
    assert "chmod 600" in told.err
    assert SECRET not in told.out + told.err
    monkeypatch.setenv("SLURM_AGENT_NOTIFY", json.dumps({"file": str(tmp_path / "not-there")}))
    assert main(["watch", "--once"]) == 2


@pytest.mark.usefixtures("there")
def test_two_watches_of_one_project_are_one_too_many(tmp_path, capsys):
    assert main(["watch", "--once"]) == 0
    (book,) = (tmp_path / "state").glob("watch-*.json")
    with named_lock(book.parent, f"{book.stem}.lock.sqlite3") as held:
        assert held
        assert main(["watch", "--once"]) == 2
    assert "is watched by another process" in capsys.readouterr().err


@pytest.mark.usefixtures("there")
def test_a_book_that_cannot_be_read_stops_it_rather_than_tell_all_again(tmp_path, target: Target, capsys):
    assert main(["watch", "--once"]) == 0
    (book,) = (tmp_path / "state").glob("watch-*.json")
    book.write_text("{")
    assert main(["watch", "--once"]) == 1
    assert "Remove it" in capsys.readouterr().err
    assert len(target.heard) == 1


def test_a_slurm_that_does_not_answer_is_an_alert_itself(tmp_path, monkeypatch, target: Target):
    for name, value in {
        "PROJECT_ROOT": tmp_path,
        "STATE_DIR": tmp_path / "state",
        "SLURM__BIN_DIR": tmp_path / "no",
    }.items():
        monkeypatch.setenv(f"SLURM_AGENT_{name}", str(value))
    monkeypatch.setenv("SLURM_AGENT_NOTIFY", '{"env": ["ALERTS_TO"]}')
    monkeypatch.setenv("ALERTS_TO", target.address)
    for _ in range(2):
        assert main(["watch", "--once"]) == 1
    assert len(target.heard) == 1
    assert target.heard[0]["title"] == "slurm: 1 alert, critical"


@pytest.mark.usefixtures("there")
def test_a_pause_that_would_hurt_slurm_is_refused(capsys):
    assert main(["watch", "--seconds", "1"]) == 2
    assert "--seconds" in capsys.readouterr().err
