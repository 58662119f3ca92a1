"""The ledger or the disk breaks: nothing is sent that is not written down, and no half file is left."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.faces import Place
from tests.system.faults.page import TRIAL, says, script, submitted
from tests.system.test_crashes import ledger, truthful
from tests.system.test_outages import jobs_named, wrapper

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.store.ledger_location import Mount, choose

# --- the ledger and the disk ---------------------------------------------------------------------------------------


class Disk:
    """A small disk in a folder, as root a real one; else a limit on what our program may write."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place, self.folder, self.filler = place, folder, folder / "filler"
        self.real = os.geteuid() == 0

    @contextlib.contextmanager
    def mounted(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.real:
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", self.folder], check=True)
        self.place.own()
        try:
            yield
        finally:
            if self.real:
                subprocess.run(["umount", self.folder], check=True)

    def full(self, tool: str, *words: str) -> dict[str, Any]:
        """The answer of a tool while nothing more can be written."""
        before: list[str] = []
        if self.real:
            self.place.run(["dd", "if=/dev/zero", f"of={self.filler}", "bs=4k"])
        else:
            before = ["prlimit", "--fsize=0"]
        done = self.place.run([*before, sys.executable, "-m", f"tools.agent_tools.{tool}", "--detail=full", *words])
        self.filler.unlink(missing_ok=True)
        return json.loads(done.stdout)  # type: ignore[no-any-return]

    def left(self) -> list[str]:
        """The files in it."""
        return sorted(path.name for path in self.folder.rglob("*") if path.is_file())


@pytest.mark.proves("faults-have-their-answer", "on-disk-before-the-answer")
def test_with_a_full_disk_under_the_ledger_nothing_is_sent(fresh: Place):
    disk = Disk(fresh, ledger(fresh).parent)
    with disk.mounted():
        assert fresh.cli("get_status")[0] == 0
        reply = disk.full("submit_job", f"--script={script(fresh, 'unwritten')}")
        assert reply["error"]["code"] == "storage_failed", reply
        if disk.real:
            says("The disk of the ledger is full", reply["error"]["message"])
        assert jobs_named(fresh, "unwritten.sh") == []
        submitted(fresh, "unwritten")
        truthful(fresh)


@pytest.mark.proves("faults-have-their-answer", "on-disk-before-the-answer")
def test_a_disk_that_fills_while_slurm_has_the_job_is_told_and_the_key_goes_on(fresh, monkeypatch):
    disk = Disk(fresh, ledger(fresh).parent)
    full = f"dd if=/dev/zero of={disk.filler} bs=4k" if disk.real else "prlimit --fsize=0 --pid $PPID"
    with disk.mounted():
        assert fresh.cli("get_status")[0] == 0
        body = f'{TRIAL}/usr/bin/sbatch "$@"; {full} 2>/dev/null; exit 0'
        monkeypatch.setitem(fresh.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(fresh, body))
        words = [f"--script={script(fresh, 'half')}", "--job-name=half", "--idempotency-key=half"]
        code, reply = fresh.cli("submit_job", *words)
        monkeypatch.delitem(fresh.extra, "SLURM_AGENT_SLURM__BIN_DIR")
        assert (code, reply["error"]["code"]) == (1, "storage_failed"), reply
        if disk.real:
            says("The disk of the ledger is full", reply["error"]["message"], 1)
        assert "idempotency_key half" in reply["error"]["hint"]
        assert fresh.slurm("squeue", "-h", "-n", "half", "-o", "%T %r") == "PENDING JobHeldUser"
        disk.filler.unlink(missing_ok=True)
        assert [submitted(fresh, "half", "--idempotency-key=half")] == jobs_named(fresh, "half")
        truthful(fresh)


@pytest.mark.proves("faults-have-their-answer", "on-disk-before-the-answer", "results-never-overwrite")
def test_a_full_disk_under_the_project_leaves_no_half_file(ready: Place):
    for folder, tool, words in (
        ("results", "save_result", ["--name=run", "--status=success", f"--notes={'x' * 5000}"]),
        ("scripts/slurm/generated", "generate_script", ["--name=made", "--command=python train.py"]),
    ):
        disk = Disk(ready, ready.project / folder)
        with disk.mounted():
            reply = disk.full(tool, *words)
            assert reply["error"]["code"] == "storage_failed", reply
            if disk.real:
                says("The disk of the project is full", reply["error"]["message"])
            assert disk.left() == []
            assert ready.cli(tool, *words)[0] == 0
            assert len(disk.left()) == 1


def broken(place: Place, kind: str) -> None:
    """Spoil the ledger."""
    path = ledger(place)
    if kind == "The ledger cannot be written":
        path.parent.chmod(0o555)
    elif kind == "The ledger is damaged":
        path.write_bytes(b"\0" * 100 + path.read_bytes()[100:])
    else:
        with contextlib.closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 99")


@pytest.mark.proves("faults-have-their-answer")
@pytest.mark.parametrize(
    "heading", ["The ledger cannot be written", "The ledger is damaged", "The ledger is newer than the tools"]
)
def test_without_its_ledger_every_tool_says_why_and_nothing_is_sent(ready: Place, heading: str):
    before = ledger(ready).read_bytes()
    broken(ready, heading)
    for tool, words in (("get_status", []), ("submit_job", [f"--script={script(ready, 'refused')}"])):
        if heading == "The ledger cannot be written":
            ledger(ready).parent.chmod(0o555)
        code, reply = ready.cli(tool, *words)
        assert (code, reply["error"]["code"]) == (1, "storage_failed"), reply
        assert reply["error"]["hint"]
        says(heading, reply["error"]["message"])
    assert jobs_named(ready, "refused.sh") == []
    ledger(ready).parent.chmod(0o700)
    ledger(ready).write_bytes(before)
    submitted(ready, "refused")


@pytest.mark.proves("decisions-are-logged", "faults-have-their-answer")
def test_a_line_of_the_decision_log_that_was_cut_off_spoils_no_other(ready: Place):
    submitted(ready, "first")
    log = ledger(ready).parent / "decisions.jsonl"
    with log.open("ab") as file:
        file.write(log.read_bytes().splitlines()[-1][:-40])  # a crash comes before the ledger knows of the line
    submitted(ready, "second")
    tool = [sys.executable, "-m", "slurm_agent_tools", "policy", "log"]
    done = ready.run([*tool, "--json"])
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert events == ["decided", "submitted", "decided", "submitted"]
    says("Lines are missing in the decision log", done.stderr.decode())
    assert ready.run([*tool, "--verify"]).returncode == 0


@pytest.mark.proves("log-is-a-chain", "faults-have-their-answer")
def test_a_line_that_was_whole_and_is_cut_off_later_is_told(ready: Place):
    submitted(ready, "first")
    log = ledger(ready).parent / "decisions.jsonl"
    log.write_bytes(log.read_bytes()[:-40])
    ready.own()
    code, status = ready.cli("get_status")
    (alert,) = [one for one in status["alerts"] if one["code"] == "log-changed"]
    says("The decision log was changed", alert["message"], 1)
    submitted(ready, "second")
    done = ready.run([sys.executable, "-m", "slurm_agent_tools", "policy", "log", "--json"])
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert events == ["decided", "log-broken", "decided", "submitted"]
    tool = [sys.executable, "-m", "slurm_agent_tools", "policy", "log"]
    assert (code, ready.run([*tool, "--verify"]).returncode) == (0, 1)
    assert ready.run([*tool, "--begin-anew"]).returncode == 0
    assert ready.run([*tool, "--verify"]).returncode == 0


@pytest.mark.proves("faults-have-their-answer")
def test_a_ledger_on_a_network_file_system_moves_or_is_refused(tmp_path: Path):
    """No network file system can be mounted everywhere, so the mount table is handed in."""
    heading = "The ledger is on a network file system"
    mounts = [Mount("/", "ext4"), Mount("/far", "nfs4")]
    moved = choose(Path("/far/home/state"), given=False, mounts=mounts, temporary=tmp_path)
    says(heading, moved.note or "")
    with pytest.raises(ConfigError) as caught:
        choose(Path("/far/home/state"), given=True, mounts=mounts)
    says(heading, caught.value.message, 1)
