"""Jobs that wait or run: states, reasons, order, and what is told of them."""

from __future__ import annotations

from datetime import timedelta

from tests.scenarios.bench import Bench, Seen
from tests.scenarios.table import scenario

from slurm_agent_tools.slurm.commands.columns import SEPARATOR
from slurm_agent_tools.units import JobId, parse_time


@scenario()
async def a_held_job(bench: Bench) -> Seen:
    number = await bench.submit("--hold", "--job-name=kept", "--nice=20")
    rows = await bench.rows(number, "%i|%T|%r|%Q|%S|%e|%M|%N|%D|%C|%l|%E")
    seen = await bench.seen(number, "nice", "nodes", "expected_start", "resources")
    return {
        "rows": [bench.plain("|".join(row)) for row in rows],
        "job": seen,
        "accounting": await bench.accounted(number),
    }


@scenario()
async def a_held_job_is_released(bench: Bench) -> Seen:
    number = await bench.submit("--hold", script="exit 4")
    await bench.client.release(JobId(number))
    await bench.over(number)
    return {"job": await bench.seen(number), "accounting": await bench.accounted(number)}


@scenario()
async def a_running_job(bench: Bench) -> Seen:
    number = await bench.submit("-n2", "--mem-per-cpu=300", script="sleep 60")
    await bench.becomes(number, "RUNNING")
    job = (await bench.client.job(JobId(number), fresh=True)).job
    limit = None if job.ended is None else "ended"
    return {"job": bench.facts(job, "resources", "dependency", "expected_start"), "limit": limit}


@scenario()
async def a_job_begins_later(bench: Bench) -> Seen:
    number = await bench.submit("--begin=now+1hour")
    await bench.becomes(number, "PENDING", reason="BeginTime")
    job = (await bench.client.job(JobId(number), fresh=True)).job
    assert job.expected_start is not None
    assert job.submitted is not None
    wait = job.expected_start - job.submitted
    row = (await bench.rows(number, "%S"))[0][0]
    said = parse_time(row)
    hour = timedelta(minutes=59) < wait <= timedelta(hours=1)  # sbatch counts it before the controller has the job
    return {"job": bench.facts(job), "hour": hour, "same": said == job.expected_start}


@scenario()
async def a_waiting_job_is_held_and_released(bench: Bench) -> Seen:
    number = await bench.submit("--begin=now+1hour")
    await bench.becomes(number, "PENDING", reason="BeginTime")
    held = await bench.changed("scontrol", "hold", str(number))
    rows = await bench.rows(number, "%T|%r|%Q")
    released = await bench.changed("scontrol", "release", str(number))
    await bench.becomes(number, "PENDING", reason="BeginTime")
    return {"held": held, "rows": rows, "released": released}


@scenario(alone="special", seconds=25)
async def who_goes_first(bench: Bench) -> Seen:
    first = await bench.submit("-pspecial", "--exclusive", "--time=2", "--job-name=first", script="sleep 600")
    await bench.becomes(first, "RUNNING")
    low = await bench.submit("-pspecial", "--exclusive", "--nice=50", "--time=1", "--job-name=low")
    high = await bench.submit("-pspecial", "--exclusive", "--nice=1", "--time=1", "--job-name=high")
    await bench.becomes(high, "PENDING", reason="Resources")
    await bench.becomes(low, "PENDING", reason="Priority")
    priorities = [int((await bench.rows(one, "%Q"))[0][0]) for one in (low, high)]
    node = next(one for one in await bench.client.nodes(max_age=0) if one.name.endswith("spec01"))
    await bench.changed("scancel", str(first))
    await bench.over(high, low)
    ended = [(await bench.client.job(JobId(one), fresh=True)).job.started for one in (high, low)]
    assert ended[0] is not None
    assert ended[1] is not None
    return {
        "apart": priorities[1] - priorities[0], "node": [node.state, node.cpus_used, node.gpus_used, node.cpus],
        "in order": ended[0] < ended[1],
    }  # fmt: skip


@scenario()
async def it_is_over_a_limit_of_the_partition(bench: Bench) -> Seen:
    long = await bench.submit("-pspecial", "--time=5:00:00")
    wide = await bench.submit("-pspecial", "-N2")
    await bench.becomes(long, "PENDING", reason="PartitionTimeLimit")
    await bench.becomes(wide, "PENDING", reason="PartitionNodeLimit")
    return {"long": await bench.seen(long), "wide": await bench.seen(wide), "accounts": await bench.accounted(long)}


@scenario()
async def more_nodes_than_there_are(bench: Bench) -> Seen:
    return {"said": await bench.refused("-pcpu", "-N3", "--time=5")}


@scenario(seconds=10)
async def a_job_is_suspended(bench: Bench) -> Seen:
    number = await bench.submit(script="sleep 30")
    await bench.becomes(number, "RUNNING")
    await bench.admin("scontrol", "suspend", str(number))
    await bench.becomes(number, "SUSPENDED")
    seen = await bench.seen(number)
    await bench.admin("scontrol", "resume", str(number))
    await bench.becomes(number, "RUNNING")
    return {"suspended": seen, "resumed": await bench.seen(number)}


@scenario()
async def nobody_knows_the_job(bench: Bench) -> Seen:
    return {
        "job": await bench.answer(bench.client.job(JobId(9_999_999))), "cancel": await bench.changed("scancel", "9999999"),
        "release": await bench.changed("scontrol", "release", "9999999"),
        "hold": await bench.changed("scontrol", "hold", "9999999"),
        "held": await bench.answer(bench.client.held(JobId(9_999_999))),
        "update": await bench.changed("scontrol", "update", "jobid=9999999", "timelimit=1"),
        "rows": await bench.changed("squeue", "-h", "-j", "9999999", "-o", "%i"),
        "accounts": await bench.accounted(9_999_999, patient=False),
    }  # fmt: skip


@scenario()
async def names_that_hold_anything(bench: Bench) -> Seen:
    names = ['a|b "c"', "x JobState=RUNNING\n   JobState=RUNNING", f"n{SEPARATOR}m", "ünïcode"]
    numbers = [await bench.submit("--hold", f"--job-name={name}") for name in names]
    views = await bench.client.jobs([JobId(number) for number in numbers], fresh=True)
    return {"names": [views[JobId(number)].job.name for number in numbers]}


@scenario()
async def logs_with_signs_in_their_names(bench: Bench) -> Seen:
    pattern = ["--job-name=train", "--output=logs/%x-%j-%u.out", "--error=logs/%x.err"]
    number = await bench.submit(*pattern, script="echo $SLURM_JOB_NAME")
    array = await bench.submit("--array=1-2", "--output=logs/%A_%3a.txt", script="echo task $SLURM_ARRAY_TASK_ID")
    default = await bench.submit(script="echo plain")
    await bench.over(number, array, default)
    paths = await bench.seen(number, "stdout", "stderr")
    files = sorted(bench.plain(path.name) for path in (bench.project / "logs").iterdir())
    usual = [bench.plain(path.name) for path in bench.project.glob("slurm-*")]
    return {"paths": paths, "files": files, "usual": usual, "second": bench.read(f"logs/{array}_002.txt")}


@scenario()
async def a_job_is_found_by_its_comment(bench: Bench) -> Seen:
    token, other = "sat-0123456789abcdef", "sat-fedcba9876543210"
    number = await bench.submit("--hold", f"--comment={token}:run/7")
    ended = await bench.submit(f"--comment={other}", script="true")
    await bench.over(ended)
    found = await bench.client.find_token(token)
    assert found is not None
    late = [job for job in await bench.client.recent_all(bench.clock.now()) if job.comment == other]
    return {
        "held": bench.facts(found, "comment"), "ended": [bench.facts(job, "comment")["id"] for job in late],
        "nobody": await bench.client.find_token("sat-0000000000000000") is None, "number": bench.named(number),
    }  # fmt: skip


@scenario()
async def a_window_of_the_accounting(bench: Bench) -> Seen:
    held = await bench.submit("--hold", "--job-name=window-held")
    ended = await bench.submit("--job-name=window-ended", script="true")
    await bench.over(ended)
    jobs = await bench.client.recent_all(bench.clock.now())
    ours = [job for job in jobs if job.name.startswith("window-")]
    return {"shown": sorted(job.name for job in ours), "by name": await bench.accounted(held)}


_NOT_RECORDED = frozenset({"tier", "preempt_mode", "limited_to"})


@scenario()
async def the_cluster_itself(bench: Bench) -> Seen:
    partitions = await bench.client.partitions(fresh=True)
    shown = {
        name: {key: getattr(part, key) for key in part.__dataclass_fields__ if key not in _NOT_RECORDED}
        for name, part in sorted(partitions.items())
    }
    nodes = [
        [
            bench.plain(node.name),
            node.partitions,
            node.cpus,
            node.memory_bytes,
            node.gpus,
            node.gpu_types,
            node.threads_per_core,
        ]
        for node in await bench.client.nodes()
    ]
    info = await bench.client.info()
    return {
        "partitions": shown, "nodes": nodes, "accounting": info.accounting, "version": info.version[:5],
        "reservations": len(await bench.client.running.reservations()),
    }  # fmt: skip


@scenario()
async def what_is_used_now(bench: Bench) -> Seen:
    number = await bench.submit(script="sleep 60")
    held = await bench.submit("--hold")
    await bench.becomes(number, "RUNNING")

    async def told() -> bool:
        return bool((await bench.client.running.use([number])).get(number))

    async def again() -> bool:
        bench.client.running._use._kept.clear()
        return await told()

    await bench.until(again, "steps")
    use = await bench.client.running.use([number, held])
    return {"steps": [[step.step_id, step.tasks] for step in use[number]], "held": held in use}
