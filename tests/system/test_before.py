"""What is known before a job is submitted, from jobs that really waited and really ran on the cluster."""

from __future__ import annotations

import math
import re
import statistics
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.system.faces import Place, at_terminal, call
from tests.system.test_outages import wrapper

# A shape that no other test asks for: all CPUs of the one node, so that these jobs wait for each other.
SHAPE = ["--partition=special", "--nodes=1", "--ntasks=1", "--cpus-per-task=96", "--gpus=4", "--mem=64G"]
HEAD = "#!/bin/bash\n#SBATCH --output=logs/slurm/%x-%j.out\n"
WIDE = (
    "#SBATCH --partition=special --nodes=1 --ntasks=1 --cpus-per-task=96 --gpus=4 --mem-per-gpu=16G --time=03:00:00\n"
)
UNTRIED = "--justification=it ends at once, whatever its time limit"
JOBS = 6


def raw(place: Place, minutes: int, seconds: float, *words: str) -> str:
    """A job that did not come through the guard."""
    body = f"#!/bin/bash\nsleep {seconds}\n".encode()
    return place.slurm(
        "sbatch", "--parsable", *SHAPE, f"--time={minutes}", "--output=/dev/null", *words, stdin=body
    ).partition(";")[0]  # fmt: skip


def write(place: Place, name: str, text: str) -> str:
    (place.project / name).write_text(HEAD + text)
    place.own()
    return name


def told(place: Place, ids: list[str], *columns: str) -> list[list[str]]:
    """What the accounting says of these jobs once all are over; times are seconds."""
    place.extra["SLURM_TIME_FORMAT"] = "%s"
    words = ["sacct", "-X", "-n", "-P", f"--jobs={','.join(ids)}", f"--format={','.join(('State', *columns))}"]
    for _ in range(300):
        rows = [line.split("|") for line in place.slurm(*words).splitlines()]
        if len(rows) == len(ids) and all(row[0] == "COMPLETED" for row in rows):
            break
        time.sleep(0.2)
    else:
        pytest.fail(f"not all of {ids} are over: {rows}")
    del place.extra["SLURM_TIME_FORMAT"]
    return [row[1:] for row in rows]


@dataclass(frozen=True)
class Waits:
    """Six jobs that ran one after the other, and what each waited, by our own arithmetic."""

    place: Place
    seconds: list[int]


@pytest.fixture(scope="module")
def waits(place: Place) -> Waits:
    held = raw(place, 180, 0.3, "--hold")
    ids = [raw(place, 180, 0.3) for _ in range(JOBS - 1)]
    place.slurm("scontrol", "release", held)
    ids.append(held)
    rows = told(place, ids, "Eligible", "Start")
    (place.project / "logs/slurm").mkdir(parents=True, exist_ok=True)
    return Waits(place, sorted(int(start) - int(eligible) for eligible, start in rows))


@pytest.fixture
def blocked(waits: Waits) -> Place:
    """A place where everything of that shape waits behind a job of half an hour."""
    blocker = raw(waits.place, 30, 600)
    for _ in range(600):
        if waits.place.slurm("squeue", "-h", "-j", blocker, "-o", "%T") == "RUNNING":
            break
        time.sleep(0.1)
    yield waits.place
    waits.place.slurm("scancel", f"--user={waits.place.cluster.user}")
    for _ in range(600):
        if not waits.place.slurm("squeue", "-h", f"--user={waits.place.cluster.user}", "-t", "R,PD,CG"):
            break
        time.sleep(0.1)


def ask(place: Place, script: str, *words: str) -> dict:
    assert place.cli("get_status", "--no-cache")[0] == 0
    code, reply = place.cli("submit_job", f"--script={script}", *words)
    assert code == 0, reply
    return reply


@pytest.mark.proves("waits-are-measured")
def test_what_jobs_of_this_shape_waited_stands_beside_slurms_estimate(waits: Waits):
    place, seconds = waits.place, waits.seconds
    assert seconds[-1] >= 2, "these jobs did not wait for each other"
    reply = ask(place, write(place, "wide.sh", WIDE + "true\n"), "--dry-run", UNTRIED)

    wait = reply["expected_wait"]
    assert wait["from_history_seconds"] == {
        "median": round(statistics.median(seconds)), "p95": seconds[math.ceil(0.95 * JOBS) - 1], "jobs": JOBS,
    }  # fmt: skip
    assert wait["jobs"] == JOBS
    assert wait["from_slurm_seconds"] <= 5  # the cluster is idle
    start = datetime.fromisoformat(reply["estimated_start"])
    assert abs((start - datetime.now(UTC)).total_seconds()) < 60


@pytest.mark.proves("waits-are-measured")
def test_of_a_shape_that_nobody_asked_for_nothing_is_told(waits: Waits):
    place = waits.place
    narrow = "#SBATCH --partition=special --gpus=1 --cpus-per-task=1 --mem-per-gpu=1G --time=1\ntrue\n"
    wait = ask(place, write(place, "narrow.sh", narrow), "--dry-run")["expected_wait"]

    assert wait["from_history_seconds"] is None
    assert wait["jobs"] < 5
    assert wait["note"].startswith("No estimate from earlier jobs: ")
    assert wait["note"].endswith(", 5 are needed.")


@pytest.mark.proves("budget-is-compared", "run-id-goes-through")
def test_behind_a_long_job_the_start_is_late_and_a_short_budget_does_not_fit(blocked: Place):
    script = write(blocked, "behind.sh", WIDE + "true # behind\n")
    late = ask(blocked, script, UNTRIED, "--dry-run", "--time-budget=3600s")
    assert 1500 <= late["expected_wait"]["from_slurm_seconds"] <= 1800
    assert (late["budget"]["fits"], late["budget"]["budget_seconds"]) == (False, 3600)
    assert late["budget"]["run_seconds"] == 3 * 3600  # its limit: it never ran
    assert "Slurm's estimate" in late["budget"]["why"]
    early = ask(blocked, script, UNTRIED, "--dry-run", "--time-budget=05:00:00")["budget"]
    assert early["fits"] is True, early

    run_id = "mlflow/12:a@b"
    reply = ask(blocked, script, UNTRIED, "--priority=low", f"--run-id={run_id}", "--time-budget=1-00:00:00")
    assert (reply["status"], reply["run_id"], reply["budget"]["fits"]) == ("submitted", run_id, True)
    assert "--nice=100" in {pin["option"] for pin in reply["pinned"]}
    assert f"Job {reply['job_id']} (" in reply["summary"]
    assert " is submitted to special: " in reply["summary"]
    assert re.search(r" by the time limits of the jobs that run now it starts within 00:\d\d:", reply["summary"])
    assert "--nice=100" in {pin["option"] for pin in reply["decision"]["pinned"]}
    shown = blocked.slurm("scontrol", "show", "job", reply["job_id"])
    assert " Nice=100 " in shown
    assert f"Comment={reply['token']}:{run_id}" in shown
    assert datetime.fromisoformat(reply["estimated_start"]) > datetime.now(UTC)
    status = blocked.cli("get_status", "--no-cache")[1]
    assert status["queue"]["depth"] >= 1
    assert "jobs waited" in status["queue"]["estimated_wait"]
    blocked.slurm("scancel", "--partition=special", "--state=RUNNING", f"--user={blocked.cluster.user}")
    ended = blocked.cli("wait_for_job", f"--job-id={reply['job_id']}", "--timeout=60")[1]
    assert ended["job"]["state"] == "COMPLETED"
    saved = blocked.cli("save_result", "--name=run", "--status=success", f"--job-id={reply['job_id']}")[1]
    assert saved["result"]["run_id"] == run_id
    found = blocked.run([sys.executable, "-m", "slurm_agent_tools", "history", "--tag", run_id, "--json"])
    assert found.returncode == 0, found.stderr
    assert f'"run_id": "{run_id}"' in found.stdout.decode()


@pytest.mark.proves("priority-is-the-policys")
def test_a_high_priority_is_a_qos_that_the_policy_lists_and_refused_without_one(fresh: Place):
    script = write(fresh, "urgent.sh", "#SBATCH --partition=cpu --mem=1G --time=1\ntrue # urgent\n")
    fresh.cli("get_status", "--no-cache")
    code, reply = fresh.cli("submit_job", f"--script={script}", "--priority=high")
    assert (code, reply["error"]["code"]) == (2, "invalid_input")
    assert reply["error"]["message"].startswith("priority: 'high' is not offered by this policy")

    site: Path = fresh.project.parent / "site.yaml"
    site.write_text("priority: {low: {nice: 250}, high: {qos: [high]}}\n")
    fresh.own()
    fresh.extra["SLURM_AGENT_POLICY"] = str(site)
    code, screen = at_terminal(fresh, ["policy", "trust", str(site)], "trust")
    assert code == 0, screen
    high = ask(fresh, script, "--priority=high")
    low = ask(fresh, write(fresh, "idle.sh", "#SBATCH -p cpu --mem=1G --time=1\ntrue # idle\n"), "--priority=low")
    assert " Nice=0 Account=lab QOS=high" in fresh.slurm("scontrol", "show", "job", high["job_id"])
    assert " Nice=250 Account=lab QOS=normal" in fresh.slurm("scontrol", "show", "job", low["job_id"])
    assert [pin["option"] for pin in high["pinned"]] == ["--qos=high"]


@pytest.mark.proves("run-id-goes-through", "unconfirmed-is-found-again")
def test_a_submission_with_a_run_id_whose_answer_was_lost_is_found_by_its_token(fresh: Place, monkeypatch):
    lose = (
        'for word; do [ "$word" = --test-only ] && exec $REAL/sbatch "$@"; done\n'
        '$REAL/sbatch "$@" >/dev/null\n'
        'echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2; exit 1'
    )
    script = write(fresh, "lost.sh", "#SBATCH --partition=cpu --mem=1G --time=1\nsleep 1 # lost\n")
    assert fresh.cli("get_status", "--no-cache")[0] == 0
    monkeypatch.setitem(fresh.extra, "SLURM_AGENT_SLURM__BIN_DIR", wrapper(fresh, lose))
    words = [f"--script={script}", "--idempotency-key=lost", "--run-id=exp.7"]
    first = fresh.cli("submit_job", *words)[1]
    del fresh.extra["SLURM_AGENT_SLURM__BIN_DIR"]
    again = fresh.cli("submit_job", *words)[1]

    assert first["status"] in {"submitted", "unconfirmed"}, first
    assert (again["status"], again["token"]) == ("submitted", first["token"])
    assert fresh.slurm("squeue", "-h", "-t", "all", "-n", "lost.sh", "-o", "%A").split() == [again["job_id"]]


@pytest.mark.proves("sizes-come-from-runs")
def test_what_runs_used_is_set_against_the_request_and_into_the_next_script(fresh: Place):
    """Six tasks of an array are six runs."""
    text = "#SBATCH --partition=cpu --cpus-per-task=4 --mem=4G --time=01:00:00\nsleep 1\n"
    first = ask(fresh, write(fresh, "sized.sh", text), "--job-name=sized", "--array=0-5%4")
    assert first["sizing"] is None
    done = fresh.cli("wait_for_job", f"--job-id={first['job_id']}", "--timeout=60")[1]
    assert done["status"] == "finished"
    told(fresh, [f"{first['job_id']}_{task}" for task in range(6)], "JobID")

    reply = ask(fresh, "sized.sh", "--job-name=sized", "--dry-run", "--time-budget=60")
    sizing = reply["sizing"]
    assert sizing["runs"] == 6
    assert sizing["time"]["requested"] == 3600
    assert sizing["time"]["most_used"] <= 10
    assert sizing["time"]["over_request_percent"] > 1000
    assert sizing["recommended"]["time_limit_seconds"] < 600
    assert any(warning.startswith("time limit: 01:00:00 is") for warning in sizing["warnings"]), sizing
    assert reply["budget"]["run_seconds"] <= 10
    assert reply["budget"]["fits"] is True

    written = fresh.cli("generate_script", "--name=sized", "--command=sleep 1", "--gpus=0")[1]
    rests = {reason.split(":")[0] for reason in written["reasons"] if "6 runs of this name" in reason}
    assert "Time" in rests, written["reasons"]
    assert "#SBATCH --time=00:01:00" in written["script"]


@pytest.mark.proves("waits-are-measured")
async def test_get_status_asks_the_accounting_only_where_it_is_cheap_or_wanted(waits: Waits):
    place = waits.place
    async with place.client() as client:
        idle = await call(client, "get_status", detailed=True)
        assert idle["queue"]["waits"] is None
        assert "sacct" not in idle["slurm_calls"]
        named = await call(client, "get_status", sections=["queue"])
        assert named["queue"]["waits"]["partitions"]["special"]["jobs"] >= JOBS
        assert any("jobs waited" in ground for ground in named["queue"]["grounds"])
        kept = await call(client, "get_status", detailed=True)
        assert kept["queue"]["waits"] == named["queue"]["waits"]
        assert kept["slurm_calls"]["sacct"] <= 2  # both windows, once
