"""What each tool answers while slurmdbd or slurmctld is away: the same calls on a fake Slurm and on a real one."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any

from tests.scenarios.bench import OVER, Bench

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models.arguments import (
    AnalyzeLog,
    CancelJob,
    GetStatus,
    SubmitJob,
    ToolArguments,
    ValidateConfig,
    WaitForJob,
)
from slurm_agent_tools.models.result import CompareResults, SaveResult
from slurm_agent_tools.models.script_arguments import GenerateScript
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient

SOURCES = {
    "all": "all answer",
    "down": "slurmdbd down",
    "slow": "slurmdbd slow",
    "back": "slurmdbd back",
    "never": "no slurmdbd",
    "controller": "slurmctld down",
}
"""The columns of the table: what is missing."""

HEAD = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --output=logs/%x-%j.out\n#SBATCH --time=10\n#SBATCH --mem=100M\n"
SCRIPTS = {
    "seen.sh": "echo here\nexit 255\n",
    "unseen.sh": "echo there\nexit 3\n",
    "ended.sh": "echo now\nexit 9\n",
    "runs.sh": "sleep 600\n",
    "new.sh": "sleep 500\n",
}
Answers = dict[str, str]


class Missing:
    """One project's jobs in every state that matters, and the calls that are made while something is away."""

    def __init__(self, bench: Bench, source: str) -> None:
        self.bench, self.source, self.jobs = bench, source, dict[str, str]()
        self.relieve: Callable[[], Awaitable[None]] | None = None
        self.patience = 6 if source in {"slow", "controller"} else 10

    def client(self) -> SlurmClient:
        """A client as a new process has it, and less patient where it waits in vain."""
        settings = SlurmSettings(read_timeout=self.patience)
        return SlurmClient(self.bench.runner, self.bench.clock, settings, user=self.bench.user)

    async def tool(self, name: str, ask: ToolArguments) -> Any:
        return await self.bench.tool(name, ask)

    async def prepare(self) -> None:
        """One that runs, and two that ended long ago, one seen and one unseen."""
        for name, body in SCRIPTS.items():
            self.bench.write(name, HEAD + body)
        await self.tool("get_status", GetStatus())
        for name in ("runs.sh", "seen.sh"):
            await self.send(name)
        await self.ended("seen.sh")
        await self.tool("wait_for_job", WaitForJob(job_id=self.jobs["seen.sh"], timeout_seconds=30))
        await self.send("unseen.sh")
        await self.ended("unseen.sh")
        for name in ("seen.sh", "unseen.sh"):
            await self.bench.until(self.forgotten(name), f"{name} is forgotten", seconds=300)

    async def just_now(self) -> None:
        """One more ends, right before something goes away."""
        await self.send("ended.sh")
        await self.ended("ended.sh")
        if self.source != "never":
            await self.bench.over(int(self.jobs["ended.sh"]))

    async def send(self, name: str) -> None:
        """Without a look at the cluster, which would see how other jobs ended."""
        reply = await self.bench.box.call("submit_job", SubmitJob(script=name))
        assert reply.status == "submitted", reply.summary
        self.jobs[name] = reply.job_id
        self.bench.named(int(reply.job_id))

    async def ended(self, *names: str) -> None:
        for name in names:
            await self.bench.becomes(int(self.jobs[name]), *OVER)

    def forgotten(self, name: str) -> Any:
        async def look() -> bool:
            return (await self.bench.slurm("scontrol", "show", "job", self.jobs[name])).exit_code != 0

        return look

    async def ask(self) -> Answers:
        """Every call, by its words in the table."""
        self.bench.client = self.client()
        if self.bench._box is not None:
            self.bench._box.context.store.close()
            self.bench._box = None  # a new process
        found = Answers()
        for words, (name, ask) in self.calls().items():
            found[words] = await cell(self.confirmed(name, ask), self.jobs.values())
        return found

    async def confirmed(self, name: str, ask: ToolArguments) -> Any:
        """An answer; one that a busy machine left unconfirmed is asked for again with its key, as it says.

        Slurm releases no job that slurmdbd was giving its number when it was stopped: so it is let go on for a moment.
        """
        reply = await self.bench.box.call(name, ask)
        for _ in range(3):
            if reply.status != "unconfirmed":
                break
            if self.relieve is not None:
                await self.relieve()
            reply = await self.bench.box.call(name, ask.model_copy(update={"idempotency_key": reply.idempotency_key}))
        return reply

    def calls(self) -> Mapping[str, tuple[str, ToolArguments]]:
        """The calls in their order: what a failed script needs comes before it is sent again."""
        jobs = self.jobs
        why = "the data set was mended"
        return {
            "`get_status`": ("get_status", GetStatus()),
            "`get_status` with `errors`": ("get_status", GetStatus(sections=["errors"])),
            "`submit_job`: a new script": ("submit_job", SubmitJob(script="new.sh")),
            "`submit_job`: its last run failed just now": ("submit_job", SubmitJob(script="ended.sh")),
            "`submit_job`: nobody saw its last run end": (
                "submit_job", SubmitJob(script="unseen.sh", justification=why)),
            "`wait_for_job`: it runs": ("wait_for_job", WaitForJob(job_id=jobs["runs.sh"], timeout_seconds=0)),
            "`wait_for_job`: it ended just now": (
                "wait_for_job", WaitForJob(job_id=jobs["ended.sh"], timeout_seconds=5)),
            "`wait_for_job`: it ended long ago and was seen": (
                "wait_for_job", WaitForJob(job_id=jobs["seen.sh"], timeout_seconds=5)),
            "`wait_for_job`: it ended long ago unseen": (
                "wait_for_job", WaitForJob(job_id=jobs["unseen.sh"], timeout_seconds=5)),
            "`wait_for_job`: a number that no job has": ("wait_for_job", WaitForJob(job_id="999999", timeout_seconds=5)),
            "`analyze_log`: it ended just now": ("analyze_log", AnalyzeLog(job_id=jobs["ended.sh"])),
            "`analyze_log`: it ended long ago and was seen": ("analyze_log", AnalyzeLog(job_id=jobs["seen.sh"])),
            "`analyze_log`: it ended long ago unseen": ("analyze_log", AnalyzeLog(job_id=jobs["unseen.sh"])),
            "`analyze_log` with `recent_errors`": ("analyze_log", AnalyzeLog(recent_errors=20)),
            "`submit_job`: failed, analysed, with a reason": (
                "submit_job", SubmitJob(script="seen.sh", justification=why)),
            "`cancel_job`: it runs": ("cancel_job", CancelJob(job_id=jobs["runs.sh"], reason="not needed")),
            "`save_result`: it ended just now": (
                "save_result", SaveResult(name="one", status="failed", job_id=jobs["ended.sh"])),
            "`compare_results`": ("compare_results", CompareResults(baseline="one", target="one")),
            "`generate_script`": ("generate_script", GenerateScript(name="made", command="python train.py")),
            "`validate_config`": ("validate_config", ValidateConfig(config_path="new.sh")),
        }  # fmt: skip


async def cell(work: Awaitable[Any], ours: Collection[str]) -> str:
    """An answer in a few words: its status, what decides, and whether it names slurmdbd. `ours`: the project's jobs."""
    try:
        reply = await work
    except AgentToolsError as error:
        return f"error `{error.code}`" + _names(f"{error.message} {error.hint}")
    told = reply.model_dump(mode="json")
    if told["status"] == "cancelled":  # while it is ending the accounting is not needed, a moment later it is
        return "`cancelled`"
    return ", ".join([f"`{reply.status}`", *_decides(told, ours)]) + _names(json.dumps(told))


def _names(text: str) -> str:
    return "; names slurmdbd" if "slurmdbd" in text else ""


def _decides(told: Mapping[str, Any], ours: Collection[str]) -> list[str]:
    """What of an answer a caller acts on."""
    found = list[str]()
    job, queue = told.get("job") or {}, told.get("queue") or {}
    if job:
        code = "" if not job.get("exit_code") else f" {job['exit_code']}"
        found.append(f"{job['state']}{code}")
    if queue.get("recommendation"):
        found.append(queue["recommendation"])
    for name in ("slurm", "errors"):
        if isinstance(told.get(name), dict) and "error" in told[name]:
            found.append(f"{name}: `{told[name]['error']['code']}`")
    listed = [*(told.get("recent") or []), *(told["errors"] if isinstance(told.get("errors"), list) else [])]
    failures = [one for one in listed if one.get("job_id") in ours]
    if failures:
        found.append(f"{len(failures)} failures")
    if told.get("blocker"):
        rules = [
            rule["id"]
            for rule in (told.get("decision") or {}).get("rules", [])
            if rule["outcome"] in {"deny", "justify"}
        ]
        why = ", ".join(rules)
        if told["blocker"] == "policy" and not why:
            why = told["reason"]  # what no rule says
        found.append(f"{told['blocker']} {why}".strip())
    if told.get("diagnosis"):
        found.append(told["diagnosis"]["category"])
    return found


def page(table: Mapping[str, Answers]) -> str:
    """The table as a page: a row a call, a column for what is away."""
    columns = [SOURCES[name] for name in table]
    rows = [f"| | {' | '.join(columns)} |", f"|---|{'---|' * len(columns)}"]
    first = next(iter(table.values()))
    rows += [f"| {words} | {' | '.join(answers[words] for answers in table.values())} |" for words in first]
    return INTRODUCTION + "\n".join(rows) + "\n"


INTRODUCTION = """# When a part of Slurm is away

What each tool answers while the accounting (slurmdbd) or the controller (slurmctld) does not. The controller tells of
jobs that wait, run or ended within the last minutes; the accounting tells of those that ended before; the ledger of
these tools keeps what was seen of jobs that came through `submit_job`. Each call is answered from what is there, and
the answer says what is missing. *Just now* is while the controller still knows the job, *long ago* after it has
forgotten it (`MinJobAge`, 5 minutes by default); *seen* is a job whose end was looked at.

- A slurmdbd that refuses is asked again with every call. One that lets a command wait in vain gets half of
  `slurm.read_timeout`, and all of it where nobody else tells; for half a minute after that it is not asked where the
  controller can tell.
- What only the accounting knows is then missing: what a job used, its steps, who cancelled it, jobs that the controller
  has forgotten and that did not come through these tools.
- An accounting that answers without a job that Slurm took is believed after a day: it may be told of former jobs late. Until
  then the job is `unknown`, and asked for again every ten minutes at most.
- A script of whose last run nobody knows the end is sent all the same, with a warning in `decision.rules`.

The table is made by a test that makes these calls (`tests/unit/services/test_missing_sources.py`), and another makes
them with a real Slurm whose daemons are stopped (`tests/system/test_missing_sources.py`).

"""
