"""`slurm-agent-tools history` over a memory of the test's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.unit.insights.records import run

from slurm_agent_tools.api import search_history
from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import history_command
from slurm_agent_tools.store.ledger import Store


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[search_history.HistoryQuestion]:
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    found: list[search_history.HistoryQuestion] = []

    class Known:
        records = (
            run(2, name="train\x1b[31m", run_id="r2", partition="cpu"),
            run(1, state="FAILED", category="missing-module"),
        )
        silent = None

    async def past(context: object, *, days: int, limit: int) -> type[Known]:
        return Known

    async def seen(context: object, wanted: search_history.HistoryQuestion) -> object:
        found.append(wanted)
        return await search_history.search_history(context, wanted)  # type: ignore[arg-type]

    monkeypatch.setattr(search_history, "accounting_history", past)
    monkeypatch.setattr(history_command, "search_history", seen)
    return found


def test_every_option_reaches_the_memory(asked, capsys):
    words = ["--tag=a", "--tag=b", "--any", "--query=some text", "--limit=3", "--days=9", "--json"]
    assert main.main(["history", *words]) == 0
    assert asked == [search_history.HistoryQuestion(["a", "b"], match_all=False, query="some text", limit=3, days=9)]
    assert json.loads(capsys.readouterr().out)["summary"] == "No job of the last 9 days fits."


def test_the_document_holds_what_was_asked_and_used_with_no_hidden_sign(asked, capsys):
    assert main.main(["history", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert [job["name"] for job in body["jobs"]] == ["train\\x1b[31m", "train"]
    assert body["data_only"] == ["jobs"]
    assert body["jobs"][0]["usage"]["memory_peak_bytes"] == 4 * 2**30
    assert body["jobs"][0]["requested"]["memory"] == "16G"
    assert (body["advice"], body["note"]) == (None, None)


def test_a_person_gets_one_line_a_job_in_columns_with_a_header(asked, capsys):
    assert main.main(["history"]) == 0
    header, first, second, summary = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "SUBMITTED (UTC)"
    assert "LIKE" not in header
    assert first.startswith("2026-11-21 12:02  2    COMPLETED")
    assert "train\\x1b[31m  4G of 16G    00:16:40 of 02:00:00  r2" in first
    for title, one, other in (("STATE", "COMPLETED", "FAILED"), ("MEMORY USED", "4G of 16G", "4G of 16G")):
        assert header.index(title) == first.index(one) == second.index(other)
    assert header.index("CATEGORY") == second.index("missing-module")
    assert summary == "2 jobs of the last 30 days."


def test_as_a_memory_server_stores_them_every_figure_stands_there_once(asked, capsys):
    assert main.main(["history", "--json", "--memory"]) == 0
    job, _ = json.loads(capsys.readouterr().out)["jobs"]
    assert set(job) == {"job_id", "state", "memory"}
    assert set(job["memory"]) == {"content", "memory_type", "tags", "metadata"}
    assert main.main(["history", "--json"]) == 0
    assert "memory_type" not in capsys.readouterr().out


@pytest.mark.parametrize("words", [["--limit=0"], ["--limit=x"], ["--days=0"], ["--days=99999"], ["--tags=a"]])
def test_a_bad_option_is_named(asked, capsys, words):
    assert main.main(["history", "--json", *words]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert words[0].partition("=")[0].lstrip("-") in error["message"]
    assert asked == []


def test_what_is_due_is_handed_to_the_memory_server_before_it_is_shown(asked, capsys, monkeypatch, tmp_path):
    assert main.main(["history", "--store", "--json"]) == 2
    assert "no memory server" in json.loads(capsys.readouterr().out)["error"]["message"]
    server, kept = Path(__file__).parents[1] / "services" / "memories.py", tmp_path / "kept"
    monkeypatch.setenv("SLURM_AGENT_MEMORY__COMMAND", json.dumps([sys.executable, str(server), str(kept)]))
    monkeypatch.setattr(Store, "untold", due := Due())
    assert main.main(["history", "--store"]) == 0
    assert [json.loads(line)["metadata"]["job_id"] for line in kept.read_text().splitlines()] == ["1"]
    assert due.asked == 1
    assert "2 jobs of the last" in capsys.readouterr().out


class Due:
    """One record is due."""

    asked = 0

    def __call__(self, *_: object, **__: object) -> list[tuple[str, object]]:
        self.asked += 1
        return [("t1", run(1))]
