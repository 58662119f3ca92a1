"""The tools themselves: submit, wait, cancel, analyse, and what they say when something goes wrong."""

from __future__ import annotations

from typing import Any

from tests.scenarios.bench import Bench, Seen
from tests.scenarios.table import scenario

from slurm_agent_tools.models.arguments import AnalyzeLog, CancelJob, GetStatus, SubmitJob, WaitForJob

HEAD = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --output=logs/x.out\n#SBATCH --time=10\n"


async def _submitted(bench: Bench, script: str, **more: Any) -> Any:
    bench.write("train.sh", script)
    reply = await bench.tool("submit_job", SubmitJob(script="train.sh", **more))
    if reply.job_id:
        bench.named(int(reply.job_id))
    return reply


def _told(bench: Bench, reply: Any) -> Seen:
    rules = [] if reply.decision is None else reply.decision.rules
    granted = None if reply.granted is None else reply.granted.model_dump(exclude_none=True)
    return {
        "status": reply.status, "granted": granted, "pinned": [pin.option for pin in reply.pinned],
        "denied": [rule.id for rule in rules if rule.outcome == "deny"], "job": bench.plain(reply.job_id or ""),
        "logs": None if reply.log_paths is None else bench.plain(reply.log_paths.stdout or ""),
    }  # fmt: skip


async def _waited(bench: Bench, number: str) -> Seen:
    reply = await bench.tool("wait_for_job", WaitForJob(job_id=number, timeout_seconds=55))
    job = reply.job
    return {
        "status": reply.status, "state": job.state, "exit": [job.exit_code, job.signal], "reason": job.reason,
        "report": reply.report is not None, "tasks": [[bench.plain(task.job_id), task.state] for task in reply.tasks or ()],
    }  # fmt: skip


@scenario(seconds=20)
async def submit_and_wait_for_a_success(bench: Bench) -> Seen:
    reply = await _submitted(bench, HEAD + "echo loss 0.5\nsleep 1\n")
    waited = await _waited(bench, reply.job_id)
    looked = await bench.tool("analyze_log", AnalyzeLog(job_id=reply.job_id))
    return {"sent": _told(bench, reply), "waited": waited, "log": [looked.status, looked.diagnosis.escalation]}


@scenario(seconds=20)
async def submit_and_wait_for_a_failure(bench: Bench) -> Seen:
    reply = await _submitted(bench, HEAD + "echo ModuleNotFoundError: No module named torch >&2\nexit 3\n")
    waited = await _waited(bench, reply.job_id)
    looked = await bench.tool("analyze_log", AnalyzeLog(job_id=reply.job_id))
    return {"waited": waited, "log": [looked.status, looked.diagnosis.category, looked.diagnosis.retry]}


@scenario(seconds=10)
async def submit_for_gpus(bench: Bench) -> Seen:
    reply = await _submitted(bench, "#!/bin/bash\n#SBATCH --partition=gpu\n#SBATCH --output=logs/x.out\nsleep 1\n")
    return _told(bench, reply)


@scenario(seconds=10)
async def submit_only_to_see(bench: Bench) -> Seen:
    reply = await _submitted(bench, HEAD + "sleep 1\n", dry_run=True)
    jobs = [job for job in await bench.client.queue(max_age=0) if job.work_dir == str(bench.project)]
    return _told(bench, reply) | {"jobs": len(jobs)}


@scenario(seconds=10)
async def submit_what_the_policy_refuses(bench: Bench) -> Seen:
    return _told(bench, await _submitted(bench, HEAD + "#SBATCH --requeue\nsleep 1\n", dependency="afterok:9999999"))


@scenario(seconds=20)
async def submit_and_cancel(bench: Bench) -> Seen:
    reply = await _submitted(bench, HEAD + "sleep 600\n")
    await bench.becomes(int(reply.job_id), "RUNNING")
    await bench.tool("wait_for_job", WaitForJob(job_id=reply.job_id, timeout_seconds=0))
    first = await bench.tool("cancel_job", CancelJob(job_id=reply.job_id, reason="not needed"))
    await bench.over(int(reply.job_id))
    again = await bench.tool("cancel_job", CancelJob(job_id=reply.job_id, reason="not needed"))
    return {"first": first.status, "again": again.status, "job": await bench.seen(int(reply.job_id))}


@scenario(seconds=20)
async def submit_an_array_and_wait(bench: Bench) -> Seen:
    body = "sleep 1\n[ $SLURM_ARRAY_TASK_ID != 1 ] || exit 5\n"
    reply = await _submitted(bench, HEAD.replace("x.out", "%a.out") + body, array="0-2%2")
    return {"sent": _told(bench, reply), "waited": await _waited(bench, reply.job_id)}


@scenario(seconds=10)
async def the_same_key_gives_the_first_answer(bench: Bench) -> Seen:
    first = await _submitted(bench, HEAD + "sleep 1\n", idempotency_key="one")
    again = await _submitted(bench, HEAD + "sleep 1\n", idempotency_key="one")
    return {"same": first.job_id == again.job_id, "status": again.status}


@scenario(seconds=20)
async def a_lost_reply_is_found_again(bench: Bench) -> Seen:
    bench.runner.lost.append(("sbatch", "--parsable"))
    reply = await _submitted(bench, HEAD + "sleep 1\n")
    return {"sent": _told(bench, reply), "waited": await _waited(bench, reply.job_id)}


@scenario(seconds=20)
async def a_job_drifts_while_it_waits(bench: Bench) -> Seen:
    reply = await _submitted(bench, HEAD + "#SBATCH --begin=now+1hour\nsleep 1\n")
    said = await bench.changed("scontrol", "update", f"jobid={reply.job_id}", "timelimit=20:00:00")
    waited = await bench.tool("wait_for_job", WaitForJob(job_id=reply.job_id, timeout_seconds=0))
    status = await bench.tool("get_status", GetStatus())
    other = await _submitted(bench, HEAD + "#SBATCH --begin=now+2hours\nsleep 1\n")

    def drifted(answer: Any) -> list[list[str]]:
        alerts = [one for one in answer.alerts if one.job_id == reply.job_id and one.code.startswith("drift")]
        return [[one.severity, one.code] for one in alerts]

    return {
        "said": said, "status": waited.status, "alerts": drifted(waited), "get_status": drifted(status),
        "next submission": [other.status, drifted(other)],
    }  # fmt: skip


@scenario(seconds=20)
async def a_job_is_cancelled_before_it_is_released(bench: Bench) -> Seen:
    reply = await _submitted(bench, HEAD + "#SBATCH --begin=now+1hour\nsleep 1\n")
    await bench.slurm("scancel", reply.job_id)
    await bench.over(int(reply.job_id))
    return {"waited": await _waited(bench, reply.job_id)}
