"""The command `findings` on a real slurmdbd whose tables hold made-up weeks: one with six defects, and a healthy one."""

# ruff: noqa: S608 - every word of these statements is of this file or made up by tests

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from tests.system.faces import Place
from tests.unit.planning.clusters import DEFECTS, MIB, bad_week, healthy, week

from slurm_agent_tools.devcluster.definition import letters
from slurm_agent_tools.models.accounted import AccountedJob, ClusterRecord

FIRST = 8_000_000  # of the numbers of made-up jobs


@dataclass
class Database:
    """The tables of the devcluster's accounting, in which made-up history lies beside the real one."""

    place: Place

    @property
    def cluster(self) -> str:
        return self.place.cluster.name

    def ask(self, text: str) -> list[list[str]]:
        """Rows of the answer to the last statement."""
        argv = ["mariadb", "--no-defaults", "-S", f"{self.place.cluster.folder}/db/mysqld.sock", "-N", "-B"]
        # What another version's tables have beside these columns gets what a column of its kind has by itself.
        words = f"SET SESSION sql_mode=''; {text}"
        done = subprocess.run([*argv, "slurm_acct_db"], input=words.encode(), capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
        return [line.split("\t") for line in done.stdout.decode().splitlines()]

    def manage(self, *words: str) -> None:
        argv = [str(self.place.programs / "sacctmgr"), "--immediate", *words]
        environment = {"PATH": "/usr/bin:/bin", **self.place.cluster.environment()}
        done = subprocess.run(argv, env=environment, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def fill(self, record: ClusterRecord) -> None:
        """The jobs and reservations of a record."""
        users = sorted({job.user for job in record.jobs})
        self.manage("add", "user", ",".join(users), "account=guest")
        known = dict(self.ask(f"SELECT user, id_assoc FROM {self.cluster}_assoc_table WHERE deleted=0"))
        kinds = {
            f"{kind}/{name}" if name else kind: number
            for number, kind, name in self.ask("SELECT id, type, name FROM tres_table")
        }
        rows = [(FIRST + number, job) for number, job in enumerate(record.jobs) if job.run is not None]
        jobs = ", ".join(job_row(number, job, known[job.user], kinds) for number, job in rows)
        steps = ", ".join(step_row(number, job) for number, job in rows if job.memory_used)
        kept = [
            f"({FIRST + number}, '{','.join(sorted(span.nodes))}', '{span.name}', {span.start:.0f}, {span.end:.0f})"
            for number, span in enumerate(record.kept or ())
        ]
        self.ask(f"INSERT INTO {self.cluster}_job_table ({JOB_COLUMNS}) VALUES {jobs}")
        self.ask(f"INSERT INTO {self.cluster}_step_table ({STEP_COLUMNS}) VALUES {steps}")
        if kept:
            columns = "id_resv, nodelist, resv_name, time_start, time_end"
            self.ask(f"INSERT INTO {self.cluster}_resv_table ({columns}) VALUES {', '.join(kept)}")

    def clear(self) -> None:
        for table, column in (("job", "job_db_inx"), ("step", "job_db_inx"), ("resv", "id_resv")):
            self.ask(f"DELETE FROM {self.cluster}_{table}_table WHERE {column} >= {FIRST}")
        users = self.ask(f"SELECT user FROM {self.cluster}_assoc_table WHERE deleted=0 AND acct='guest' AND user<>''")
        if users:
            self.manage("delete", "user", "account=guest", f"name={','.join(user for (user,) in users)}")


JOB_COLUMNS = (
    "job_db_inx, id_job, id_assoc, id_user, account, job_name, `partition`, state, timelimit, nodelist, nodes_alloc,"
    " cpus_req, id_qos, time_submit, time_eligible, time_start, time_end, tres_alloc, tres_req, array_task_str,"
    " het_job_offset"
)
STEP_COLUMNS = (
    "job_db_inx, id_step, step_name, state, nodelist, nodes_alloc, task_cnt, time_start, time_end,"
    " tres_usage_in_max, tres_usage_in_min, tres_usage_in_tot, tres_usage_in_ave"
)


def job_row(number: int, job: AccountedJob, association: str, kinds: dict[str, str]) -> str:
    """A completed job. None of the texts is from outside."""
    had = {"cpu": job.cpus, "mem": (job.memory or 0) // MIB, "node": 1, "billing": job.cpus}
    typed = {f"gres/gpu:{kind}": job.gpus for kind in job.gpu_types}
    had |= {"gres/gpu": job.gpus, **typed} if job.gpus else {}
    tres = ",".join(f"{kinds[name]}={amount}" for name, amount in had.items())
    times = ", ".join(f"{moment:.0f}" for moment in (job.ready, job.ready, job.start, job.end) if moment is not None)
    (where,) = job.nodes
    return (
        f"({number}, {number}, {association}, 65534, 'guest', '{job.name}', '{job.partitions[0]}', 3,"
        f" {max(1, round((job.limit or 0) / 60))}, '{where}', 1, {job.cpus}, 1, {times}, '{tres}', '{tres}', NULL,"
        " 4294967294)"
    )


def step_row(number: int, job: AccountedJob) -> str:
    used = ", ".join([f"'1=600,2={job.memory_used}'"] * 4)
    (where,) = job.nodes
    return f"({number}, -5, 'batch', 3, '{where}', 1, 1, {job.start:.0f}, {job.end:.0f}, {used})"


@pytest.fixture
def database(fresh: Place) -> Iterator[Database]:
    """One that is left as it was."""
    made = Database(fresh)
    try:
        yield made
    finally:
        made.clear()


def findings(place: Place) -> dict[str, Any]:
    done = place.run([sys.executable, "-m", "slurm_agent_tools", "findings", "--days=7", "--json"])
    assert done.returncode == 0, done.stdout
    return json.loads(done.stdout)


@pytest.mark.system
@pytest.mark.proves("findings-name-defects")
def test_all_six_defects_of_a_bad_week_are_named_and_nothing_else_is_above_low(database: Database):
    database.fill(bad_week(end=time.time(), prefix=letters(database.place.cluster.base_port)))
    body = findings(database.place)
    told = {one["id"]: one for one in body["findings"] if one["level"] != "low"}
    assert set(told) == set(DEFECTS), body["summary"]
    assert len(told) == sum(one["level"] != "low" for one in body["findings"])
    for kind, user in DEFECTS.items():
        assert user is None or user in told[kind]["who"]
    assert "course" in told["empty-reservation"]["title"]
    assert (body["users"], body["too_few"]) == ("all", None)
    assert any("GPU use is not in this accounting" in text for text in body["not_measured"])


@pytest.mark.system
@pytest.mark.proves("findings-name-defects")
def test_of_a_healthy_week_nothing_is_above_low(database: Database):
    database.fill(week(healthy(5, load=0.3), end=time.time(), prefix=letters(database.place.cluster.base_port)))
    body = findings(database.place)
    assert body["jobs"] > 500
    assert [one["title"] for one in body["findings"] if one["level"] != "low"] == []
