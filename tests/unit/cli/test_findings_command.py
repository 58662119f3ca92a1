"""`slurm-agent-tools findings` over a Slurm in memory, and the record that it makes of the accounting."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.planning.clusters import bad_week

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import findings_command
from slurm_agent_tools.errors import SlurmGarbled
from slurm_agent_tools.insights.queue_history import cluster_record
from slurm_agent_tools.models.accounted import NodeSpan
from slurm_agent_tools.planning.findings.ranked import find_all
from slurm_agent_tools.slurm.commands import sacctmgr
from slurm_agent_tools.transport.base import Completed

JOB = (
    "#!/bin/bash\n#SBATCH --partition=gpu\n#SBATCH --gpus=1\n#SBATCH --cpus-per-task=2\n#SBATCH --time=10\n"
    "#SBATCH --mem=1G\nsleep 60\n"
)
HOUR = 3600
GUIDE = (Path(__file__).parents[3] / "docs" / "guides" / "findings.md").read_text()
COMMANDS = re.findall(r"^slurm-agent-tools .*$", GUIDE, re.MULTILINE)


def document(capsys):
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def made_up(context, monkeypatch):
    """The command finds the bad week in place of the accounting."""
    record = replace(bad_week(), cluster="lab\x1b[31m")

    async def found(*_, **__):
        return record

    monkeypatch.setattr(findings_command, "cluster_record", found)


@pytest.mark.proves("findings-name-defects")
def test_the_document_has_each_finding_with_evidence_cost_change_and_risk(made_up, capsys):
    assert main.main(["findings", "--json"]) == 0
    body = document(capsys)
    assert (body["status"], body["users"], body["days"], body["jobs"]) == ("done", "all", 14, 418)
    assert body["summary"].startswith("418 jobs of all users ended in 7 days. Findings: 6 high.")
    first = body["findings"][0]
    assert set(first) >= {"id", "level", "title", "cost", "evidence", "who", "for_users", "for_administrators", "risk"}
    assert {one["partition"] for one in body["bottlenecks"]} == {"cpu", "gpu"}
    assert "\x1b" not in json.dumps(body)


def test_a_person_reads_the_lines_to_write_and_that_nothing_was_changed(made_up, capsys):
    assert main.main(["findings"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("HIGH   ")
    assert any(line.strip() == "users: #SBATCH --mem=4916M" for line in lines)
    assert any("administrators: " in line for line in lines)
    assert any("risk: " in line for line in lines)
    assert lines[-1].endswith("Nothing was changed.")


@pytest.mark.parametrize("line", COMMANDS)
def test_the_guide_shows_what_its_command_prints(made_up, capsys, line):
    program, *words = line.split()
    assert (program, main.main(words)) == ("slurm-agent-tools", 0)
    shown = GUIDE.split("```\n")[2]
    assert "--json" in words or capsys.readouterr().out == shown
    assert all(f"`{one.id}`" in GUIDE for one in find_all(bad_week()).findings)


def test_a_cluster_on_which_little_ran_says_so(context, slurm, capsys):
    slurm.submit(JOB, user="alice")
    slurm.clock.move(300)
    assert main.main(["findings", "--days=3", "--json"]) == 0
    body = document(capsys)
    assert (body["findings"], body["jobs"], body["users"]) == ([], 1, "own")
    assert body["too_few"] == "Too few jobs to say: 1 ended, 50 are needed."


def test_days_that_are_none_are_named(context, capsys):
    assert main.main(["findings", "--days=0", "--json"]) == 2
    assert "days: 0 is out of range" in document(capsys)["error"]["message"]


# --- The record ---------------------------------------------------------------------------------------------------


async def test_jobs_of_all_users_are_there_with_what_they_asked_for_and_where_they_ran(context, slurm):
    for user in ("alice", "bob"):
        slurm.submit(JOB, user=user)
    await slurm.clock.advance(120)
    slurm.submit(JOB, "--nodelist=gpu01", "--exclusive", user="bob")
    waiting = slurm.submit(JOB, "--begin=now+1hour", user="bob")
    record = await cluster_record(context, days=2)
    assert (record.hours, record.own, record.kept, record.outages) == (48, False, (), ())
    ended = [job for job in record.jobs if job.run is not None]
    assert {job.user for job in ended} == {"alice", "bob"}
    assert {(job.cpus, job.gpus, job.memory, job.limit, job.account) for job in ended} == {(2, 1, 2**30, 600, "lab")}
    assert all(job.nodes <= set(record.nodes) and 59 <= job.run <= 62 and job.ready is not None for job in ended)
    assert set(record.partitions) >= {"cpu", "gpu"}
    assert waiting


async def test_tasks_that_wait_are_there_as_one_job(context, slurm):
    slurm.submit(JOB, "--array=0-9%2", user="bob")
    await slurm.clock.advance(30)
    record = await cluster_record(context, days=1)
    assert sorted(job.state for job in record.jobs) == ["PENDING", "RUNNING", "RUNNING"]


async def test_reservations_and_outages_that_were_are_read_and_their_silence_is_told(context, slurm):
    now = int(slurm.clock.now().timestamp())
    slurm.extra["past reservations"] = (
        f"{now - 9 * HOUR}|{now}|MAINT,SPEC_NODES|cpu[01-02]|wo|rk\n{now}|{now}|||empty\n"
    )
    slurm.extra["past events"] = f"{now - HOUR}|Unknown|DOWN$|gpu01\n{now}|Unknown||\n{now}|{now}|PLANNED|gpu01\n"
    slurm.extra["past events"] += f"{now - HOUR}|{now}|INVAL|gpu02\n"
    record = await cluster_record(context, days=1)
    assert record.kept == (NodeSpan("wo|rk", frozenset({"cpu01", "cpu02"}), now - 9 * HOUR, now, maintenance=True),)
    gone, wrong = record.outages
    assert (wrong.name, wrong.nodes) == ("INVAL", frozenset({"gpu02"}))
    assert (gone.name, gone.nodes, gone.start, round(gone.end)) == ("DOWN$", frozenset({"gpu01"}), now - HOUR, now)
    slurm.extra["past reservations"] = "no row\n"
    assert (await cluster_record(context, days=1)).kept is None


@pytest.mark.parametrize("row", ["1|2|3", "x|2||cpu01|name", "1|2||cpu[|name"])
def test_a_row_that_does_not_fit_is_an_error_with_the_row_in_it(row):
    done = Completed(tuple(sacctmgr.reservations_argv(24)), 0, f"{row}\n".encode(), b"", 0.1)
    with pytest.raises(SlurmGarbled, match=r"sacctmgr answered what cannot be read"):
        sacctmgr.parse_reservations(done, 0.0)
