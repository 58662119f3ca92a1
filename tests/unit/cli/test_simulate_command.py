"""`slurm-agent-tools simulate` over made-up traces and a Slurm in memory."""

from __future__ import annotations

import gzip
import json
import xml.etree.ElementTree as ET

import pytest
from tests.unit.planning.workloads import made_up

from slurm_agent_tools.cli import main


def swf(load):
    rows = (
        f"{job.number} {job.submit:.0f} -1 {job.run:.0f} {job.processors} -1 -1 {job.processors} {job.limit:.0f}"
        f" -1 1 {job.user.removeprefix('user')} 1 -1 -1 -1 -1 -1\n"
        for job in load.jobs
    )
    return "; MaxProcs: 32\n" + "".join(rows) + f"{10**6} 5 -1 -1 1 -1 -1 1 60 -1 1 1 1 -1 -1 -1 -1 -1\n"


@pytest.fixture
def trace(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    path = tmp_path / "made-<up>.swf.gz"
    path.write_bytes(gzip.compress(swf(made_up(5, count=500, load=0.95)).encode()))
    return path


def document(capsys):
    return json.loads(capsys.readouterr().out)


@pytest.mark.proves("comparison-with-confidence")
def test_the_document_has_every_figure_with_its_spread_and_its_interval(trace, capsys):
    assert main.main(["simulate", str(trace), "--strategies=easy,easy-shortest,shortest", "--json"]) == 0
    body = document(capsys)
    assert (body["status"], body["jobs"], body["processors"], body["replays"]) == ("done", 500, 32, 5)
    assert body["left_out"] == {"no run time is known": 1}
    assert (body["baseline"], body["users"]) == ("easy", None)
    first, second, _ = body["strategies"]
    for name in ("wait_seconds", "completion_seconds", "bounded_slowdown", "p95_wait_seconds", "longest_wait_seconds",
                 "utilisation", "starved", "fairness"):  # fmt: skip
        assert first[name]["least"] <= first[name]["mean"] <= first[name]["most"]
    assert (first["beside_baseline"], first["verdict"]) == (None, None)
    low, high = second["beside_baseline"]["wait_interval"]
    assert low <= second["beside_baseline"]["wait_seconds"] <= high
    assert second["beside_baseline"]["longest_wait_ratio"] > 0
    assert any("whatever they wait" in text for text in body["assumptions"])


def test_a_person_gets_a_table_the_verdicts_and_the_assumptions(trace, capsys):
    assert main.main(["simulate", str(trace), "--strategies=easy,fcfs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("STRATEGY  MEAN WAIT  95 % BESIDE THE FIRST")
    assert [line.split()[0] for line in lines[1:3]] == ["easy", "fcfs"]
    assert any(line.startswith("fcfs: ") for line in lines)
    assert "It is assumed:" in lines


def test_the_plot_is_a_new_file_of_lines_and_escaped_text(trace, capsys, tmp_path):
    out = tmp_path / "waits.svg"
    words = ["simulate", str(trace), "--strategies=easy,shortest", "--json", f"--svg={out}"]
    assert main.main(words) == 0
    assert document(capsys)["svg"] == str(out)
    root = ET.fromstring(out.read_text())  # noqa: S314 - our own
    kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert kinds == {"svg", "title", "path", "rect", "text", "line", "polyline"}
    assert "made-&lt;up&gt;" in out.read_text()
    assert main.main(words) == 2
    assert "is there already" in document(capsys)["error"]["message"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "trace"),
        (["TRACE", "--accounting"], "trace"),
        (["missing.swf"], "cannot be read"),
        (["TRACE", "--strategies=magic"], "'magic' is not known"),
        (["TRACE", "--strategies=site"], "needs --accounting"),
        (["TRACE", "--seeds=2"], "seeds: 2 is out of range"),
        (["TRACE", "--processors=4"], "is more than the pool has"),
        (["TRACE", "--processors=0"], "processors"),
        (["TRACE", "--lines=0"], "lines: 0"),
        (["TRACE", "--lines=1"], "no job to play"),
    ],
)
def test_bad_input_is_named(trace, capsys, words, said):
    asked = [str(trace) if word == "TRACE" else word for word in words]
    assert main.main(["simulate", "--json", *asked]) == 2
    assert said in document(capsys)["error"]["message"]


JOB = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --cpus-per-task=2\n#SBATCH --time=10\n#SBATCH --mem=1G\nsleep 60\n"


@pytest.mark.proves("simulate-accounting")
@pytest.mark.parametrize(("users", "whose"), [(("alice", "bob"), "all"), (("alice",), "own")])
def test_the_accounting_is_replayed_and_it_is_said_whose_jobs_these_are(context, slurm, capsys, users, whose):
    for user in users * 3:
        slurm.submit(JOB, user=user)
    slurm.clock.move(500)
    assert main.main(["simulate", "--accounting", "--days=2", "--json", "--strategies=easy,easy-exact"]) == 0
    body = document(capsys)
    assert (body["users"], body["jobs"]) == (whose, 3 * len(users))
    assert body["recorded_mean_wait_seconds"] is not None
    assert any(("Only your own" if whose == "own" else "of all users") in text for text in body["assumptions"])


def test_a_cluster_on_which_nothing_ran_says_so(context, capsys):
    assert main.main(["simulate", "--accounting", "--json"]) == 2
    assert "no job to play" in document(capsys)["error"]["message"]
