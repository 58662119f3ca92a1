"""The steps of the demo. Each one calls our tools over MCP, says what they answered, and asks Slurm."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from mcp import Client

from slurm_agent_tools.demo.paper import Paper
from slurm_agent_tools.demo.stage import Stage
from slurm_agent_tools.errors import AgentToolsError

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Guest:
    """A person's agent: an MCP client, the stage it works on, and what it prints."""

    client: Client
    stage: Stage
    paper: Paper

    async def call(self, tool: str, **arguments: object) -> Body:
        """One tool call; its answer. AgentToolsError when the tool failed."""
        self.paper.call(tool, arguments.items())
        result = await self.client.call_tool(tool, arguments, progress_callback=self._progress)
        body = result.structured_content or {}
        if result.is_error or "summary" not in body:
            error = body.get("error", {})
            raise AgentToolsError(f"{tool} failed: {error.get('message', result.content)}", hint=error.get("hint", ""))
        self.paper.say(body["summary"])
        return body

    async def wait(self, job_id: str) -> Body:
        """Call wait_for_job until it says that the job ended."""
        while True:
            body = await self.call("wait_for_job", job_id=job_id, timeout_seconds=45)
            if body["status"] == "finished":
                return body

    async def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        """One line for each change; the tool reports more often than that."""
        share = f"{progress:.0f} of {total:.0f} s" if total else f"{progress:.0f} s"
        self.paper.news(message or "", f"... {message} ({share})")


async def look(guest: Guest) -> None:
    """Read the cluster's state."""
    guest.paper.step("Look at the cluster before anything else")
    body = await guest.call("get_status")
    guest.paper.say(f"{body['queue']['recommendation']}: {body['queue']['why']}")
    ours = sorted(partition["name"] for partition in body["partitions"])
    guest.paper.check("sinfo: partitions", ours, sorted((await guest.stage.command("sinfo", "-h", "-o", "%R")).split()))
    queued = (await guest.stage.command("squeue", "--me", "-h", "-o", "%A")).split()
    guest.paper.check("squeue: my jobs", body["slurm"]["active_jobs"], len(queued))


async def validate(guest: Guest) -> None:
    """Check a config and a script without touching anything."""
    guest.paper.step("Check a config and a script")
    before = await guest.stage.jobs()
    for path in ("train.yaml", "train.sh"):
        body = await guest.call("validate_config", config_path=path)
        guest.paper.check(f"{path} is", body["status"], "valid")
    guest.paper.check("sacct and squeue: jobs submitted by checking", 0, len(await guest.stage.jobs()) - len(before))


async def succeed(guest: Guest) -> str:
    """Submit a job, wait for it, save what it measured; returns its id."""
    guest.paper.step("Submit a job, wait for it, save its result")
    submitted = await guest.call("submit_job", script="train.sh", idempotency_key="demo-baseline")
    for pin in submitted["pinned"]:
        guest.paper.say(f"added {pin['option']}: {pin['why']}")
    job_id = str(submitted["job_id"])
    held = await guest.stage.command("squeue", "-h", "-j", job_id, "-o", "%u %P")
    guest.paper.check("squeue: user and partition", f"{guest.stage.cluster.user} gpu", held)
    ended = await guest.wait(job_id)
    job = ended["job"]
    guest.paper.check("sacct: how it ended", (job["state"], f"{job['exit_code']}:0"), await guest.stage.fate(job_id))
    log = await guest.call("analyze_log", job_id=job_id, mode="metrics")
    saved = await guest.call(
        "save_result", name="baseline", status="success", metrics=log["metrics"], config="train.yaml", job_id=job_id
    )
    written = json.loads((guest.stage.project / saved["file_path"]).read_text())
    guest.paper.check(
        "the file holds the last epoch's loss", log["metrics"].get("loss"), written["metrics"].get("loss")
    )
    return job_id


async def run_out(guest: Guest) -> list[str]:
    """Submit a job that needs more memory than it asks for, find out why it died, ask for what is proposed; two ids."""
    guest.paper.step("Diagnose a job that ran out of memory")
    job_id = await _through(guest, "demo-big")
    diagnosis = (await guest.call("analyze_log", job_id=job_id))["diagnosis"]
    guest.paper.say(f"{diagnosis['confidence']:.0%} sure. Proposed, never sent: {diagnosis['proposed_change']}")
    guest.paper.check("the cause is memory", True, "memory" in diagnosis["category"])
    saved = await guest.call("save_result", name="too-big", status="failed", job_id=job_id)
    record = saved["failure_record"]
    guest.paper.check(f"{record} is there", True, bool(record) and (guest.stage.project / record).is_file())
    guest.paper.page(record, (guest.stage.project / record).read_text())
    guest.paper.page(f"$ slurm-agent-tools report {job_id}", await guest.stage.tool("report", job_id))
    return [job_id, await _as_proposed(guest, diagnosis["proposed_change"])]


async def _as_proposed(guest: Guest, directive: str) -> str:
    """A person takes the proposal over into the script, and the agent submits it again; the job's id."""
    guest.paper.step("A person writes the proposed line into the script")
    script = guest.stage.project / "big.sh"
    option = directive.partition("=")[0]
    lines = [directive if line.startswith(option) else line for line in script.read_text().splitlines()]
    script.write_text("\n".join(lines) + "\n")
    guest.paper.check(f"big.sh says {directive}", 1, lines.count(directive))
    job_id = await _through(guest, "demo-big-enough")
    state, code = await guest.stage.fate(job_id)
    guest.paper.check("sacct: it is done this time", "COMPLETED 0:0", f"{state} {code}")
    return job_id


async def _through(guest: Guest, key: str) -> str:
    """Submit big.sh and wait for its end, which is compared with what sacct says; its id."""
    submitted = await guest.call("submit_job", script="big.sh", idempotency_key=key)
    job_id = str(submitted["job_id"])
    job = (await guest.wait(job_id))["job"]
    state, _ = await guest.stage.fate(job_id)
    guest.paper.check("sacct: how it ended", job["state"], state)
    return job_id


async def refuse(guest: Guest) -> None:
    """Submit what policy forbids: nothing is sent, and the answer holds the lines to change."""
    guest.paper.step("A script that policy refuses, with the corrected lines")
    before = await guest.stage.jobs()
    body = await guest.call("submit_job", script="fixed.sh")
    _blocked(guest, body, person=False)
    guest.paper.check("scripts left for a person", len(body["artifacts"]), 0)
    guest.paper.check("sacct and squeue: jobs submitted", 0, len(await guest.stage.jobs()) - len(before))


async def ask_a_person(guest: Guest) -> None:
    """Submit what a person has to decide: nothing is sent, and a script is left."""
    guest.paper.step("A script that needs a person")
    before = await guest.stage.jobs()
    body = await guest.call("submit_job", script="wide.sh")
    guest.paper.say("The commands for the person:\n" + "\n".join(f"  {line}" for line in body["manual_commands"]))
    _blocked(guest, body, person=True)
    left = [path for path in body["artifacts"] if (guest.stage.project / path).is_file()]
    guest.paper.check("scripts left for a person", len(body["artifacts"]), 1)
    takes = bool(left) and await guest.stage.succeeds("sbatch", "--test-only", *left)
    guest.paper.check("sbatch --test-only takes it", True, takes)
    guest.paper.check("sacct and squeue: jobs submitted", 0, len(await guest.stage.jobs()) - len(before))


def _blocked(guest: Guest, body: Body, *, person: bool) -> None:
    answer = f"{body['status']}, {'for a person' if body['human_action_required'] else 'to be corrected'}"
    guest.paper.check("the answer", answer, f"blocked, {'for a person' if person else 'to be corrected'}")


async def play(guest: Guest) -> None:
    """All steps, and at the end the whole list of jobs."""
    before = await guest.stage.jobs()
    await look(guest)
    await validate(guest)
    made = [await succeed(guest), *await run_out(guest)]
    await refuse(guest)
    await ask_a_person(guest)
    guest.paper.step("What Slurm has of all this")
    after = await guest.stage.jobs()
    guest.paper.check("sacct and squeue: new jobs", made, [job for job in after if job not in before])
