"""Dependencies: kept, never kept, unknown, malformed."""

from __future__ import annotations

from tests.scenarios.bench import OVER, Bench, Seen
from tests.scenarios.table import scenario


async def _behind(bench: Bench, kind: str, code: int) -> Seen:
    """A job that ends with a code, and one behind it."""
    first = await bench.submit("--hold", script=f"sleep 1\nexit {code}")
    then = await bench.submit(f"--dependency={kind}:{first}")
    await bench.becomes(then, "PENDING", reason="Dependency")
    before = await bench.seen(then, "dependency")
    await bench.changed("scontrol", "release", str(first))
    await bench.over(first)

    async def settled() -> bool:
        rows = await bench.rows(then)
        return rows[0][1] in OVER or rows[0][2] == "DependencyNeverSatisfied"

    await bench.until(settled, "it ran or never will")
    return {"before": before, "then": await bench.seen(then, "dependency")}


@scenario(seconds=10)
async def after_a_success(bench: Bench) -> Seen:
    return await _behind(bench, "afterok", 0)


@scenario(seconds=10)
async def after_a_success_that_did_not_come(bench: Bench) -> Seen:
    return await _behind(bench, "afterok", 2)


@scenario(seconds=10)
async def after_a_failure(bench: Bench) -> Seen:
    return await _behind(bench, "afternotok", 2)


@scenario(seconds=10)
async def after_a_failure_that_did_not_come(bench: Bench) -> Seen:
    return await _behind(bench, "afternotok", 0)


@scenario(seconds=10)
async def after_any_end(bench: Bench) -> Seen:
    return await _behind(bench, "afterany", 2)


@scenario(seconds=10)
async def after_a_start(bench: Bench) -> Seen:
    first = await bench.submit("--hold", script="sleep 600")
    then = await bench.submit(f"--dependency=after:{first}", script="true")
    await bench.becomes(then, "PENDING", reason="Dependency")
    before = await bench.seen(then, "dependency")
    await bench.changed("scontrol", "release", str(first))
    await bench.over(then)
    return {"before": before, "first": await bench.seen(first), "then": await bench.seen(then, "dependency")}


@scenario(seconds=10)
async def one_of_a_name_at_a_time(bench: Bench) -> Seen:
    first = await bench.submit("--job-name=single", "--hold", script="true")
    second = await bench.submit("--job-name=single", "--dependency=singleton", script="true")
    await bench.becomes(second, "PENDING", reason="Dependency")
    before = await bench.seen(second, "dependency")
    await bench.changed("scontrol", "release", str(first))
    await bench.over(first, second)
    return {"before": before, "then": await bench.seen(second, "dependency")}


@scenario(seconds=10)
async def one_of_two_is_enough(bench: Bench) -> Seen:
    bad = await bench.submit(script="exit 2")
    good = await bench.submit("--hold", script="true")
    then = await bench.submit(f"--dependency=afterok:{bad}?afterok:{good}", script="true")
    await bench.over(bad)
    await bench.becomes(then, "PENDING", reason="Dependency")
    before = await bench.seen(then)
    await bench.changed("scontrol", "release", str(good))
    await bench.over(good, then)
    return {"before": before, "then": await bench.seen(then, "dependency")}


@scenario(seconds=10)
async def both_of_two(bench: Bench) -> Seen:
    one = await bench.submit(script="sleep 1")
    two = await bench.submit("--hold", script="true")
    then = await bench.submit(f"--dependency=afterok:{one}:{two}", script="true")
    await bench.over(one)

    async def looked() -> bool:
        return (await bench.rows(then, "%i|%T|%E"))[0][2] == f"afterok:{two}(unfulfilled)"

    await bench.until(looked, "one is done")
    before = await bench.seen(then, "dependency")
    await bench.changed("scontrol", "release", str(two))
    await bench.over(two, then)
    return {"before": before, "then": await bench.seen(then, "dependency")}


@scenario(seconds=10)
async def after_all_tasks_of_an_array(bench: Bench) -> Seen:
    array = await bench.submit("--hold", "--array=0-1", script="[ $SLURM_ARRAY_TASK_ID != 1 ] || exit 5")
    bad = await bench.submit(f"--dependency=afterok:{array}")
    first = await bench.submit(f"--dependency=afterok:{array}_0", script="true")
    await bench.becomes(bad, "PENDING", reason="Dependency")
    before = await bench.seen(bad, "dependency")
    await bench.changed("scontrol", "release", str(array))
    await bench.over(array, first)
    await bench.becomes(bad, "PENDING", reason="DependencyNeverSatisfied")
    return {"before": before, "bad": await bench.seen(bad, "dependency"), "first": await bench.seen(first)}


@scenario()
async def behind_a_job_that_never_was(bench: Bench) -> Seen:
    return {
        "said": await bench.refused("--hold", "--dependency=afterok:9999999", "--time=5"),
        "any": await bench.refused("--hold", "--dependency=afterany:9999999", "--time=5"),
        "bad": await bench.refused("--hold", "--dependency=whenever:1", "--time=5"),
        "held": (await bench.rows(await bench.submit("--hold", "--dependency=after:9999999"), "%E|%r"))[0],
    }


@scenario(seconds=10)
async def behind_a_cancelled_job(bench: Bench) -> Seen:
    first = await bench.submit("--hold")
    good = await bench.submit(f"--dependency=afterok:{first}")
    ever = await bench.submit(f"--dependency=afterany:{first}", script="true")
    await bench.changed("scancel", str(first))
    await bench.over(ever)
    await bench.becomes(good, "PENDING", reason="DependencyNeverSatisfied")
    return {"good": await bench.seen(good, "dependency"), "ever": await bench.seen(ever)}
