"""How jobs end, and what the client tells of it."""

from __future__ import annotations

from tests.scenarios.bench import Bench, Seen
from tests.scenarios.table import scenario

HOG = "/usr/bin/python3 -c 'b=[]\nwhile True: b.append(bytearray(8<<20))'"


async def ended(bench: Bench, *options: str, script: str) -> Seen:
    number = await bench.submit("--job-name=x", "--output=logs/x.out", *options, script=script)
    await bench.over(number)
    seen = await bench.seen(number, "derived_exit_code", "derived_signal", "restarts")
    return {"job": seen, "accounting": await bench.accounted(number)}


@scenario()
async def a_job_succeeds(bench: Bench) -> Seen:
    found = await ended(bench, script="echo loss 0.25\nsleep 1\necho done")
    return found | {"log": bench.read("logs/x.out")}


@scenario()
async def a_script_fails(bench: Bench) -> Seen:
    found = await ended(bench, "--error=logs/x.err", script="echo started\necho boom >&2\nexit 3")
    return found | {"log": bench.read("logs/x.out"), "errors": bench.read("logs/x.err")}


@scenario()
async def an_exit_code_over_7_bits(bench: Bench) -> Seen:
    return await ended(bench, script="exit 200")


@scenario()
async def a_script_kills_itself(bench: Bench) -> Seen:
    return await ended(bench, script="kill -SEGV $$")


@scenario()
async def a_script_is_terminated(bench: Bench) -> Seen:
    return await ended(bench, script="kill -TERM $$")


@scenario()
async def a_command_is_not_there(bench: Bench) -> Seen:
    return await ended(bench, script="/nonexistent/train")


@scenario()
async def a_step_fails_behind_exit_code_0(bench: Bench) -> Seen:
    return await ended(bench, script="srun false\nexit 0")


@scenario()
async def a_step_fails_and_so_the_script(bench: Bench) -> Seen:
    return await ended(bench, script="srun true\nsrun false")


@scenario()
async def the_folder_of_the_log_is_not_there(bench: Bench) -> Seen:
    return await ended(bench, "--output=nowhere/x.out", script="true")


@scenario()
async def the_working_folder_is_not_there(bench: Bench) -> Seen:
    return await ended(bench, "--chdir=/nonexistent", script="true")


@scenario()
async def a_script_uses_too_much_memory(bench: Bench) -> Seen:
    bench.ends(fate="out_of_memory")
    number = await bench.submit("--job-name=x", "--output=logs/x.out", "--mem=100", script=HOG)
    await bench.over(number)
    seen = await bench.seen(number)
    return {"job": seen, "accounting": await bench.accounted(number), "told": "oom" in bench.read("logs/x.out").lower()}


@scenario(seconds=100)
async def the_time_is_up(bench: Bench) -> Seen:
    found = await ended(bench, "--time=1", script="echo on\nsleep 600")
    return found | {"told": "DUE TO TIME LIMIT" in bench.read("logs/x.out")}


@scenario()
async def a_running_job_is_cancelled(bench: Bench) -> Seen:
    number = await bench.submit("--output=logs/x.out", script="echo up\nsleep 600")
    await bench.becomes(number, "RUNNING")
    await bench.until(_written(bench), "its script runs")
    said = await bench.changed("scancel", str(number))
    await bench.over(number)
    log = "CANCELLED AT" in bench.read("logs/x.out")
    return {"said": said, "job": await bench.seen(number), "accounting": await bench.accounted(number), "log": log}


def _written(bench: Bench):
    async def look() -> bool:
        return (bench.project / "logs/x.out").exists() and "up" in bench.read("logs/x.out")

    return look


@scenario()
async def a_held_job_is_cancelled(bench: Bench) -> Seen:
    number = await bench.submit("--hold")
    await bench.accounted(number)
    await bench.changed("scancel", str(number))
    await bench.over(number)
    return {"job": await bench.seen(number), "accounting": await bench.accounted(number)}


@scenario(alone="node gpu02", seconds=90)
async def a_node_fails(bench: Bench) -> Seen:
    node = bench.node("gpu02")
    number = await bench.submit(
        "-pgpu", f"--nodelist={node}", "--no-requeue", "--output=logs/x.out", script="sleep 600"
    )
    await bench.becomes(number, "RUNNING")
    await bench.admin("scontrol", "update", f"nodename={node}", "state=down", "reason=broken")
    await bench.becomes(number, "NODE_FAIL")
    seen = await bench.seen(number, "required_nodes")
    await bench.over(number)
    return {"job": seen, "accounting": await bench.accounted(number)}


@scenario(alone="node gpu02", seconds=10)
async def a_node_is_drained(bench: Bench) -> Seen:
    node = bench.node("gpu02")
    await bench.admin("scontrol", "update", f"nodename={node}", "state=drain", "reason=disk")
    try:
        waits = await bench.submit("-pgpu", f"--nodelist={node}")
        await bench.until(_reason(bench, waits, "ReqNodeNotAvail"), "it waits for the node")
        nodes = {one.name: [one.state, one.reason, one.cpus_used] for one in await bench.client.nodes(max_age=0)}
        seen = await bench.seen(waits, "required_nodes")
        seen["reason"] = seen["reason"].partition(",")[0]  # 24.11 goes on now with the nodes, now with a reservation
        return {"waits": seen, "node": nodes[node]}
    finally:
        await bench.admin("scontrol", "update", f"nodename={node}", "state=resume")


def _reason(bench: Bench, number: int, reason: str):
    async def look() -> bool:
        return all(row[2].startswith(reason) for row in await bench.rows(number))

    return look


@scenario(alone="special", seconds=20)
async def a_job_is_preempted(bench: Bench) -> Seen:
    weak = ("-pspecial", "--exclusive", "--qos=scavenger", "--no-requeue", "--time=2", "--output=logs/x.out")
    bench.ends(after=600)
    number = await bench.submit(*weak, script="sleep 600")
    await bench.becomes(number, "RUNNING")
    strong = await bench.submit("-pspecial", "--exclusive", "--qos=high", "--time=1", script="sleep 1")
    await bench.over(number, strong)
    return {"job": await bench.seen(number, "qos"), "strong": await bench.seen(strong, "qos")}


@scenario()
async def components_of_a_het_job_end(bench: Bench) -> Seen:
    number = await bench.submit("-n1", "-pcpu", ":", "-n1", "-pgpu", script="sleep 1")
    held = await bench.submit("--hold", "-n1", ":", "-n2", "-pcpu", script="sleep 1")
    waiting = await bench.seen(held)
    await bench.over(number)
    return {"job": await bench.seen(number), "accounting": await bench.accounted(number), "held": waiting}


@scenario()
async def a_deadline_that_cannot_be_kept(bench: Bench) -> Seen:
    return {"said": await bench.refused("--hold", "--time=5", "--deadline=now+60")}


@scenario()
async def it_cannot_ever_run(bench: Bench) -> Seen:
    done = await bench.sbatch("-pgpu", "--gpus=9", "--job-name=never-fits", "--time=5")
    failed = [job for job in await bench.client.queue(max_age=0) if job.name == "never-fits"]
    return {
        "code": done.exit_code,
        "jobs": [bench.facts(job)["reason"] for job in failed],
        "states": [job.state for job in failed],
    }


@scenario()
async def a_held_job_that_never_fits_is_released(bench: Bench) -> Seen:
    number = await bench.submit("--hold", "-pcpu", "--mem=300G")
    said = await bench.changed("scontrol", "release", str(number))
    await bench.becomes(number, "PENDING", reason="BadConstraints")
    return {"said": said, "rows": await bench.rows(number, "%T|%r|%Q"), "job": await bench.seen(number)}


@scenario(seconds=120)
async def the_controller_forgets_a_job(bench: Bench) -> Seen:
    number = await bench.submit("--job-name=x", script="exit 200")
    await bench.over(number)

    async def forgotten() -> bool:
        return (await bench.slurm("scontrol", "show", "job", "--details", str(number))).exit_code != 0

    await bench.until(forgotten, "it is forgotten", seconds=200)
    then = await bench.refused("--hold", f"--dependency=afterok:{number}", "--time=5")
    return {"job": await bench.seen(number, "sources"), "dependency": then}
