"""An agent over `connect` on a real cluster: its jobs, the cap, a person's signature, and a service that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from tests.system.faces import Place, call, connected
from tests.system.site_service import POLICY, SiteOnCluster, wait
from tests.system.test_fates import FATES, Fate, among

MOMENTS = 40 if os.environ.get("SOAK") else 6
HEAD = "#!/bin/bash\n#SBATCH --partition=cpu --mem=100M --time=5 --account=agents\n#SBATCH --output=/dev/null\n"
HONEST = [fate for fate in FATES if fate.name in {"completed", "exit-7", "signal", "array"}]


def scripted(place: Place, name: str, body: str, *options: str) -> str:
    """A script of the project that asks for a ticket."""
    (place.project / f"{name}.sh").write_text(HEAD + "".join(f"#SBATCH {option}\n" for option in options) + f"{body}\n")
    place.own()
    return f"{name}.sh"


@pytest.fixture
def place(site_service: SiteOnCluster) -> Iterator[Place]:
    yield site_service.another()
    site_service.administrator("scancel", f"--user={site_service.place.cluster.user}")
    wait(lambda: not site_service.place.slurm("squeue", "-h", "--me"), "an empty queue")


@contextmanager
def ruled(site: SiteOnCluster, more: str) -> Iterator[None]:
    """The site's policy says more for a while: it is read with every request."""
    file = site.folder / "policy.yaml"
    before = file.read_text()
    file.write_text(POLICY + more)
    try:
        yield
    finally:
        file.write_text(before)


def test_an_honest_agent_over_connect_sees_the_fates_of_its_jobs(site_service: SiteOnCluster, place: Place):
    async def sent(client: Client, fate: Fate) -> str:
        options = [option.replace("0-3", "0-3%3") for option in fate.options]  # no more at once than the cap
        reply = await call(client, "submit_job", script=scripted(place, fate.name, fate.body, *options))
        assert reply["status"] == "submitted", reply
        return str(reply["job_id"])

    async def waited(client: Client, job_id: str) -> dict[str, Any]:
        for _ in range(10):
            told = await call(client, "wait_for_job", job_id=job_id, timeout_seconds=45)
            if told["status"] == "finished":
                break
        return told

    def compare(fate: Fate, told: dict[str, Any]) -> None:
        job = told["job"]
        assert (told["status"], among(job["state"], fate.state)) == ("finished", True), told
        assert fate.exit_code is None or job["exit_code"] == fate.exit_code
        assert fate.signal is None or job["signal"] == fate.signal
        assert fate.check is None or fate.check(told), told

    async def agent() -> None:
        async with connected(place, str(site_service.socket)) as client:
            await call(client, "get_status")
            for together in (HONEST[:3], HONEST[3:]):
                # A job that is over holds its place while Slurm still clears its node.
                wait(lambda: not place.slurm("squeue", "-h", "--me"), "an empty queue")
                ids = [await sent(client, fate) for fate in together]
                for fate, job_id in zip(together, ids, strict=True):
                    compare(fate, await waited(client, job_id))

    anyio.run(agent)


def test_two_connections_that_race_get_no_more_jobs_than_the_cap(site_service: SiteOnCluster, place: Place):
    other = site_service.another()
    both = [
        (one, scripted(one, f"race-{number}", f"sleep 60{number}"))
        for number, one in enumerate([place, other, place, other, place, other])
    ]
    for one in (place, other):
        one.cli("get_status", "--no-cache")
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda pair: pair[0].cli("submit_job", f"--script={pair[1]}")[1], both))
    told = Counter(reply["status"] for reply in replies)
    assert told == {"submitted": 3, "blocked": 3}, replies
    assert len(place.slurm("squeue", "-h", "--me", "-o", "%A").split()) == 3


def test_what_needs_a_person_is_refused_until_it_is_signed_and_runs_once(site_service: SiteOnCluster, place: Place):
    keys = place.project.parent / "keys"
    keys.mkdir()
    key = keys / "ada"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "ada", "-f", str(key)], check=True)
    signer = " ".join(key.with_suffix(".pub").read_text().split()[:2])
    script = scripted(place, "long", "sleep 600", "--time=120")
    with ruled(site_service, f"approval_channels: [signed]\nallowed_signers: ['ada {signer}']\n"):
        place.cli("get_status", "--no-cache")
        code, reply = place.cli("submit_job", f"--script={script}")
        assert (code, reply["blocker"]) == (3, "approval"), reply
        bare = place.run(["sbatch", "--account=agents", script])
        assert b"needs a ticket" in bare.stderr or b"need a ticket" in bare.stderr
        name = reply["approval_id"]
        shown = approve(site_service, place, name, "--show")
        (place.project.parent / "plan").write_text(shown.stdout)
        words = ["ssh-keygen", "-q", "-Y", "sign", "-n", "slurm-agent-tools", "-f", str(key)]
        subprocess.run([*words, str(place.project.parent / "plan")], check=True, capture_output=True)
        place.own()
        done = approve(site_service, place, name, "--signature", str(place.project.parent / "plan.sig"))
        assert done.returncode == 0, done.stderr
        code, reply = place.cli("submit_job", f"--script={script}")
        assert (code, reply["status"]) == (0, "submitted"), reply
        place.slurm("scancel", reply["job_id"])
        code, reply = place.cli("submit_job", f"--script={script}", "--idempotency-key=again")
        assert code == 3, reply


def approve(site: SiteOnCluster, place: Place, *words: str) -> subprocess.CompletedProcess[str]:
    return site.as_user(
        "import sys; from slurm_agent_tools.cli.main import main; sys.exit(main(['approve', *sys.argv[1:]]))",
        "--socket", str(site.socket), *words, folder=place.project,
    )  # fmt: skip


def test_a_service_that_is_killed_loses_no_job_doubles_none_and_gives_no_ticket_twice(
    site_service: SiteOnCluster, place: Place
):
    place.cli("get_status", "--no-cache")
    began = time.monotonic()
    script = scripted(place, "first", "true")
    assert place.cli("submit_job", f"--script={script}")[1]["status"] == "submitted"
    takes = time.monotonic() - began
    used = Path(site_service.folder, "tickets/used")
    before = len(list(used.iterdir()))
    for moment in range(MOMENTS):
        name = f"killed-{moment}"
        script = scripted(place, name, f"true {moment}")
        killer = threading.Timer(takes * (0.4 + 0.6 * moment / MOMENTS), site_service.stop, [signal.SIGKILL])
        killer.start()
        sent = [place.cli("submit_job", f"--script={script}", f"--idempotency-key={name}")[1]]
        killer.join()
        site_service.start()
        for _ in range(600):
            if sent[-1].get("status") == "submitted":
                break
            sent.append(place.cli("submit_job", f"--script={script}", f"--idempotency-key={name}")[1])
            time.sleep(0.2)
        assert sent[-1].get("status") == "submitted", sent[-2:]
        wait(lambda: not place.slurm("squeue", "-h", "--me"), "the end of the job")

    def accounted() -> dict[str, int]:
        names = place.slurm("sacct", "-nXP", "-o", "JobName", "-S", "now-1hour").split()
        return dict(Counter(name for name in names if name.startswith("killed-")))

    wait(lambda: len(accounted()) == MOMENTS, "the accounting, which is told late")
    assert accounted() == {f"killed-{moment}.sh": 1 for moment in range(MOMENTS)}
    spent = list(used.iterdir())
    assert len(spent) - before == MOMENTS
    place.slurm("scontrol", "ping")
    for ticket in spent[-3:]:
        again = place.run(["sbatch", "--account=agents", f"--comment=x ticket={ticket.name}", script])
        assert again.returncode != 0
        assert b"used already" in again.stderr
