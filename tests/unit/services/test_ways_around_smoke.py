"""Tries to run a large job without a smoke run of that very configuration. None of them gets through."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
from tests.unit.services.ladders import FILES, SCRIPT, SMOKE, laboratory, large, over, rule, smoke
from tests.unit.services.scenes import Scene

Try = Callable[[Scene], Awaitable[Any]]

TRIES: dict[str, Try] = {}
"""Each begins where nothing was tried yet, and returns the answer to its last call."""


def tries(made: Try) -> Try:
    """Note one."""
    TRIES[made.__name__.replace("_", " ")] = made
    return made


def edited(scene: Scene, old: str, new: str, name: str = "train.sh") -> None:
    text = (scene.project / name).read_text()
    assert old in text
    scene.write(name, text.replace(old, new))


def behind_a_smoke_run(name: str, change: Callable[[Scene], None], **more: Any) -> None:
    """Something changes after the smoke run passed, and the large job is submitted with `more`."""

    async def made(scene: Scene) -> Any:
        await smoke(scene)
        change(scene)
        return await large(scene, **more)

    TRIES[name] = made


def unchanged(_: Scene) -> None:
    """Nothing changes on disk."""


# --- no smoke run at all ----------------------------------------------------------------------------------------------


@tries
async def no_stage_at_all(scene: Scene) -> Any:
    return await large(scene)


@tries
async def it_is_called_production(scene: Scene) -> Any:
    return await large(scene, stage="production")


@tries
async def it_is_called_a_pilot(scene: Scene) -> Any:
    return await large(scene, stage="pilot")


@tries
async def it_is_called_a_smoke_run(scene: Scene) -> Any:
    return await large(scene, stage="smoke")


@tries
async def it_is_called_a_smoke_run_of_a_whole_array(scene: Scene) -> Any:
    return await large(scene, stage="smoke", time_limit="00:30:00", array="0-399%4")


@tries
async def a_smoke_run_of_31_minutes(scene: Scene) -> Any:
    return await large(scene, stage="smoke", time_limit="00:31:00")


@tries
async def a_smoke_run_without_an_end(scene: Scene) -> Any:
    return await large(scene, stage="smoke", time_limit="UNLIMITED")


@tries
async def a_reason_of_one_word(scene: Scene) -> Any:
    return await large(scene, justification="needed")


@tries
async def the_words_of_the_remedy_as_the_reason(scene: Scene) -> Any:
    return await large(scene, justification="<why no smoke run is needed>")


@tries
async def the_reason_on_a_line_of_the_script(scene: Scene) -> Any:
    edited(scene, "--time=12:00:00", "--time=12:00:00  # JUSTIFIED: it has to run for twelve hours")
    return await large(scene)


@tries
async def another_priority_and_a_name_for_the_run(scene: Scene) -> Any:
    return await large(scene, priority="low", run_id="production")


@tries
async def the_same_key_again_and_again(scene: Scene) -> Any:
    await large(scene, idempotency_key="k")
    return await large(scene, idempotency_key="k")


@tries
async def a_dry_run_first(scene: Scene) -> Any:
    await large(scene, dry_run=True)
    return await large(scene)


@tries
async def split_into_the_tasks_of_an_array(scene: Scene) -> Any:
    return await large(scene, time_limit="01:00:00", array="0-11%4")


@tries
async def just_below_the_size_many_times(scene: Scene) -> Any:
    scene.slurm.next_job(after=None)
    first = await large(scene, time_limit="07:55:00")
    assert first.status == "submitted", first.summary
    return await large(scene, time_limit="07:54:00", job_name="second")


@tries
async def just_below_the_size_one_after_the_other(scene: Scene) -> Any:
    scene.slurm.next_job(after=7 * 3600)
    first = await large(scene, time_limit="07:55:00")
    scene.slurm.clock.move(7 * 3600 + 60)
    await over(scene, first.job_id)
    return await large(scene, time_limit="07:54:00")


@tries
async def split_over_arrays_of_their_own(scene: Scene) -> Any:
    for part in ("0", "1"):
        reply = await large(scene, time_limit="07:55:00", array=part)
    return reply


@tries
async def small_parts_that_wait_for_each_other(scene: Scene) -> Any:
    first = await large(scene, time_limit="07:55:00")
    return await large(scene, time_limit="07:55:00", dependency=f"afterany:{first.job_id}")


@tries
async def no_time_limit_that_can_be_counted(scene: Scene) -> Any:
    return await large(scene, time_limit="UNLIMITED", justification="x")


# --- a smoke run that shows nothing -----------------------------------------------------------------------------------


@tries
async def a_smoke_run_that_was_cancelled(scene: Scene) -> Any:
    scene.slurm.next_job(after=600)
    tried = await scene.submit(args=["--steps", "50"], **SMOKE)
    await scene.wait(tried.job_id)
    await scene.cancel(tried.job_id)
    scene.slurm.clock.move(30)
    return await large(scene)


@tries
async def a_smoke_run_that_only_waits(scene: Scene) -> Any:
    scene.slurm.next_job(after=600)
    await scene.submit(args=["--steps", "50"], **SMOKE)
    return await large(scene)


@tries
async def two_at_once(scene: Scene) -> Any:
    await scene.status()
    replies: list[Any] = []

    async def one(**more: Any) -> None:
        replies.append(await scene.submit(look=False, **more))

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: one(args=["--steps", "50"], **SMOKE))
        group.start_soon(lambda: one(args=["--steps", "100000"]))
    return next(reply for reply in replies if reply.requested.time_limit_seconds > 1800)


@tries
async def a_smoke_run_that_failed(scene: Scene) -> Any:
    await smoke(scene, exit_code=2)
    return await large(scene, justification="it fails at the end of the short run only")


@tries
async def a_dry_run_of_the_smoke_run(scene: Scene) -> Any:
    await scene.submit(args=["--steps", "50"], dry_run=True, **SMOKE)
    return await large(scene)


@tries
async def the_key_of_the_smoke_run(scene: Scene) -> Any:
    scene.slurm.next_job(after=60, exit_code=1)
    await scene.submit(args=["--steps", "50"], idempotency_key="k", **SMOKE)
    return await large(scene, idempotency_key="other")


@tries
async def a_job_past_the_tools(scene: Scene) -> Any:
    scene.slurm.next_job(after=60)
    scene.slurm.submit(SCRIPT, "--time=20", "--comment=smoke")
    scene.slurm.clock.move(600)
    return await large(scene)


@tries
async def a_small_job_that_is_no_stage(scene: Scene) -> Any:
    scene.slurm.next_job(after=60)
    reply = await large(scene, time_limit="00:20:00")
    await over(scene, reply.job_id)
    return await large(scene)


@tries
async def the_file_changed_while_the_smoke_run_waited(scene: Scene) -> Any:
    scene.slurm.next_job(after=60)
    tried = await scene.submit(args=["--steps", "50"], **SMOKE)
    scene.write("train.py", "print('quick')\n")
    await scene.status()
    await over(scene, tried.job_id)
    scene.write("train.py", FILES["train.py"])
    return await large(scene)


@tries
async def a_declaration_that_calls_everything_a_length(scene: Scene) -> Any:
    edited(scene, "length: --steps", "length: --nodes --steps")
    await scene.submit(args=["--steps", "50"], **SMOKE)
    return await large(scene)


@tries
async def a_declaration_of_a_file_outside(scene: Scene) -> Any:
    edited(scene, "#SMOKE length", "#SMOKE writes: ../train.py\n#SMOKE length")
    await scene.submit(args=["--steps", "50"], **SMOKE)
    return await large(scene)


@tries
async def a_declaration_that_cannot_be_read(scene: Scene) -> Any:
    edited(scene, "#SMOKE length", "#SMOKE skip: all\n#SMOKE length")
    await scene.submit(args=["--steps", "50"], **SMOKE)
    return await large(scene)


# --- a smoke run of something else ------------------------------------------------------------------------------------

behind_a_smoke_run("other arguments", unchanged, args=["--steps", "100000", "--lr", "0.2"])
behind_a_smoke_run("the arguments in another order", unchanged, args=["100000", "--steps"])
behind_a_smoke_run("the length in another spelling", unchanged, args=["--steps=100000"])
behind_a_smoke_run("a length that is no number", unchanged, args=["--steps", "all"])
behind_a_smoke_run("a length that is a command", unchanged, args=["--steps", "$(cat steps)"])
behind_a_smoke_run("another number that is not declared", unchanged, args=["--steps", "100000", "--epochs", "90"])
behind_a_smoke_run("no arguments", unchanged, args=[])
behind_a_smoke_run("an array of what was tried alone", unchanged, array="0-9%2")
behind_a_smoke_run(
    "more CPUs", lambda scene: edited(scene, "--cpus-per-task=8", "--cpus-per-task=16"), time_limit="11:00:00"
)
behind_a_smoke_run("more tasks", lambda scene: edited(scene, "#SBATCH --mem", "#SBATCH --ntasks=2\n#SBATCH --mem"))
behind_a_smoke_run("two nodes", lambda scene: edited(scene, "#SBATCH --mem", "#SBATCH --nodes=2\n#SBATCH --mem"))
behind_a_smoke_run("on a partition with GPUs", unchanged, partition="gpu")
behind_a_smoke_run(
    "settings by --export",
    lambda scene: edited(scene, "#SBATCH --mem", "#SBATCH --export=ALL,LR=0.2\n#SBATCH --mem"),
)
behind_a_smoke_run(
    "another folder to run in", lambda scene: edited(scene, "#SBATCH --mem", "#SBATCH --chdir=lab\n#SBATCH --mem")
)
behind_a_smoke_run("a word in the script", lambda scene: edited(scene, "python train.py", "python -O train.py"))
behind_a_smoke_run("a comment in the script", lambda scene: edited(scene, "STEPS=", "# for real\nSTEPS="))
behind_a_smoke_run("a length that turns into a command", lambda scene: edited(scene, "STEPS=100000", "STEPS=1;./x"))
behind_a_smoke_run("one more length", lambda scene: edited(scene, "length: --steps", "length: --epochs --steps"))
behind_a_smoke_run("a module that is imported", lambda scene: scene.write("lab/deep/layers.py", "y = 3\n"))
behind_a_smoke_run("a module that hides another", lambda scene: scene.write("helper.py", "import lab.deep.layers\n"))
behind_a_smoke_run("a package that is new", lambda scene: scene.write("helper/__init__.py", "z = 1\n"))
behind_a_smoke_run("the settings", lambda scene: edited(scene, "lr: 0.1", "lr: 0.2", "configs/a.yaml"))
behind_a_smoke_run("the data", lambda scene: scene.write("data/points.csv", "1,2\n3,4\n"))
behind_a_smoke_run("data that a program names", lambda scene: scene.write("data/weights.txt", "0.6\n"))
behind_a_smoke_run("a file that is gone", lambda scene: (scene.project / "data" / "points.csv").unlink())


def relinked(scene: Scene) -> None:
    scene.write("data/large.csv", "1,2\n" * 100)
    (scene.project / "data" / "points.csv").unlink()
    (scene.project / "data" / "points.csv").symlink_to("large.csv")


behind_a_smoke_run("data that became a link", relinked)


def older_data(scene: Scene) -> None:
    """Data that lay elsewhere until now, under a name that the program looks for."""
    scene.write("data/more.txt", "7\n")
    os.utime(scene.project / "data/more.txt", (1, 1))


behind_a_smoke_run("data that is new here and was written long ago", older_data)


def another_script(scene: Scene) -> None:
    scene.write("big.sh", SCRIPT.replace("train.py", "helper.py"))


behind_a_smoke_run("another script", another_script, script="big.sh")


def linked_script(scene: Scene) -> None:
    another_script(scene)
    (scene.project / "train.sh").unlink()
    (scene.project / "train.sh").symlink_to("big.sh")


behind_a_smoke_run("another script by a link of the old name", linked_script)
behind_a_smoke_run("another script with the name of the job", another_script, script="big.sh", job_name="train")


@tries
async def another_environment(scene: Scene) -> Any:
    from dataclasses import replace  # noqa: PLC0415 - here alone

    await smoke(scene)
    environment = replace(scene.context.environment, environ={"VIRTUAL_ENV": "/opt/other"})
    scene.box.context = scene.box.registry.context = replace(scene.context, environment=environment)
    return await large(scene)


@tries
async def a_file_with_its_old_time(scene: Scene) -> Any:
    await smoke(scene)
    path = scene.project / "data" / "points.csv"
    before = path.stat()
    scene.write("data/points.csv", "9,9\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    return await large(scene)


@tries
async def another_project(scene: Scene) -> Any:
    from dataclasses import replace  # noqa: PLC0415 - here alone

    await smoke(scene)
    owner = replace(scene.context.owner, cluster="elsewhere")
    scene.box.context = scene.box.registry.context = replace(scene.context, owner=owner)
    return await large(scene)


@pytest.mark.proves("no-way-around-smoke")
@pytest.mark.parametrize("name", TRIES)
async def test_no_try_gets_through(scene: Scene, name: str):
    laboratory(scene)

    reply = await TRIES[name](scene)

    assert reply.status == "blocked", reply.summary
    assert rule(reply).outcome in {"justify", "deny"}, reply.summary


def test_there_are_at_least_forty_tries():
    assert len(TRIES) >= 40


@pytest.mark.proves("smoke-comes-first")
@pytest.mark.parametrize(
    ("what", "more"),
    [
        ("more memory", {"memory": "2G"}),
        ("another time limit", {"time_limit": "10:00:00"}),
        ("another name", {"job_name": "big"}),
        ("another length in the script", {"steps": "STEPS=500000"}),
        ("another length in the settings", {"solver": "max_steps: 500000"}),
    ],
)
async def test_what_is_no_part_of_a_configuration_may_change(scene: Scene, what: str, more: dict[str, str]):
    laboratory(scene)
    await smoke(scene)
    if "memory" in more:
        edited(scene, "--mem=1G", f"--mem={more.pop('memory')}")
    if "steps" in more:
        edited(scene, "STEPS=100000", more.pop("steps"))
    if "solver" in more:
        edited(scene, "max_steps: 100000", more.pop("solver"), "configs/a.yaml")

    assert (await large(scene, **more)).status == "submitted", what
