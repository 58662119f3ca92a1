"""The optional limits on the real cluster: they hold across processes, and a person can stop all of it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.system.faces import Place, at_terminal, call

HEAD = "#!/bin/bash\n#SBATCH --output=logs/slurm/%x-%j.out\n#SBATCH --partition=cpu\n"


def policy(place: Place, text: str) -> None:
    (place.project / "policies").mkdir(exist_ok=True)
    (place.project / "policies/project.yaml").write_text(text)
    place.own()


def submit(place: Place, name: str, *lines: str) -> tuple[int, dict]:
    (place.project / f"{name}.sh").write_text(HEAD + "\n".join([*lines, f"sleep 30 # {name}", ""]))
    place.own()
    place.cli("get_status")
    return place.cli("submit_job", f"--script={name}.sh")


def budget(reply: dict) -> tuple[str, str]:
    rule = next(rule for rule in reply["decision"]["rules"] if rule["id"] == "budget")
    return rule["outcome"], rule["message"]


def queued(place: Place) -> int:
    return len(place.slurm("squeue", "-h", "-t", "pending,running", "-o", "%j").splitlines())


@pytest.mark.proves("optional-limits-hold")
def test_submissions_of_a_day_hold_for_six_callers_at_once(fresh: Place):
    policy(fresh, "limits: {max_daily_submissions: 2}")
    names = [f"job{number}" for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        replies = [reply for _, reply in pool.map(lambda name: submit(fresh, name), names)]
    assert sorted(reply["status"] for reply in replies) == ["blocked"] * 4 + ["submitted"] * 2
    for reply in replies:
        if reply["status"] == "blocked":
            assert budget(reply)[0] == "deny"
            assert "2 jobs were submitted in the last 24 hours, at most 2" in budget(reply)[1]
    assert queued(fresh) == 2


@pytest.mark.proves("optional-limits-hold")
def test_pending_jobs_are_counted_apart_from_running_ones(fresh: Place):
    policy(fresh, "limits: {max_pending_jobs: 1}")
    begin = "#SBATCH --begin=now+1hour"
    assert submit(fresh, "later", begin)[1]["status"] == "submitted"
    code, reply = submit(fresh, "another", begin)
    assert (code, budget(reply)[0]) == (3, "deny")
    assert "2 pending jobs with this one, at most 1" in budget(reply)[1]


@pytest.mark.proves("optional-limits-hold")
def test_the_hours_of_a_day_are_those_asked_for_and_after_the_end_those_used(fresh: Place):
    policy(fresh, "limits: {cpu_hours_per_day: 10.0}")
    code, reply = submit(fresh, "long", "#SBATCH --time=08:00:00")
    assert (code, reply["status"]) == (0, "submitted"), reply
    code, again = submit(fresh, "longer", "#SBATCH --time=08:00:00")
    assert (code, budget(again)[0]) == (3, "approve")
    fresh.slurm("scancel", reply["job_id"])
    waited = fresh.cli("wait_for_job", f"--job-id={reply['job_id']}", "--timeout-seconds=30")
    assert waited[1]["status"] == "finished"
    assert submit(fresh, "longer", "#SBATCH --time=08:00:00")[1]["status"] == "submitted"


@pytest.mark.proves("optional-limits-hold")
async def test_a_person_stops_all_of_it_also_for_a_server_that_runs(fresh: Place):
    (fresh.project / "train.sh").write_text(f"{HEAD}sleep 30\n")
    fresh.own()
    async with fresh.client() as client:
        await call(client, "get_status")
        assert (await call(client, "submit_job", script="train.sh", dry_run=True))["status"] == "dry_run"
        policy(fresh, "submissions: off\n")
        reply = await call(client, "submit_job", script="train.sh")
        assert (reply["status"], reply["human_action_required"]) == ("blocked", False)
        assert "switched all submissions off" in reply["reason"]
        status = await call(client, "get_status")
        assert "policies/project.yaml" in status["policy"]["source"]
        policy(fresh, "submissions: [\n")
        broken = await call(client, "submit_job", script="train.sh")
        assert broken["error"]["code"] == "invalid_config", "a policy that cannot be read submits nothing"
        policy(fresh, "submissions: on\n")
        assert (await call(client, "submit_job", script="train.sh"))["status"] == "submitted"


@pytest.mark.proves("only-the-base-loosens")
def test_a_trusted_file_loosens_until_it_changes_and_settings_never_do(fresh: Place):
    loose: Path = fresh.project.parent / "loose.yaml"
    limits = "limits: {time_limit: {free: '7-00:00:00', justify: '7-00:00:00'}}\n"
    loose.write_text(f"{limits}smoke_first: {{cpu_hours: null}}\n")
    fresh.own()
    week = "#SBATCH --time=6-00:00:00"
    fresh.extra["SLURM_AGENT_POLICY"] = str(loose)
    assert submit(fresh, "week", week)[1]["blocker"] == "approval"
    code, screen = at_terminal(fresh, ["policy", "trust", str(loose)], "trust")
    assert code == 0, screen
    assert "limits.time_limit: 1-00:00:00 free" in screen
    code, reply = submit(fresh, "week", week)
    assert (code, reply["status"]) == (0, "submitted"), reply
    assert f"trusted {loose}" in reply["decision"]["policy"]["layers"]
    loose.write_text(loose.read_text() + "# and more\n")
    assert submit(fresh, "weeks", week)[1]["blocker"] == "approval"


@pytest.mark.proves("only-the-base-loosens")
def test_another_state_folder_does_not_forget_a_failure(fresh: Place):
    (fresh.project / "fails.sh").write_text(f"{HEAD}exit 3\n")
    fresh.own()
    fresh.cli("get_status")
    _, reply = fresh.cli("submit_job", "--script=fails.sh")
    fresh.cli("wait_for_job", f"--job-id={reply['job_id']}", "--timeout-seconds=30")
    fresh.extra |= {"SLURM_AGENT_STATE_DIR": str(fresh.project.parent / "elsewhere")}
    fresh.cli("get_status")
    code, again = fresh.cli("submit_job", "--script=fails.sh")
    assert (code, again["status"]) == (3, "blocked")
    assert {rule["id"] for rule in again["decision"]["rules"] if rule["outcome"] == "deny"} == {"auto-retry"}


@pytest.mark.proves("cap-holds-across-machines")
def test_the_cap_holds_for_callers_whose_locks_do_not_know_each_other(fresh: Place):
    """As on several login nodes: each caller has a home, a lock and a ledger of its own, and all are one Slurm user."""
    places = [fresh, *(fresh.another() for _ in range(7))]
    with ThreadPoolExecutor(8) as pool:
        replies = [reply for _, reply in pool.map(lambda at: submit(at, f"job{places.index(at)}"), places)]
    sent = [reply["job_id"] for reply in replies if reply["status"] == "submitted"]
    assert len(sent) == 4, replies
    shown = fresh.slurm("squeue", "-h", "-t", "pending,running", "-o", "%A").split()
    assert sorted(shown) == sorted(sent)
    for reply in replies:
        if reply["status"] == "blocked":
            told = reply["reason"]
            assert "concurrent" in told, reply
            assert "4" in told
