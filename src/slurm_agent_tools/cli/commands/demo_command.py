"""Bring a devcluster up, play the demo on it, take it down again."""

from __future__ import annotations

import argparse
import json
import signal
import textwrap
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters
from mcp.server import MCPServer

from slurm_agent_tools.api import printing, render
from slurm_agent_tools.cli.commands.demo_campaign import find_the_rate
from slurm_agent_tools.cli.commands.demo_project import DemoProject, make
from slurm_agent_tools.devcluster import lifecycle
from slurm_agent_tools.devcluster.definition import Cluster
from slurm_agent_tools.errors import AgentToolsError


class DemoOutput:
    """Lines on standard output, with colours on a terminal."""

    def __init__(self) -> None:
        self._steps = 0
        self._latest = ""
        self.checks = 0
        self.differences: list[str] = []

    def step(self, title: str) -> None:
        """A numbered heading."""
        self._steps += 1
        _show(["", f"{self._steps}. {title}"], "heading")

    def call(self, tool: str, arguments: Iterable[tuple[str, object]]) -> None:
        """The tool call that follows."""
        words = " ".join(f"{name}={_words(value)}" for name, value in arguments)
        _show(_wrapped(f"> {tool} {words}"), "faint")

    def say(self, text: str) -> None:
        """Text, wrapped and indented; its own line ends are kept."""
        for line in text.splitlines():
            _show(_wrapped(line))

    def page(self, title: str, text: str) -> None:
        """A file or an output as it is, line by line."""
        _show([f"   {title}"], "faint")
        _show([f"   | {render.plain(line)}".rstrip() for line in text.splitlines()])

    def news(self, what: str, text: str) -> None:
        """Say the text unless the last news was the same."""
        if what != self._latest:
            self._latest = what
            self.say(text)

    def check(self, what: str, ours: object, slurms: object) -> None:
        """One comparison of what our tools said with what Slurm (or the file system) says."""
        self.checks += 1
        if ours == slurms:
            _show([f"   = {what}: {_words(slurms)}"], "ok")
        else:
            line = f"{what}: we say {_words(ours)}, it is {_words(slurms)}"
            self.differences.append(line)
            _show([f"   ! {line}"], "failed")

    def end(self) -> int:
        """The closing line; 0 when everything agreed, else 1."""
        bad = len(self.differences)
        verdict = f"{self.checks - bad} of {self.checks} checks agree with what Slurm says."
        _show(["", verdict], "failed" if bad else "ok")
        return 1 if bad else 0


def _show(lines: Iterable[str], style: str = "") -> None:
    printing.show([render.Line(render.plain(line), style) for line in lines])


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(render.plain(text), 110, initial_indent="   ", subsequent_indent="     ") or [""]


def _words(value: object) -> str:
    """A value as a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_words(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return str(value)


Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DemoAgent:
    """A person's agent: an MCP client, the stage it works on, and what it prints."""

    client: Client
    stage: DemoProject
    paper: DemoOutput

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


async def look(guest: DemoAgent) -> None:
    """Read the cluster's state."""
    guest.paper.step("Look at the cluster before anything else")
    body = await guest.call("get_status")
    guest.paper.say(f"{body['queue']['recommendation']}: {body['queue']['why']}")
    ours = sorted(partition["name"] for partition in body["partitions"])
    guest.paper.check("sinfo: partitions", ours, sorted((await guest.stage.command("sinfo", "-h", "-o", "%R")).split()))
    queued = (await guest.stage.command("squeue", "--me", "-h", "-o", "%A")).split()
    guest.paper.check("squeue: my jobs", body["slurm"]["active_jobs"], len(queued))


async def validate(guest: DemoAgent) -> None:
    """Check a config and a script without touching anything."""
    guest.paper.step("Check a config and a script")
    before = await guest.stage.jobs()
    for path in ("train.yaml", "train.sh"):
        body = await guest.call("validate_config", config_path=path)
        guest.paper.check(f"{path} is", body["status"], "valid")
    guest.paper.check("sacct and squeue: jobs submitted by checking", 0, len(await guest.stage.jobs()) - len(before))


async def succeed(guest: DemoAgent) -> str:
    """Submit a job, wait for it, save what it measured; returns its id."""
    guest.paper.step("Submit a job, wait for it, save its result")
    submitted = await guest.call("submit_job", script="train.sh", idempotency_key="demo-baseline")
    for pin in submitted.get("pinned", []):
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
    written = json.loads((guest.stage.project / saved["file_path"]).read_text())["metrics"]
    guest.paper.check("the file holds the last epoch's loss", log["metrics"].get("loss"), written.get("loss"))
    return job_id


async def run_out(guest: DemoAgent) -> list[str]:
    """Submit a job that needs more memory than it asks for, find out why it died, ask for what is proposed; two ids."""
    guest.paper.step("Diagnose a job that ran out of memory")
    job_id = await _through(guest, "demo-big")
    diagnosis = (await guest.call("analyze_log", job_id=job_id))["diagnosis"]
    guest.paper.say("{explanation} {confidence:.0%} sure. Proposed, not sent: {proposed_change}".format_map(diagnosis))
    guest.paper.check("the cause is memory", True, "memory" in diagnosis["category"])
    saved = await guest.call("save_result", name="too-big", status="failed", job_id=job_id)
    record = saved["failure_record"]
    guest.paper.check(f"{record} is there", True, bool(record) and (guest.stage.project / record).is_file())
    guest.paper.page(record, (guest.stage.project / record).read_text())
    guest.paper.page(f"$ slurm-agent-tools report {job_id}", await guest.stage.tool("report", job_id))
    return [job_id, await _as_proposed(guest, diagnosis["proposed_change"])]


async def _as_proposed(guest: DemoAgent, directive: str) -> str:
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


async def _through(guest: DemoAgent, key: str) -> str:
    """Submit big.sh and wait for its end, which is compared with what sacct says; its id."""
    submitted = await guest.call("submit_job", script="big.sh", idempotency_key=key)
    job_id = str(submitted["job_id"])
    job = (await guest.wait(job_id))["job"]
    state, _ = await guest.stage.fate(job_id)
    guest.paper.check("sacct: how it ended", job["state"], state)
    return job_id


async def refuse(guest: DemoAgent) -> None:
    """Submit what policy forbids: nothing is sent, and the answer holds the lines to change."""
    guest.paper.step("A script that policy refuses, with the corrected lines")
    before = await guest.stage.jobs()
    body = await guest.call("submit_job", script="fixed.sh")
    _blocked(guest, body, person=False)
    guest.paper.check("scripts left for a person", len(body.get("artifacts", [])), 0)
    guest.paper.check("sacct and squeue: jobs submitted", 0, len(await guest.stage.jobs()) - len(before))


async def ask_a_person(guest: DemoAgent) -> None:
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


def _blocked(guest: DemoAgent, body: Body, *, person: bool) -> None:
    for rule in body["decision"]["rules"]:
        guest.paper.say(f"{rule['id']}: {rule['message']}\n{rule['remedy']}")
    answer = f"{body['status']}, {'for a person' if body['human_action_required'] else 'to be corrected'}"
    guest.paper.check("the answer", answer, f"blocked, {'for a person' if person else 'to be corrected'}")


async def play(guest: DemoAgent) -> None:
    """All steps, and at the end the whole list of jobs."""
    before = await guest.stage.jobs()
    await look(guest)
    await validate(guest)
    made = [await succeed(guest), *await run_out(guest)]
    await refuse(guest)
    await ask_a_person(guest)
    made += await find_the_rate(guest)
    guest.paper.step("What Slurm has of all this")
    after = await guest.stage.jobs()
    guest.paper.check("sacct and squeue: new jobs", made, [job for job in after if job not in before])


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `demo`."""
    parser.description = "Show the whole way on a private real Slurm: 0 when all that our tools say is what Slurm says."
    parser.add_argument("--yes", action="store_true", help="install missing packages without asking")
    parser.add_argument("--keep", action="store_true", help="leave the cluster up")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where the cluster lives (SLURM_AGENT_DEVCLUSTER)")


async def run(args: argparse.Namespace) -> int:
    """Play it; 0 when every check agreed, else 1. DevclusterError where there can be no cluster."""
    lifecycle.open_to_demo()
    # A closed terminal or a plain kill must take the cluster down just as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    paper = DemoOutput()
    async with _cluster(args.folder, yes=args.yes, keep=args.keep) as cluster:
        place = await make(cluster)
        printing.lines([f"project of the user {cluster.user}: {place.project}"])
        await perform(place.server(), place, paper)
    return paper.end()


async def perform(server: StdioServerParameters | MCPServer[Any], stage: DemoProject, paper: DemoOutput) -> None:
    """Play all steps as a client of a server. AgentToolsError as it is: the client's own tasks would wrap it."""
    failed: AgentToolsError | None = None
    async with Client(server) as client:
        try:
            await play(DemoAgent(client, stage, paper))
        except AgentToolsError as error:
            failed = error
    if failed is not None:
        raise failed


@asynccontextmanager
async def _cluster(folder: Path | None, *, yes: bool, keep: bool) -> AsyncIterator[Cluster]:
    """The cluster that is up, which stays, or one that is brought up now and ended in every case."""
    present = lifecycle.find(folder)
    cluster = await lifecycle.up(folder, yes=yes, say=_say)
    try:
        yield cluster
    finally:
        if present is None and not keep:
            with anyio.CancelScope(shield=True):
                await lifecycle.down(folder, say=_say)
        else:
            _say(f"the cluster stays up; end it with: slurm-agent-tools devcluster down --folder {cluster.folder}")


def _say(line: str) -> None:
    printing.lines([line])
