"""Jobs that somebody changes: requeued, updated, held while they run or are over."""

from __future__ import annotations

from tests.scenarios.bench import Bench, Seen
from tests.scenarios.table import scenario

from slurm_agent_tools.units import JobId


@scenario(seconds=10)
async def a_running_job_is_requeued(bench: Bench) -> Seen:
    number = await bench.submit("--requeue", script="sleep 600")
    await bench.becomes(number, "RUNNING")
    said = await bench.changed("scontrol", "requeue", str(number))
    await bench.becomes(number, "PENDING", reason="BeginTime")
    return {"said": said, "job": await bench.seen(number, "restarts", "nodes")}


@scenario(seconds=10)
async def a_finished_job_is_requeued(bench: Bench) -> Seen:
    number = await bench.submit("--requeue", script="exit 2")
    await bench.over(number)
    said = await bench.changed("scontrol", "requeue", str(number))
    await bench.becomes(number, "PENDING", reason="BeginTime")
    return {"said": said, "job": await bench.seen(number, "restarts")}


@scenario(seconds=10)
async def a_job_may_not_be_requeued(bench: Bench) -> Seen:
    number = await bench.submit("--no-requeue", script="sleep 600")
    await bench.becomes(number, "RUNNING")
    said = await bench.changed("scontrol", "requeue", str(number))
    return {"said": said, "job": await bench.seen(number, "restarts", "requeue")}


@scenario(seconds=10)
async def a_job_is_requeued_and_held(bench: Bench) -> Seen:
    number = await bench.submit("--requeue", script="sleep 600")
    await bench.becomes(number, "RUNNING")
    said = await bench.changed("scontrol", "requeuehold", str(number))
    await bench.becomes(number, "PENDING")
    return {"said": said, "job": await bench.seen(number, "restarts")}


@scenario()
async def a_waiting_job_is_changed(bench: Bench) -> Seen:
    number = await bench.submit("--hold", "--time=5", "--job-name=before")
    said = await bench.changed(
        "scontrol", "update", f"jobid={number}", "timelimit=20", "jobname=after", "partition=gpu"
    )
    nice = await bench.changed("scontrol", "update", f"jobid={number}", "nice=30")
    return {"said": said, "nice": nice, "granted": await bench.granted(number)}


@scenario()
async def the_memory_of_a_waiting_job_is_changed(bench: Bench) -> Seen:
    number = await bench.submit("--hold", "--mem=1G")
    said = await bench.changed("scontrol", "update", f"jobid={number}", "minmemorynode=2048")
    return {"said": said, "granted": await bench.granted(number)}


@scenario()
async def a_running_job_is_changed(bench: Bench) -> Seen:
    number = await bench.submit("--time=10", script="sleep 600")
    await bench.becomes(number, "RUNNING")
    longer = await bench.changed("scontrol", "update", f"jobid={number}", "timelimit=20")
    elsewhere = await bench.changed("scontrol", "update", f"jobid={number}", "partition=gpu")
    shorter = await bench.changed("scontrol", "update", f"jobid={number}", "timelimit=5")
    job = (await bench.client.job(JobId(number), fresh=True)).job
    return {"longer": longer, "elsewhere": elsewhere, "shorter": shorter, "limit": job.resources.time_limit_seconds}


@scenario()
async def a_finished_job_is_released_and_held(bench: Bench) -> Seen:
    number = await bench.submit(script="true")
    await bench.over(number)
    return {
        "release": await bench.changed("scontrol", "release", str(number)),
        "hold": await bench.changed("scontrol", "hold", str(number)),
        "cancel": await bench.changed("scancel", str(number)),
        "job": await bench.seen(number),
    }


@scenario()
async def the_script_and_its_arguments_are_kept(bench: Bench) -> Seen:
    number = await bench.submit("--hold", script='echo "$@"', args=("a b", "c"))
    script = await bench.client.batch_script(JobId(number))
    return {"script": script.decode(), "job": await bench.seen(number, "command")}
