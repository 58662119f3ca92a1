"""What a shell and a job of an ordinary user tried against the site's service and its controller, and what came of it.

No try may bring a job beyond the free limits, or any job of an agents' account, without a ticket for just that job.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.system.boundary_tries import CALL, CLOSED, HOSTILE
from tests.system.faces import Place
from tests.system.site_service import AGENTS, SiteOnCluster, wait

pytestmark = pytest.mark.proves("boundary-holds")

SCRIPT = (
    "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --mem=100M\n#SBATCH --time=5\n#SBATCH --output=/dev/null\nsleep 60\n"
)
LARGE = SCRIPT.replace("100M", "3G")
HUGE = SCRIPT.replace("100M", "5G")
ASK = "ask through slurm-agent-tools connect"


def project(site: SiteOnCluster, script: str = SCRIPT, user: str | None = None) -> Place:
    """A fresh project with the script, of the user or of another one."""
    place = site.another()
    (place.project / "job.sh").write_text(script)
    place.own()
    if user is not None:
        place.project.parent.chmod(0o755)
        place.project.chmod(0o755)
    return place


def ask(
    site: SiteOnCluster, place: Place, call: str = "judge", user: str | None = None, **words: Any
) -> dict[str, Any]:
    """One call of the user's own making."""
    usual = {"arguments": {"script": "job.sh"}, "caller": ["shell", "1", "cli"], "analysed": [],
             "status_read": datetime.now(UTC).isoformat(), "dry": False, "facts": True}  # fmt: skip
    told = json.dumps({"call": call, **(usual if call == "judge" else {}), **words})
    done = site.as_user(CALL, str(site.socket), str(place.project), told, user=user)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def ticket(site: SiteOnCluster, place: Place, **words: Any) -> str:
    """The comment with which an allowed request is sent."""
    answer = ask(site, place, **words)
    assert answer.get("word"), answer
    return f"{answer['token']} {answer['word']}"


def sbatch(place: Place, *words: str, script: str = SCRIPT, user: str | None = None) -> tuple[bool, str]:
    argv = place.cluster.as_user(["sbatch", "-H", *words], user)
    return sent(place, argv, script)


def sent(place: Place, argv: list[str], script: str) -> tuple[bool, str]:
    done = subprocess.run(
        argv, input=script.encode(), capture_output=True, cwd="/tmp", env=place.environment(), timeout=60
    )
    return done.returncode == 0, done.stderr.decode()


@pytest.fixture
def site(site_service: SiteOnCluster) -> SiteOnCluster:
    """With an empty queue, and without a ticket that nobody spent."""
    site_service.clear()
    for path in (site_service.folder / "tickets").glob("?" * 32):
        path.unlink()
    wait(lambda: not site_service.administrator("squeue", "-h"), "an empty queue")
    return site_service


# --- What lies with the service ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["a shell", "a job"])
def test_nothing_that_the_service_has_is_open_to_the_user(site: SiteOnCluster, by: str):
    assert site.process is not None
    place = project(site)
    words = [str(site.folder), str(site.process.pid), str(place.cluster.conf.parent)]
    if by == "a shell":
        told = json.loads(site.as_user(CLOSED, *words).stdout)
    else:
        (place.project / "closed.py").write_text(CLOSED)
        place.own()
        line = " ".join([sys.executable, str(place.project / "closed.py"), *words])
        place.slurm("sbatch", "--wait", "-pcpu", "--mem=100M", "-t5", f"-o{place.project}/told", f"--wrap={line}")
        told = json.loads((place.project / "told").read_text())
    assert {
        name: said for name, said in told.items() if said not in {"Permission denied", "Operation not permitted"}
    } == {}
    assert site.process.poll() is None
    assert site.site("check").returncode == 0


@pytest.mark.parametrize("leads", ["state", "state/users", "/etc/shadow", "tickets", "/dev/zero", "/proc/self/environ"])
def test_a_link_to_what_is_not_the_users_shows_nothing_of_it(site: SiteOnCluster, leads: str):
    place = project(site)
    (place.project / "job.sh").unlink()
    (place.project / "job.sh").symlink_to(leads if leads.startswith("/") else site.folder / leads)
    answer = ask(site, place)
    assert "word" not in answer
    assert not re.search(r"root:|ledger|setpriv", json.dumps(answer))


# --- Tickets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "word",
    [
        "0" * 32,
        "F" * 32,
        "../state",
        "used/" + "0" * 32,
        "./" + "0" * 30,
        "0" * 31 + "\n",
        "%2e%2e",
        "",
        "used",
        "v1.x.y",
    ],
)
def test_a_ticket_that_the_service_did_not_give_lets_nothing_in(site: SiteOnCluster, word: str):
    place = project(site)
    for script in (SCRIPT, LARGE):
        went, said = sbatch(place, f"--account={AGENTS}", f"--comment=ticket={word}", script=script)
        assert not went
        assert "ticket" in said or "comment has a line break" in said


def test_a_ticket_taken_from_the_process_list_is_of_no_use_to_another_user_and_stays_good(site: SiteOnCluster):
    place = project(site)
    word = ticket(site, place)
    went, said = sbatch(place, f"--comment={word}", user="labmate")
    assert (went, "another user's" in said) == (False, True), said
    assert sbatch(place, f"--comment={word}")[0]
    went, said = sbatch(place, f"--comment={word}")
    assert (went, "is used already" in said) == (False, True), said


@pytest.mark.parametrize(
    "more",
    [("--mem=101M",), ("--time=6",), ("-n2",), ("-c2",), ("-N2",), ("--array=0-1",), ("--gpus=1", "-pgpu"), ("-pgpu",),
     ("--exclusive",), ("--mem-per-cpu=101M",), ("--mem=0",), ("--account=lab",), ("--account=agents",), ("--gres=gpu:1",),
     ("--time=UNLIMITED",), ("--ntasks-per-node=2", "-n2"), ("--nodelist=none[1-9]",), (":", "-pcpu", "--mem=1M", "-t1")],
    ids=" ".join,
)  # fmt: skip
def test_a_ticket_lets_in_nothing_beyond_what_was_judged(site: SiteOnCluster, more: tuple[str, ...]):
    place = project(site)
    word = ticket(site, place)
    went, said = sbatch(place, f"--comment={word}", *more)
    assert not went, said
    went, said = sbatch(place, f"--comment={word}")
    assert went or "is used already" in said, said


@pytest.mark.parametrize(
    "how", ["another script", "SBATCH_TIMELIMIT", "SBATCH_MEM_PER_NODE", "SBATCH_ACCOUNT", "BASH_ENV"]
)
def test_neither_script_nor_environment_is_exchanged_behind_a_ticket(site: SiteOnCluster, how: str):
    place = project(site)
    word = ticket(site, place)
    values = {"SBATCH_TIMELIMIT": "600", "SBATCH_MEM_PER_NODE": "9000", "SBATCH_ACCOUNT": AGENTS, "BASH_ENV": "/tmp/x"}
    plain = SCRIPT if how == "another script" else "#!/bin/bash\nsleep 60\n"
    if how == "another script":
        went, said = sbatch(place, f"--comment={word}", script=plain + "rm -rf ~/x\n")
    else:
        place.extra[how] = values[how]
        went, said = sbatch(place, f"--comment={word}")
    if how in {"SBATCH_TIMELIMIT", "SBATCH_MEM_PER_NODE", "SBATCH_ACCOUNT"} and went:
        pytest.fail(said)  # the environment counts more than the script's own lines
    assert not went, said


def test_of_many_requests_at_once_no_more_than_the_limit_get_a_ticket_whatever_projects_they_name(site: SiteOnCluster):
    places = [project(site) for _ in range(3)]
    with ThreadPoolExecutor(9) as pool:
        answers = list(pool.map(lambda number: ask(site, places[number % 3]), range(9)))
    assert sum(bool(answer.get("word")) for answer in answers) == 3


def behind_one(site: SiteOnCluster) -> tuple[Place, str, str]:
    """A project of which one job is in the queue, that job, and the script of the next one."""
    place = project(site)
    assert sbatch(place, f"--comment={ticket(site, place)}")[0]
    first = site.administrator("squeue", "-h", "-o%A").strip()
    script = f"{SCRIPT}echo next\n"
    (place.project / "job.sh").write_text(script)
    return place, first, script


def test_a_job_that_was_judged_to_wait_for_another_waits_for_it(site: SiteOnCluster):
    place, first, script = behind_one(site)
    after = f"afterany:{first}"
    comment = f"--comment={ticket(site, place, arguments={'script': 'job.sh', 'dependency': after})}"
    for words in ((), (f"--dependency=afterany:{first}?afternotok:{first}",), ("--dependency=singleton",)):
        went, said = sbatch(place, comment, *words, script=script)
        assert (went, "dependency is not that of its ticket" in said) == (False, True), said
    assert sbatch(place, comment, f"--dependency={after}", script=script)[0]
    second = next(job for job in site.administrator("squeue", "-h", "-o%A").split() if job != first)
    for change in ("Dependency=", "Dependency=singleton"):
        assert place.run(["scontrol", "update", f"JobId={second}", change]).returncode != 0, change
    assert after in place.slurm("scontrol", "show", "job", second)


def test_a_job_that_was_judged_to_wait_for_none_waits_for_none(site: SiteOnCluster):
    place, first, script = behind_one(site)
    comment = f"--comment={ticket(site, place)}"
    went, said = sbatch(place, comment, f"--dependency=afterany:{first}", script=script)
    assert (went, "dependency is not that of its ticket" in said) == (False, True), said
    assert sbatch(place, comment, "--hold", script=script)[0]
    second = next(job for job in site.administrator("squeue", "-h", "-o%A").split() if job != first)
    assert place.run(["scontrol", "update", f"JobId={second}", f"Dependency=afterany:{first}"]).returncode != 0
    assert "Dependency=(null)" in place.slurm("scontrol", "show", "job", second)


@pytest.mark.parametrize("dependency", ["afterany:{}_0", "aftercorr:{}", "afterany:{}?after:{}"])
def test_at_the_limit_no_job_gets_a_ticket_that_may_run_beside_what_it_names(site: SiteOnCluster, dependency: str):
    place = project(site)
    for number in range(3):
        script = f"{SCRIPT}echo {number}\n"
        (place.project / "job.sh").write_text(script)
        word = ticket(site, place, arguments={"script": "job.sh", "array": "0-1%1"})
        assert sbatch(place, f"--comment={word}", "--array=0-1%1", script=script)[0]
    first = min(site.administrator("squeue", "-h", "-o%F").split(), key=int)
    (place.project / "job.sh").write_text(f"{SCRIPT}echo next\n")
    told = {"script": "job.sh", "array": "0-1%1", "dependency": dependency.format(first, first)}
    refused = ask(site, place, arguments=told)
    assert "word" not in refused
    assert "concurrent-jobs" in json.dumps(refused)
    assert ask(site, place, arguments=told | {"dependency": f"afterany:{first}"}).get("word")


def test_a_queue_that_the_user_makes_look_empty_still_counts(site: SiteOnCluster):
    place = project(site)
    for number in range(3):
        script = f"{SCRIPT}echo {number}\n"
        (place.project / "job.sh").write_text(script)
        assert sbatch(place, f"--comment={ticket(site, place)}", script=script)[0]
    programs = place.project / "programs"
    programs.mkdir()
    for name in ("squeue", "scontrol", "sacct", "sbatch"):
        (programs / name).write_text("#!/bin/sh\nexit 0\n")
        (programs / name).chmod(0o755)
    place.own()
    site.place.extra["PATH"] = f"{programs}:{os.environ['PATH']}"
    try:
        answer = ask(site, place)
    finally:
        del site.place.extra["PATH"]
    assert "word" not in answer
    assert "concurrent-jobs" in json.dumps(answer)
    for job in site.administrator("squeue", "-h", "-o%A").split():
        place.run(["scontrol", "update", f"JobId={job}", "Comment=none", "JobName=none"])
    assert "word" not in ask(site, place)


def test_a_job_with_a_ticket_cannot_be_changed_past_it(site: SiteOnCluster):
    place = project(site)
    assert sbatch(place, f"--comment={ticket(site, place)}")[0]
    job = site.administrator("squeue", "-h", "-o%A").strip()
    before = re.sub(r"Last\S+", "", place.slurm("scontrol", "-o", "show", "job", job))
    for change in ("TimeLimit=6", "MinMemoryNode=200", "Requeue=1", "Account=lab", "NumTasks=4", "NumNodes=2", "Partition=gpu",
                   "AdminComment=x", "TresPerJob=gres:gpu:1", "QOS=none", "MinMemoryCPU=900"):  # fmt: skip
        assert place.run(["scontrol", "update", f"JobId={job}", change]).returncode != 0, change
    assert re.sub(r"Last\S+", "", place.slurm("scontrol", "-o", "show", "job", job)) == before
    assert place.run(["scontrol", "requeue", job]).returncode != 0


def test_a_job_submits_no_more_than_its_user_may(site: SiteOnCluster):
    place = project(site)
    (place.project / "large.sh").write_text(LARGE)
    place.own()
    lines = [f"sbatch {place.project}/large.sh", f"sbatch --account={AGENTS} {place.project}/job.sh",
             f"env -i PATH=$PATH SLURM_CONF={place.cluster.conf} sbatch --mem=3G {place.project}/job.sh",
             "srun -pcpu --mem=3G -t5 --overlap --jobid=0 true", "salloc -pcpu --mem=3G -t5 true"]  # fmt: skip
    wrapped = "; ".join(lines)
    place.slurm("sbatch", "--wait", "-pcpu", "--mem=100M", "-t5", f"-o{place.project}/told", f"--wrap={wrapped}; true")
    told = (place.project / "told").read_text()
    assert "Submitted" not in told
    assert told.count(ASK) >= 3, told
    assert site.administrator("squeue", "-h") == ""


# --- A person's yes ---------------------------------------------------------------------------------------------------


def test_no_answer_of_the_users_own_making_is_a_persons_yes(site: SiteOnCluster):
    place = project(site, HUGE)
    asked = ask(site, place)
    assert "word" not in asked
    number = asked["question"]
    for user in (None, "labmate"):
        for channel in ("terminal", "elicitation", "signed", "passkey", "none"):
            for proof in ("", "yes", "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n", "{}"):
                said = ask(site, place, "answer", user, id=number, channel=channel, proof=proof, who="ada@example.org")
                assert "error" in said, (user, channel, proof, said)
    place.cli("get_status", "--no-cache")
    code, _ = place.cli("submit_job", "--script=job.sh")
    assert code == 3
    assert "word" not in ask(site, place)
    assert not sbatch(place, script=HUGE)[0]


def test_what_the_user_writes_of_policy_and_settings_loosens_nothing(site: SiteOnCluster):
    place = project(site, HUGE)
    (place.project / "policies").mkdir()
    (place.project / "policies/mine.yaml").write_text("limits: {memory_without_gpus: {free: 64G, justify: 64G}}\n")
    place.own()
    words = {"policy": {"limits": {}}, "uid": 0, "user": "root", "by_site": True, "grant": {"by": "ada"}}
    assert "word" not in ask(site, place, **words)


# --- What comes over the socket ---------------------------------------------------------------------------------------


def test_hostile_frames_and_slow_clients_stop_nobody_else(site: SiteOnCluster):
    assert site.process is not None
    place = project(site, user="labmate")
    argv = place.cluster.as_user([sys.executable, "-c", HOSTILE, str(site.socket), str(place.project)])
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=place.environment()) as hostile:
        assert hostile.stdout is not None
        assert hostile.stdin is not None
        assert hostile.stdout.readline() == b"held\n"
        answer = ask(site, place, user="labmate")
        hostile.stdin.close()
    assert answer.get("word"), answer
    assert site.process.poll() is None
    status = Path(f"/proc/{site.process.pid}/status").read_text()
    assert int(re.search(r"VmHWM:\s+(\d+)", status)[1]) < 400_000  # type: ignore[index]  # KiB
    assert not (site.folder / "service.log").read_text().count("Traceback")
