"""The site's service on a real cluster: installed by an administrator, used by two users, removed without a trace."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path

from tests.system.faces import Place
from tests.system.site_service import AGENTS, SiteOnCluster, wait

GUIDE = (Path(__file__).parents[2] / "docs/guides/administrators.md").read_text(encoding="utf-8")
SMALL = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --mem=100M\n#SBATCH --time=5\n#SBATCH --output=out.txt\n{more}echo ran\n"
AGENT = SMALL.format(more=f"#SBATCH --account={AGENTS}\n")


def test_check_says_that_everything_stands_as_it_should(site_service: SiteOnCluster):
    done = site_service.site("check", "--json")
    body = json.loads(done.stdout)
    others = [one for one in body["findings"] if one["outcome"] != "ok" and one["about"] != "who may approve"]
    assert [(one["about"], one["outcome"]) for one in others] == [("page", "note")]  # here no web server has a group
    assert "page_group" in others[0]["mend"]
    assert (done.returncode, body["status"]) == (0, "ok")
    shown = [line for line in GUIDE.splitlines() if line.startswith("  ok  ")]
    told = {(one["about"], one["says"]) for one in body["findings"]}
    assert {tuple(re.split(r"\s{2,}", line.strip())[1:]) for line in shown} <= told
    assert len(shown) == 2


def test_a_job_of_an_agents_account_runs_by_the_services_ticket_and_is_refused_without(site_service: SiteOnCluster):
    place = site_service.another()
    (place.project / "job.sh").write_text(AGENT)
    place.own()
    bare = place.run(["sbatch", "job.sh"])
    assert bare.returncode != 0
    assert b"need a ticket; ask through slurm-agent-tools connect" in bare.stderr

    place.cli("get_status", "--no-cache")
    code, reply = place.cli("submit_job", "--script=job.sh")
    assert (code, reply["status"]) == (0, "submitted"), reply
    code, ended = place.cli("wait_for_job", "--job-id", reply["job_id"], "--timeout-seconds=60")
    assert (code, ended["status"], ended["job"]["state"]) == (0, "finished", "COMPLETED"), ended
    assert (place.project / "out.txt").read_text() == "ran\n"
    shown = place.slurm("scontrol", "show", "job", reply["job_id"])
    assert "ticket=" not in shown
    assert re.search(r"AdminComment=[0-9a-f]{32}:uid=", shown)


def test_a_job_behind_all_tasks_of_a_job_that_is_no_array_counts_by_itself(site_service: SiteOnCluster):
    """Slurm lifts such a dependency at once, so that it would run beside as many as may."""
    place = site_service.another()
    (place.project / "job.sh").write_text(AGENT.replace("echo ran", "sleep 300"))
    place.own()
    place.cli("get_status", "--no-cache")
    last = [let_in(place, f"--job-name=one-{number}") for number in range(3)][-1]

    for word in ("_*", "_0"):
        _, reply = place.cli("submit_job", "--script=job.sh", f"--dependency=afterany:{last}{word}", "--job-name=more")
        told = {one["id"]: one["outcome"] for one in reply["decision"]["rules"]}
        assert (reply["status"], told["concurrent-jobs"], told["dependency"]) == ("blocked", "deny", "deny"), reply
        words = ("--partition=cpu", "--mem=100M", "--time=1", f"--dependency=afterany:{last}{word}")
        bare = place.slurm("sbatch", "--parsable", *words, "--wrap=sleep 60")
        wait(partial(runs, place, bare), "a job that Slurm lets run beside the one that it names")
        assert runs(place, last)
        place.slurm("scancel", bare)

    behind = let_in(place, f"--dependency=afterany:{last}", "--job-name=more")
    assert f"Dependency=afterany:{last}(unfulfilled)" in place.slurm("scontrol", "show", "job", behind)
    site_service.clear()


def let_in(place: Place, *words: str) -> str:
    """The job's number. What other tests left in the queue, and tickets that they did not use, count for a while."""
    found: list[str] = []

    def asked() -> bool:
        _, reply = place.cli("submit_job", "--script=job.sh", *words)
        assert reply["status"] == "submitted" or reply["reason"].startswith("concurrent-jobs"), reply
        found.append(reply.get("job_id") or "")
        return reply["status"] == "submitted"

    wait(asked, "a job that is let in")
    return found[-1]


def runs(place: Place, job: str) -> bool:
    return place.slurm("squeue", "--noheader", f"--jobs={job}", "--format=%T %E") == "RUNNING (null)"
