"""Arrays: ids, limits, ends of tasks, and parts of them cancelled or released."""

from __future__ import annotations

from tests.scenarios.bench import OVER, Bench, Seen
from tests.scenarios.table import scenario

from slurm_agent_tools.units import JobId


@scenario()
async def tasks_end_each_for_itself(bench: Bench) -> Seen:
    number = await bench.submit("--array=0-3", script="sleep 1\n[ $SLURM_ARRAY_TASK_ID != 2 ] || exit 5")
    await bench.over(number)
    return {"job": await bench.seen(number), "accounting": await bench.accounted(number)}


async def _two_run(bench: Bench, number: int) -> None:
    async def look() -> bool:
        rows = await bench.rows(number)
        return sum(row[1] == "RUNNING" for row in rows) == 2 and any(row[2] == "JobArrayTaskLimit" for row in rows)

    await bench.until(look, "two tasks run")


@scenario()
async def a_limit_of_tasks_at_once(bench: Bench) -> Seen:
    number = await bench.submit("--array=0-5%2", script="sleep 600")
    await _two_run(bench, number)
    rows = sorted(bench.plain("|".join(row)) for row in await bench.rows(number))
    return {"rows": rows, "job": await bench.seen(number, "resources")}


@scenario()
async def a_waiting_task_is_cancelled(bench: Bench) -> Seen:
    number = await bench.submit("--hold", "--array=0-3")
    said = await bench.changed("scancel", f"{number}_1")
    rows = [bench.plain("|".join(row)) for row in await bench.rows(number)]
    return {"said": said, "rows": rows, "job": await bench.seen(number, "resources")}


@scenario()
async def a_waiting_array_is_cancelled(bench: Bench) -> Seen:
    number = await bench.submit("--hold", "--array=0-3")
    await bench.accounted(number)
    await bench.changed("scancel", str(number))
    await bench.over(number)
    return {"job": await bench.seen(number), "accounting": await bench.accounted(number)}


@scenario()
async def a_running_task_is_cancelled(bench: Bench) -> Seen:
    number = await bench.submit("--array=0-1", "--output=logs/%a.out", script="echo up\nsleep 600")
    await bench.becomes(number, "RUNNING")

    async def up() -> bool:  # before its script runs, it may miss the first signal, and ends by the second
        return (bench.project / "logs/1.out").exists() and "up" in bench.read("logs/1.out")

    await bench.until(up, "the script runs")
    await bench.changed("scancel", f"{number}_1")

    async def look() -> bool:
        view = await bench.client.job(JobId(number), fresh=True)
        return any(task.cancelled_by is not None for task in view.tasks)

    await bench.until(look, "one task is over, and the accounting knows by whom")
    return {"job": await bench.seen(number)}


@scenario(seconds=10)
async def an_array_is_cancelled_while_some_run(bench: Bench) -> Seen:
    number = await bench.submit("--array=0-5%2", script="echo up\nsleep 600")
    await _two_run(bench, number)

    async def both_up() -> bool:  # a task that has not begun its script is killed, not asked to end
        return sum(path.read_text() == "up\n" for path in bench.project.glob(f"slurm-{number}_*.out")) == 2

    await bench.until(both_up, "the scripts of two tasks run")
    await bench.changed("scancel", str(number))
    await bench.over(number)
    return {"job": await bench.seen(number)}


@scenario(seconds=10)
async def one_task_is_released(bench: Bench) -> Seen:
    number = await bench.submit("--hold", "--array=0-3")
    said = await bench.changed("scontrol", "release", f"{number}_2")

    async def look() -> bool:
        return any(row[1] in OVER for row in await bench.rows(number))

    await bench.until(look, "one task is over")
    return {"said": said, "rows": sorted(bench.plain("|".join(row)) for row in await bench.rows(number))}


@scenario()
async def steps_between_tasks(bench: Bench) -> Seen:
    number = await bench.submit("--hold", "--array=1-9:2%3", "--job-name=sweep")
    return {
        "granted": await bench.granted(number),
        "rows": [bench.plain("|".join(row)) for row in await bench.rows(number)],
    }


@scenario()
async def an_array_waits_for_its_time(bench: Bench) -> Seen:
    number = await bench.submit("--array=0-49%2", "--begin=now+1hour")
    await bench.becomes(number, "PENDING", reason="BeginTime")
    return {"job": await bench.seen(number, "resources"), "accounting": await bench.accounted(number)}
