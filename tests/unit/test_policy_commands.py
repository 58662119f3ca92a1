"""`policy check`, `policy show` and `policy log` without a cluster."""

import json
from pathlib import Path

import pytest

from slurm_agent_tools import cli

GOOD = "#!/bin/bash\n#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=16G --time=01:00:00\npython train.py\n"
GREEDY = GOOD.replace("16G", "640G")


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.sh").write_text(GOOD)
    (tmp_path / "greedy.sh").write_text(GREEDY)
    return tmp_path


def decisions(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_conforming_script_is_allowed_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["policy", "check", "--json", "good.sh"]) == 0
    (decision,) = decisions(capsys)
    assert (decision["script"], decision["verdict"]) == ("good.sh", "allow")


def test_one_line_a_script_and_exit_3_when_one_is_not_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["policy", "check", "--json", "good.sh", "greedy.sh"]) == 3
    found = decisions(capsys)
    assert [decision["script"] for decision in found] == ["good.sh", "greedy.sh"]
    assert found[1]["verdict"] == "approve"
    assert "approve" in {rule["outcome"] for rule in found[1]["rules"] if rule["id"] == "memory-per-gpu"}


@pytest.mark.parametrize("content", [None, b"", b"#!/bin/bash\n\0", b"python train.py\n"])
def test_what_is_no_batch_script_is_denied(
    content: bytes | None, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (project / "odd.sh").write_bytes(content)
    assert cli.main(["policy", "check", "--json", "odd.sh"]) == 3
    (decision,) = decisions(capsys)
    assert decision["verdict"] == "deny"
    assert {rule["id"] for rule in decision["rules"] if rule["outcome"] == "deny"} == {"script-exists"}


def test_a_person_reads_the_rule_and_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["policy", "check", "greedy.sh"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("greedy.sh:\nverdict: approve")
    assert "memory-per-gpu" in out
    assert "16G" in out


def test_show_tells_the_limits_and_the_hash(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["policy", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["policy"]["limits"]["max_concurrent_jobs"] == 4
    assert shown["policy"]["limits"]["memory_per_gpu"]["free"] == 16 * 2**30
    assert len(shown["sha256"]) == 64


def test_show_for_a_person_writes_sizes_and_times_as_people_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["policy", "show"]) == 0
    out = capsys.readouterr().out
    assert "free: 16G" in out
    assert "time_limit: 02:00:00" in out


def test_a_project_policy_that_cannot_be_read_is_exit_2_and_names_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "policies").mkdir()
    (project / "policies" / "mine.yaml").write_text("max_concurrent_job: 2\n")
    assert cli.main(["policy", "check", "--json", "good.sh"]) == 2
    assert "max_concurrent_job" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_the_log_is_empty_before_anything_was_decided_and_then_shows_the_newest(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["policy", "log", "--json"]) == 0
    assert capsys.readouterr().out == ""
    entry = {"at": "2026-01-02", "event": "decided", "verdict": "deny", "tool": "submit_job", "script": "a.sh"}
    (project / "state").mkdir(exist_ok=True)
    (project / "state" / "decisions.jsonl").write_text("".join(json.dumps(entry | {"script": n}) + "\n" for n in "ab"))
    assert cli.main(["policy", "log", "--json", "--last", "1"]) == 0
    assert [decision["script"] for decision in decisions(capsys)] == ["b"]
    assert cli.main(["policy", "log"]) == 0
    assert "deny" in capsys.readouterr().out
