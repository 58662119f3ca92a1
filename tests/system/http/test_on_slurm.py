"""The server over HTTP on the real cluster: who is logged, what a stop and a caller that leaves do to jobs."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing

import anyio
import httpx2
import pytest
from mcp.types import ElicitResult
from tests.system.faces import Place, call
from tests.system.web import HEADERS, Web, serving, stateless
from tests.system.web import call as body
from tests.watchdog import SECONDS

ERAS = ["2026-07-28", "legacy"]
JOB = "#!/bin/bash\n#SBATCH --output=logs/slurm/%x-%j.out\n#SBATCH --partition=cpu\n#SBATCH --time={}\n"


@pytest.fixture
def token(fresh: Place) -> str:
    words = [sys.executable, "-m", "slurm_agent_tools", "token", "new", "--name", "alice", "--scope", "write"]
    return fresh.run(words).stdout.decode().strip()


@pytest.fixture
def web(fresh: Place, token: str) -> Iterator[Web]:
    (fresh.project / "job.sh").write_text(JOB.format("00:05:00") + "sleep 60\n")
    (fresh.project / "long.sh").write_text(JOB.format("4-00:00:00") + "sleep 60\n")
    fresh.own()
    env = fresh.environment() | {"SLURM_AGENT_LOG_LEVEL": "info"}
    with serving(["--listen", "127.0.0.1:0"], env, fresh.project, fresh.cluster.as_user) as made:
        yield made


def log(place: Place) -> list[dict[str, object]]:
    done = place.run([sys.executable, "-m", "slurm_agent_tools", "policy", "log", "--json"])
    assert done.returncode == 0, done.stdout
    return [json.loads(line) for line in done.stdout.splitlines()]


def intents(place: Place) -> int:
    """How many submissions were begun."""
    (path,) = (place.project.parent / ".state").rglob("ledger.sqlite3")
    with closing(sqlite3.connect(path, timeout=5)) as db:
        return db.execute("SELECT count(*) FROM submissions").fetchone()[0]


@pytest.mark.proves("http-names-the-caller")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_job_that_a_person_approved_over_http_is_in_the_log_with_the_tokens_name(
    fresh: Place, web: Web, token: str, mode: str
):
    async def person(_: object, __: object) -> ElicitResult:
        return ElicitResult(action="accept", content={"approve": True})

    async with web.client(token, mode, elicitation_callback=person) as client:
        await call(client, "get_status")
        reply = await call(client, "submit_job", script="long.sh")
    assert reply["status"] == "submitted", reply
    assert web.ask("GET", "/readyz").json() == {"status": "ok"}
    entries = {str(entry["event"]): entry for entry in log(fresh)}
    assert entries["submitted"]["principal"] == "alice"
    assert entries["approved"]["principal"] == "alice"
    assert str(entries["submitted"]["job_id"]) == reply["job_id"]


@pytest.mark.proves("http-ends-well")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_stop_ends_waits_with_what_is_known_and_the_job_goes_on(fresh: Place, web: Web, token: str, mode: str):
    async with web.client(token, mode) as client:
        await call(client, "get_status")
        job = (await call(client, "submit_job", script="job.sh"))["job_id"]
        answers: list[dict[str, object]] = []
        begun = anyio.Event()

        async def wait() -> None:
            async def tell(*_: object) -> None:
                begun.set()

            asked = {"job_id": job, "timeout_seconds": 600, "detail": "full"}
            result = await client.call_tool("wait_for_job", asked, progress_callback=tell)
            answers.append(result.structured_content)

        async with anyio.create_task_group() as group:
            with anyio.fail_after(SECONDS):
                group.start_soon(wait)
                await begun.wait()
                web.process.terminate()
    assert answers[0]["job"]["job_id"] == str(job)
    assert answers[0]["status"] in {"pending", "running"}
    assert "server-stopping" in [alert["code"] for alert in answers[0]["alerts"]]
    assert web.ended() == 0
    assert fresh.slurm("squeue", "-h", "-j", str(job), "-o", "%i") == str(job)


@pytest.mark.proves("http-ends-well")
async def test_a_submission_under_way_is_finished_before_the_server_ends(fresh: Place, web: Web, token: str):
    async with web.client(token) as client:
        await call(client, "get_status")
    async with httpx2.AsyncClient(headers=HEADERS | stateless("submit_job"), timeout=60) as client:
        answers: list[httpx2.Response] = []

        async def submit() -> None:
            headers = {"authorization": f"Bearer {token}"}
            answers.append(
                await client.post(web.url + "/mcp", json=body("submit_job", script="job.sh"), headers=headers)
            )

        async with anyio.create_task_group() as group:
            group.start_soon(submit)
            with anyio.fail_after(SECONDS):
                while not intents(fresh):  # noqa: ASYNC110 - written by another process
                    await anyio.sleep(0.005)
            assert not answers
            web.process.terminate()
    assert answers[0].json()["result"]["structuredContent"]["status"] == "submitted"
    assert web.ended() == 0
    assert len(fresh.slurm("squeue", "-h", "-o", "%i").splitlines()) == 1


@pytest.mark.proves("http-ends-well")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_caller_that_goes_away_ends_its_wait_and_not_the_job(fresh: Place, web: Web, token: str, mode: str):
    async with web.client(token, mode) as client:
        await call(client, "get_status")
        job = (await call(client, "submit_job", script="job.sh"))["job_id"]
    with anyio.move_on_after(1.5):
        async with web.client(token, mode) as client:
            await client.call_tool("wait_for_job", {"job_id": job, "timeout_seconds": 300})
    assert web.tells('"call ended"', '"wait_for_job"'), "somebody is still waiting"
    assert web.stop() == 0
    assert fresh.slurm("squeue", "-h", "-j", str(job), "-o", "%i") == str(job)


@pytest.mark.proves("http-ends-well")
async def test_in_the_older_era_too_a_closed_request_ends_its_wait(fresh: Place, web: Web, token: str):
    async with web.client(token) as client:
        await call(client, "get_status")
        job = (await call(client, "submit_job", script="job.sh"))["job_id"]
    begin = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}
    session = web.post(token, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin})
    more = {"mcp-session-id": session.headers["mcp-session-id"], "mcp-protocol-version": "2025-11-25"}
    web.post(token, {"jsonrpc": "2.0", "method": "notifications/initialized"}, **more)
    wait = {"name": "wait_for_job", "arguments": {"job_id": job, "timeout_seconds": 300}}
    with pytest.raises(httpx2.ReadTimeout):
        web.ask(
            "POST", token=token, json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": wait},
            headers=HEADERS | more, seconds=1.5,
        )  # fmt: skip
    assert web.tells('"call ended"', '"wait_for_job"'), "somebody is still waiting"
    assert web.stop() == 0
