"""Figures of real jobs: equal to what seff's arithmetic makes of sacct, done here anew, and near to what the jobs did.

All jobs run at once; they are written so that memory is held through several samples (one every 2 s).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field, replace
from datetime import datetime

import pytest
from tests.system.faces import Place, call
from tests.system.test_fates import running
from tests.unit.insights.test_gpus import comment
from tests.unit.services.metrics import prometheus, vector

MIB = 2**20
# work.py MIB CPU_SECONDS SECONDS: holds memory, burns CPU time, then sleeps until its seconds are over.
WORK = """\
import sys, time
mib, burn, seconds = map(float, sys.argv[1:])
start = time.monotonic()
held = bytearray(int(mib * 2**20))
for place in range(0, len(held), 4096):
    held[place] = 1
while time.process_time() < burn:
    pass
while time.monotonic() - start < seconds:
    time.sleep(0.05)
"""
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}


@dataclass(frozen=True)
class Known:
    """A job, what it is known to use at least, and how much of it all tasks together hold."""

    name: str
    options: tuple[str, ...]
    script: str
    cpu_seconds: float
    peak_mib: float
    tasks: int = 0


def jobs(work: str) -> list[Known]:
    python = f"{sys.executable} {work}"
    return [
        Known("single", ("-n1", "-c2", "--mem=400M"), f"{python} 120 2 7", 2, 120),
        Known("array", ("--array=0-2", "--mem=300M"), f"{python} $((SLURM_ARRAY_TASK_ID*40+60)) 1 7", 3, 140, tasks=3),
        Known("nodes", ("-N2", "--ntasks-per-node=2", "--mem=500M"), f"srun {python} 60 0.5 7", 2, 240),
        Known(
            "steps", ("-n2", "--mem-per-cpu=200M"),
            f"srun --exact -n1 --mem=150M {python} 80 1 7 &\nsrun --exact -n1 --mem=150M {python} 60 1 7 &\nwait\n"
            f"srun -n2 {python} 70 0.3 5", 2.6, 140,
        ),
        Known(
            "het", ("-n1", "--mem=200M", ":", "-n2", "--mem=300M"), f"srun --het-group=0,1 {python} 60 0.3 6", 0.9, 120,
        ),
        Known("short", ("-n1",), "true", 0, 0),
        Known("gpus", ("-pgpu", "--gpus=a100:2", "--mem=200M"), f"{python} 60 0.5 5", 0.5, 60),
        Known("noted", ("-pgpu", "--gpus=a100:2", "--mem=200M"), "sleep 6", 0, 0),
    ]  # fmt: skip


@dataclass
class Run:
    """The jobs of the module by name: what is known of each, and its id."""

    place: Place
    known: dict[str, Known]
    ids: dict[str, str]
    told: dict[str, dict] = field(default_factory=dict)

    def rows(self, name: str) -> list[dict[str, str]]:
        """sacct's own rows, asked by this test."""
        columns = [
            "JobID",
            "State",
            "ElapsedRaw",
            "AllocTRES",
            "TotalCPU",
            "TRESUsageInTot",
            "TRESUsageInMin",
            "MaxRSS",
            "NTasks",
        ]
        told = self.place.slurm("sacct", "-nP", "-j", self.ids[name], "-o", ",".join(columns))
        return [dict(zip(columns, line.split("|"), strict=True)) for line in told.splitlines()]

    def report(self, name: str) -> dict:
        """The report over the command line, asked for once."""
        if name not in self.told:
            done = self.place.run([sys.executable, "-m", "slurm_agent_tools", "report", self.ids[name], "--json"])
            assert done.returncode == 0, done.stderr
            self.told[name] = json.loads(done.stdout)["report"]
        return self.told[name]

    def text(self, name: str) -> subprocess.CompletedProcess[bytes]:
        return self.place.run([sys.executable, "-m", "slurm_agent_tools", "report", self.ids[name]])


@pytest.fixture(scope="module")
def run(place: Place) -> Run:
    work = place.project / "work.py"
    work.write_text(WORK)
    (place.project / "slurm-agent.toml").write_text(
        '[rates]\ncurrency = "EUR"\ncpu_hour = 3.6\n[rates.gpu_hour]\na100 = 36.0\n'
    )
    place.own()
    known = {item.name: item for item in jobs(str(work))}
    ids = {name: submit(place, item) for name, item in known.items()}
    note(place, ids["noted"])
    end = time.monotonic() + 90
    while set(place.slurm("squeue", "--me", "-h", "-o", "%F").split()) & set(ids.values()):
        assert time.monotonic() < end, "the jobs did not end"
        time.sleep(0.3)
    made = Run(place, known, ids)
    before: dict[str, list[dict[str, str]]] = {}  # a step may be told after the end of its job
    while (told := {name: made.rows(name) for name in known}) != before or any(map(running_still, told.values())):
        assert time.monotonic() < end + 30, "the accounting was not told the end"
        before = told
        time.sleep(1.5)
    for name, rows in told.items():
        log = place.project / f"{name}.out"
        assert {row["State"] for row in rows} == {"COMPLETED"}, (rows, log.read_text() if log.exists() else "")
    return made


def running_still(rows: list[dict[str, str]]) -> bool:
    return any("RUNNING" in row["State"] for row in rows)


def note(place: Place, job_id: str) -> None:
    """What jobstats leaves in a job, by scontrol: sacctmgr of 22.05 writes it in small letters. And a pause of 2 s."""
    running(place, job_id)
    summary = f"AdminComment={comment(90.0, 60.0, memory=1024 * MIB)}"
    for words in (["update", f"jobid={job_id}", summary], ["suspend", job_id], ["resume", job_id]):
        if words[0] == "resume":
            time.sleep(2)
        subprocess.run(["scontrol", *words], env=place.environment(), check=True, capture_output=True)


def submit(place: Place, known: Known) -> str:
    log = f"-o{place.project}/{known.name}.out"
    words = ["sbatch", "--parsable", "-t5", log, "--open-mode=append", "-J", known.name, *known.options]
    return place.slurm(*words, stdin=f"#!/bin/bash\n{known.script}\n".encode())


# --- seff's arithmetic, apart from the product's -------------------------------------------------------------------


def seconds(text: str) -> float:
    days, _, clock = text.rpartition("-")
    total = 0.0
    for part in clock.split(":"):
        total = total * 60 + float(part)
    return total + int(days or 0) * 86400


def amount(tres: str, name: str) -> float:
    found = re.search(rf"(?:^|,){name}=([\d.]+)([KMG]?)", tres)
    return float(found[1]) * _UNITS[found[2]] if found else 0.0


def memory(step: dict[str, str]) -> float:
    """The sum of all tasks; where a task was never sampled (its least is 0) the largest times their number."""
    if amount(step["TRESUsageInMin"], "mem") == 0:
        return amount(f"mem={step['MaxRSS']}", "mem") * int(step["NTasks"])
    return amount(step["TRESUsageInTot"], "mem")


def seff(rows: list[dict[str, str]]) -> dict[str, float]:
    """CPU: steps' TotalCPU over CPUs x elapsed, of all tasks. Memory: the largest step of the fullest task."""
    cpu = held = 0.0
    fullest = (0.0, 0.0, 0.0)
    for job in (row for row in rows if "." not in row["JobID"]):
        steps = [row for row in rows if row["JobID"].startswith(f"{job['JobID']}.")]
        cpu += sum(seconds(step["TotalCPU"]) for step in steps)
        held += amount(job["AllocTRES"], "cpu") * int(job["ElapsedRaw"])
        peak, given = max(map(memory, steps)), amount(job["AllocTRES"], "mem")
        fullest = max(fullest, (peak / given, peak, given))
    return {"cpu": cpu, "held": held, "peak": fullest[1], "given": fullest[2]}


@pytest.mark.proves("efficiency-is-seff")
@pytest.mark.parametrize("name", ["single", "array", "nodes", "steps", "het", "gpus"])
def test_the_figures_are_those_of_seffs_arithmetic_and_near_to_what_the_job_did(run, name):
    wanted, found, known = seff(run.rows(name)), run.report(name), run.known[name]
    used, got = found["usage"], found["efficiency"]

    assert used["cpu_seconds"] == pytest.approx(wanted["cpu"], abs=0.002)
    assert used["cpu_allocated_seconds"] == wanted["held"]
    assert (used["memory_peak_bytes"], used["memory_allocated_bytes"]) == (wanted["peak"], wanted["given"])
    assert got["cpu"] == pytest.approx(wanted["cpu"] / wanted["held"], abs=1e-4)
    assert got["memory"] == pytest.approx(wanted["peak"] / wanted["given"], abs=1e-4)

    assert known.cpu_seconds <= used["cpu_seconds"] <= known.cpu_seconds * 1.5 + 1.5
    assert known.peak_mib * MIB <= used["memory_peak_bytes"] <= (known.peak_mib + 12 * 4) * MIB
    assert (got["gpu"], found["gpu"]["utilization"]) == (None, None)


def test_time_in_which_a_job_was_suspended_is_no_time(run):
    rows, found = run.rows("noted"), run.report("noted")
    job = next(row for row in rows if "." not in row["JobID"])
    times = run.place.slurm("sacct", "-nXP", "-j", run.ids["noted"], "-o", "Start,End,Suspended").split("|")
    start, end = (datetime.fromisoformat(text) for text in times[:2])
    assert seconds(times[2]) >= 1
    assert found["run_seconds"] == int(job["ElapsedRaw"]) == (end - start).total_seconds() - seconds(times[2])
    assert found["usage"]["cpu_allocated_seconds"] == seff(rows)["held"]


def test_steps_are_told_one_by_one(run):
    steps = {step["step_id"].partition(".")[2]: step for step in run.report("steps")["steps"]}
    assert set(steps) == {"batch", "0", "1", "2"}
    assert steps["2"]["tasks"] == 2
    assert (steps["0"]["cpus"], steps["0"]["memory_allocated_bytes"]) == (1, 150 * MIB)
    for name, cpu in (("0", 1.0), ("1", 1.0), ("2", 0.6)):
        assert cpu <= steps[name]["cpu_seconds"] <= cpu * 1.5 + 1
        assert 0 < steps[name]["cpu_efficiency"] <= 1
        assert steps[name]["memory_efficiency"] == round(
            steps[name]["memory_bytes"] / steps[name]["memory_allocated_bytes"], 4
        )
    array = run.report("array")["steps"]
    assert sorted(step["step_id"] for step in array) == [f"{run.ids['array']}_{task}.batch" for task in range(3)]


def test_a_step_shorter_than_the_samples_has_no_memory_or_the_kernels_peak_and_no_gpu_figure(run):
    found, (row,) = run.report("short"), [row for row in run.rows("short") if row["JobID"].endswith(".batch")]
    if row["MaxRSS"] == "0":  # later versions tell the peak that the kernel kept
        assert (found["max_rss_bytes"], found["efficiency"]["memory"]) == (None, None)
        assert "Memory efficiency: not measured" in found["text"]
    else:
        assert found["max_rss_bytes"] == amount(f"mem={row['MaxRSS']}", "mem")
    assert "GPU efficiency: not measured" in found["text"]


def test_steps_at_the_same_time_are_proposed_the_memory_of_both(run):
    found = run.report("steps")
    assert found["recommendation"]["verdict"] == "ADJUST"
    assert found["usage"]["memory_node_bytes"] >= 140 * MIB
    memory = next(change for change in found["recommendation"]["changes"] if change["what"] == "memory")
    asked = int(re.search(r"--mem=(\d+)M", memory["directive"])[1])
    assert 1.2 * 140 <= asked < 400


@pytest.mark.proves("report-sections")
def test_the_report_is_markdown_and_has_its_price(run):
    done = run.text("gpus")
    text, found = done.stdout.decode(), run.report("gpus")
    titles = [line[3:] for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "JOB SUBMISSION SUMMARY", "QUEUE ANALYSIS", "MONITORING", "COMPLETION METRICS", "ERROR HANDLING",
    ]  # fmt: skip
    ran = int(next(row["ElapsedRaw"] for row in run.rows("gpus") if "." not in row["JobID"]))
    assert found["cost"]["gpu_hours_by_type"] == {"a100": round(2 * ran / 3600, 4)}
    assert found["cost"]["amount"] == pytest.approx(2 * ran * 0.01 + ran * 0.001, abs=1e-3)
    assert f"Estimated cost: {found['cost']['amount']:.2f} EUR" in text
    assert "Retry? no" in text
    assert re.search(r"Queue depth now: \d+ pending jobs", text)
    assert re.search(r"Cluster utilization now: \d+ %", text)


@pytest.mark.proves("report-on-both")
async def test_wait_for_job_tells_the_same_report_over_mcp(run):
    async with run.place.client() as client:
        for name in ("array", "nodes"):
            reply = await call(client, "wait_for_job", job_id=run.ids[name], timeout_seconds=5)
            told, printed = reply["report"], run.report(name)
            assert reply["status"] == "finished"
            for name_of in ("efficiency", "usage", "steps", "cost", "recommendation", "queue_seconds", "run_seconds"):
                assert told[name_of] == printed[name_of], name_of


def test_a_job_that_is_not_over_has_no_report_yet_and_an_unknown_one_is_an_error(run):
    held = run.place.slurm("sbatch", "--parsable", "--hold", "-o/dev/null", stdin=b"#!/bin/bash\ntrue\n")
    try:
        done = run.place.run([sys.executable, "-m", "slurm_agent_tools", "report", held, "--json"])
        assert (done.returncode, json.loads(done.stdout)["status"], json.loads(done.stdout)["report"]) == (
            4,
            "pending",
            None,
        )
    finally:
        run.place.slurm("scancel", held)
    done = run.place.run([sys.executable, "-m", "slurm_agent_tools", "report", "999999", "--json"])
    assert (done.returncode, json.loads(done.stdout)["error"]["code"]) == (2, "unknown_job")


async def test_gpu_figures_come_from_the_summary_that_jobstats_left_in_the_accounting(run):
    found = run.report("noted")
    assert found["gpu"] == {
        "utilization": 0.75, "memory_bytes": 2048 * MIB, "memory": "2G", "source": "jobstats", "note": None,
    }  # fmt: skip
    assert "GPU efficiency: 75 %, 2G of its memory (by jobstats)" in found["text"]
    async with run.place.client() as client:
        reply = await call(client, "wait_for_job", job_id=run.ids["noted"], timeout_seconds=5)
    assert reply["report"]["gpu"] == found["gpu"]


@pytest.mark.parametrize(
    ("body", "told"),
    [(vector("87.5"), "88 % (by prometheus)"), (vector(), "not measured (Prometheus: it knows nothing of this job)")],
)
def test_gpu_figures_come_from_the_prometheus_of_the_settings(run, body, told):
    job_id = run.ids["gpus"]
    with prometheus(body) as (url, seen):
        asking = replace(run.place, extra={"SLURM_AGENT_GPU_METRICS__URL": url})
        done = asking.run([sys.executable, "-m", "slurm_agent_tools", "report", job_id])
    assert f"- GPU efficiency: {told}\n" in done.stdout.decode()
    assert len(seen) == 1
    assert f"hpc_job%3D~%22{job_id}%22" in seen[0].replace("=~", "%3D~").replace('"', "%22")
