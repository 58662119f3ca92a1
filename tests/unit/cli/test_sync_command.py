"""`slurm-agent-tools sync` over tools of the test's own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar

import pytest

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import sync_call
from slurm_agent_tools.errors import SlurmUnreachable, StorageError
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.models.report import WaitReply
from slurm_agent_tools.models.shapes import JobShown
from slurm_agent_tools.models.status_answer import ClusterSection, SlurmSection, StatusReply
from slurm_agent_tools.models.sync_answer import SyncReply
from slurm_agent_tools.models.toolset_arguments import SyncFiles
from slurm_agent_tools.transport.ssh.remote import SshTransport

NOW = datetime(2026, 1, 2, tzinfo=UTC)


def reply(status: str = "done", **more: Any) -> SyncReply:
    return SyncReply(status=status, summary="Told.", as_of=NOW, direction="pull", **more)


def jobs(active: int) -> StatusReply:
    slurm = SlurmSection(
        running_jobs=active, pending_jobs=0, active_jobs=active, max_concurrent=4, slots_left=1, jobs=[]
    )
    cluster = ClusterSection(name="c", version="1", reachable=True)
    return StatusReply(status="ok", summary="", as_of=NOW, cluster=cluster, slurm=slurm)


class Box:
    """Answers in turn, by the tool; keeps what it was asked."""

    answers: ClassVar[dict[str, list[Any]]] = {}
    asked: ClassVar[list[tuple[str, ToolArguments]]] = []
    early: ClassVar[list[Any]] = []
    places: ClassVar[list[Any]] = []

    @classmethod
    def open(cls, _: object, places: dict[str, SshTransport] | None = None) -> Box:
        cls.places.append(places)
        return cls()

    async def call(self, name: str, ask: ToolArguments, **more: Any) -> Any:
        self.asked.append((name, ask))
        if more.get("early") is not None:
            await more["early"].run()
            self.early.append(more["early"].value())
        answer = self.answers[name].pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def box(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[Box]]:
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setattr(sync_call, "Toolbox", Box)
    Box.answers, Box.asked, Box.early, Box.places = {}, [], [], []
    yield Box
    assert not any(Box.answers.values())


@pytest.mark.parametrize(("status", "code"), [("done", 0), ("blocked", 3), ("partial", 4)])
def test_every_option_reaches_the_tool_and_the_exit_code_tells_the_end(box, capsys, status, code):
    box.answers = {"sync_files": [reply(status)]}
    words = ["push", "a", "--delete=b", "c*", "--delete", "d", "--dry-run", "--cluster=lab", "--json", "--", "-e"]
    assert main.main(["sync", *words]) == code
    wanted = SyncFiles(direction="push", paths=["a", "c*", "-e"], delete=["b", "d"], dry_run=True, cluster="lab")
    assert box.asked == [("sync_files", wanted)]
    assert json.loads(capsys.readouterr().out)["status"] == status
    assert box.early == []  # no cluster of the settings has this name: the tool says so


@pytest.mark.parametrize("named", [[], ["--cluster=lab"]])
def test_the_files_are_looked_at_while_a_host_lets_us_in(box, tmp_path, monkeypatch, named):
    (tmp_path / ".slurm-agent-sync").write_text("a\n")
    (tmp_path / "a").write_text("x")
    monkeypatch.setenv("SLURM_AGENT_CLUSTERS", json.dumps({"lab": {"host": "lab", "remote_root": "~"}}))
    begun, closed = [], []

    async def login(host: SshTransport) -> None:
        begun.append((host.name, len(box.places)))
        raise SlurmUnreachable("away")  # which the tool says, not this

    async def close(host: SshTransport) -> None:
        closed.append(host.name)

    monkeypatch.setattr(SshTransport, "login_environment", login)
    monkeypatch.setattr(SshTransport, "close", close)
    box.answers = {"sync_files": [reply()]}
    assert main.main(["sync", "push", *named]) == 0
    assert (begun, closed, [*box.places[0]]) == ([("lab", 0)], ["lab"], ["lab"])
    assert ([*box.early[0].names], [*box.early[0].states]) == (["a"], ["a"])
    box.answers = {"sync_files": [SlurmUnreachable("The host is away.")]}
    assert main.main(["sync", "push", *named]) == 1
    assert closed == ["lab", "lab"]


@pytest.mark.parametrize("clusters", [{"here": {}}, {name: {"host": name, "remote_root": "~"} for name in "ab"}])
def test_no_host_is_reached_where_the_cluster_is_this_machine_or_one_of_several(box, monkeypatch, clusters):
    monkeypatch.setenv("SLURM_AGENT_CLUSTERS", json.dumps(clusters))
    monkeypatch.setattr(SshTransport, "login_environment", pytest.fail)
    box.answers = {"sync_files": [reply()]}
    assert main.main(["sync", "push"]) == 0
    assert (box.early, box.places) == ([], [None])


def test_follow_goes_on_while_the_job_runs_and_over_what_is_away_and_pulls_once_more_at_its_end(box, capsys):
    job = JobShown(job_id="7", name="train", state="RUNNING")
    running, over = (WaitReply(status=one, summary="", as_of=NOW, job=job) for one in ("running", "finished"))
    box.answers = {
        "wait_for_job": [running, SlurmUnreachable("The host is away."), running, over],
        "sync_files": [reply(received=2, bytes=20), StorageError("A node vanished."), reply(), reply(received=1, bytes=5)],
    }  # fmt: skip
    assert main.main(["sync", "pull", "--follow", "--every=0.001", "--job=7", "logs", "--json"]) == 0
    told = capsys.readouterr()
    assert (json.loads(told.out)["received"], json.loads(told.out)["bytes"]) == (3, 25)
    assert json.loads(told.out)["summary"].startswith("In all, 3 brought here (25B).")
    assert "A node vanished. Trying again." in told.err
    assert "The host is away. Trying again." in told.err
    assert [name for name, _ in box.asked] == ["wait_for_job", "sync_files"] * 4


def test_follow_without_a_job_ends_when_none_is_active_and_all_is_here(box):
    box.answers = {"get_status": [jobs(1), jobs(0), jobs(0)], "sync_files": [reply(), reply("partial"), reply()]}
    assert main.main(["sync", "pull", "--follow", "--every=0.001"]) == 0
    assert len(box.asked) == 6


def test_follow_ends_where_a_file_cannot_be_brought_after_the_job_and_says_so_once(box, capsys):
    left = reply("partial").model_copy(update={"summary": "1 file not: a: Permission denied"})
    moved = reply("partial", received=1)
    box.answers = {"get_status": [jobs(0)] * 8, "sync_files": [left, left, moved, *[left] * 5]}
    assert main.main(["sync", "pull", "--follow", "--every=0.001"]) == 4
    assert capsys.readouterr().err.count("Permission denied") == 2


def test_follow_ends_at_what_waiting_does_not_mend(box, capsys):
    box.answers = {"get_status": [StorageError("The ledger was written by a newer version.")]}
    assert main.main(["sync", "pull", "--follow"]) == 1
    assert "newer version" in capsys.readouterr().err


def test_follow_ends_where_the_policy_refuses_and_where_the_end_cannot_be_pulled(box, capsys):
    box.answers = {"get_status": [jobs(1)], "sync_files": [reply("blocked", blocker="policy")]}
    assert main.main(["sync", "pull", "--follow"]) == 3
    box.answers = {"get_status": [jobs(0)], "sync_files": [StorageError("Gone.")]}
    assert main.main(["sync", "pull", "--follow"]) == 1


@pytest.mark.parametrize(
    "words", [["push", "--follow"], ["pull", "--follow", "--dry-run"], ["pull", "--every=0"], ["pull", "--every=x"], ["away"], []]
)  # fmt: skip
def test_what_means_nothing_is_an_error_of_usage(box, words):
    assert main.main(["sync", *words]) == 2
    assert box.asked == []


def test_a_toolset_that_is_switched_off_takes_the_command_with_it(box, monkeypatch, capsys):
    monkeypatch.setenv("SLURM_AGENT_TOOLSETS", '["core"]')
    assert main.main(["sync", "status"]) == 2
    assert "toolset files" in capsys.readouterr().err


def test_without_a_direction_that_alone_is_said_to_be_missing(box, capsys):
    assert main.main(["sync"]) == 2
    assert "PATTERN are required" not in capsys.readouterr().err
