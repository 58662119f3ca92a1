"""What a script declares, what a configuration is made of, when a stage has passed, where a smoke run costs least."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from slurm_agent_tools.api.rule_examples import plan_of
from slurm_agent_tools.backends import stages
from slurm_agent_tools.backends.stages import Declaration, Ladder, StageRun
from slurm_agent_tools.models.job import Job, JobView, Step
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import Directive, Evidence, JobRequest
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.policy.rules.queued_jobs import SMOKE_FIRST
from slurm_agent_tools.units import JobId, parse_array

HOUR = 3600
NOW = datetime(2026, 1, 15, tzinfo=UTC)


def test_a_declaration_is_read_from_the_comments_at_the_top_alone():
    text = "#!/bin/bash\n#SBATCH --time=1\n\n#SMOKE length: --steps, STEPS\n#SMOKE writes: ckpt/last.pt\nx\n#SMOKE length: --other\n"

    assert stages.declared(text) == Declaration(("--steps", "STEPS"), ("ckpt/last.pt",))
    assert stages.declared("#!/bin/bash\necho\n") == Declaration()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("#SMOKE skip: everything", "cannot be read"),
        ("#SMOKE", "cannot be read"),
        ("#SMOKE length: --nodes", "`node` says where it runs"),
        ("#SMOKE length: trainer.num_gpus", "`gpu` says where it runs"),
        ("#SMOKE length: --nproc_per_node", "`proc`"),
        ("#SMOKE length: --config", "`config`"),
        ("#SMOKE length: exit", "`exit`"),
        ("#SMOKE length: -n", "no name of a length"),
        ("#SMOKE length: $STEPS", "no name of a length"),
        ("#SMOKE length: a(b|c)", "no name of a length"),
        ("#SMOKE writes: /etc/passwd", "no file inside the project"),
        ("#SMOKE writes: ../train.py", "no file inside the project"),
        ("#SMOKE writes: *", "no file inside the project"),
        ("#SMOKE length: " + " ".join(f"--step{number}" for number in range(21)), "more than 20"),
    ],
)
def test_a_declaration_that_says_something_else_is_a_problem(line: str, told: str):
    assert told in (stages.declared(f"#!/bin/bash\n{line}\n").problem or "")


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("STEPS=7", True),
        ("export STEPS='7'", True),
        ("STEPS=7.5e3 python x.py", True),
        ("python x.py --steps 7 --lr 1", True),
        ("python x.py --steps=7ps", True),
        ("python x.py solver.max_steps=7", True),
        ("STEPS=$(cat n)", False),
        ("STEPS=7x.py", False),
        ("XSTEPS=7", False),
        ("python x.py --steps-more 7", False),
        ("python x.py --steps all", False),
        ("max_steps: 7", False),
    ],
)
def test_in_a_script_only_a_declared_number_is_a_length(line: str, same: bool):
    names = ("--steps", "STEPS", "solver.max_steps")
    longer = line.replace("7", "100", 1) if "7" in line else f"{line}0"

    found = stages.without_lengths(line, names) == stages.without_lengths(longer, names)

    assert found is same


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("  max_steps: 7", True), ('  "max_steps": 7,', True), ("max_steps = 7  ; steps", True), ("max_steps 7", True),
        ("max_steps_more: 7", False), ("lr: 7", False), ("max_steps: seven7", False),
    ],
)  # fmt: skip
def test_in_settings_a_line_of_its_own_is_enough(line: str, same: bool):
    one, other = (
        stages.without_lengths(text, ("solver.max_steps",), apart=True) for text in (line, line.replace("7", "100", 1))
    )

    assert (one == other) is same


def parts(text: str = "#!/bin/bash\nx\n", *options: str, args: tuple[str, ...] = (), **more: Any) -> dict[str, str]:
    """The parts of a script with these options on its command line."""
    directives = tuple(
        Directive(option.partition("=")[0], option.partition("=")[2], "argument", Evidence("", 0, ""))
        for option in options
    )
    stated: dict[str, Any] = {"layout": {"nodes": 1}, "files": {"a.py": "1"}, "environment": {}, **more}
    array = next((parse_array(one.partition("=")[2]) for one in options if one.startswith("array=")), None)
    return stages.parts_of(text, JobRequest(directives=directives, array=array), args, **stated)


@pytest.mark.parametrize(
    "option",
    ["time=5", "mem=1G", "mem-per-gpu=1G", "mem-per-cpu=1G", "partition=b", "job-name=n", "output=o", "error=e", "nice=5",
     "dependency=afterok:1", "account=a", "qos=q", "mail-user=m", "exclude=n1", "begin=now"],
)  # fmt: skip
def test_how_much_memory_how_long_when_and_where_is_no_part_of_a_configuration(option: str):
    assert parts("#!/bin/bash\nx\n", option) == parts()


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (parts("#!/bin/bash\ny\n"), ["the script"]),
        (parts(args=("a",)), ["the arguments"]),
        (parts("#!/bin/bash\nx\n", "export=ALL,A=1"), ["the options"]),
        (parts("#!/bin/bash\nx\n", "chdir=b"), ["the options"]),
        (parts("#!/bin/bash\nx\n", "constraint=a100"), ["the options"]),
        (parts("#!/bin/bash\nx\n", "array=0"), ["an array"]),
        (parts(layout={"nodes": 2}), ["the layout"]),
        (parts(files={"a.py": "2"}), ["a.py"]),
        (parts(files={"a.py": "1", "b.py": "1"}), ["b.py"]),
        (parts(files={}), ["a.py"]),
        (parts(environment={"VIRTUAL_ENV": "/v"}), ["the environment"]),
        (parts(environment={"PATH": "/v"}), []),
    ],
)
def test_every_other_difference_is_another_configuration_and_is_named(changed: dict[str, str], told: list[str]):
    assert stages.differing(parts(), changed) == told
    assert (stages.configuration(changed) == stages.configuration(parts())) is (told == [])


def test_the_lines_of_the_options_are_no_part_of_the_script():
    text = "#!/bin/bash\n#SBATCH --mem=1G\nx\n"
    stated = JobRequest((Directive("mem", "1G", "script", Evidence("a.sh", 2, "#SBATCH --mem=1G")),))
    made = stages.parts_of(text, stated, (), layout={}, files={}, environment={})

    assert made["the script"] == parts()["the script"]


def test_a_declaration_that_cannot_be_read_makes_no_configuration():
    with pytest.raises(ValueError, match="cannot be read"):
        parts("#!/bin/bash\n#SMOKE all\nx\n")


GOOD = Job(JobId(1), "a", "COMPLETED", ("sacct",), exit_code=0, steps=(Step("batch", "batch", "COMPLETED", 0),))


@pytest.mark.parametrize(
    ("view", "passed", "why"),
    [
        (JobView(GOOD), True, None),
        (JobView(replace(GOOD, exit_code=2)), False, "exit code 2"),
        (JobView(replace(GOOD, signal=9)), False, "signal 9"),
        (JobView(replace(GOOD, state="TIMEOUT")), False, "TIMEOUT"),
        (JobView(replace(GOOD, steps=(*GOOD.steps, Step("0", "x", "FAILED", 1)))), False, "its step 0 ended FAILED"),
        (JobView(replace(GOOD, steps=(Step("0", "x", "COMPLETED", 0, 11),))), False, "signal 11"),
        (JobView(GOOD, (GOOD, replace(GOOD, state="FAILED", exit_code=1))), False, "FAILED (exit code 1)"),
        (JobView(replace(GOOD, state="RUNNING")), None, None),
        (JobView(replace(GOOD, steps=(Step("0", "x", "RUNNING"),))), None, "the end of its step 0 yet"),
        (JobView(GOOD, missing="slurmdbd is silent"), None, "slurmdbd is silent"),
    ],
)
def test_a_stage_has_passed_by_every_part_and_every_step(view: JobView, passed: bool | None, why: str | None):
    found, told = stages.end_of(view)

    assert found is passed
    assert (told is None) is (why is None)
    assert (why or "") in (told or "")


def partition(name: str, **facts: Any) -> Partition:
    stated: dict[str, Any] = {
        "state": "UP", "default": False, "nodes": 4, "max_time_seconds": 24 * HOUR, "default_time_seconds": None,
        "cpus_per_node": 8, "memory_per_node": 2**34,
    }  # fmt: skip
    return Partition(name, **{**stated, **facts})


@pytest.mark.parametrize(
    ("offered", "asked", "best"),
    [
        ([partition("long"), partition("testing")], {}, "testing"),
        ([partition("devices"), partition("gpu-debug")], {}, "gpu-debug"),
        ([partition("gpu", gpus_per_node=4), partition("cpu")], {}, "cpu"),
        ([partition("gpu", gpus_per_node=4), partition("cpu")], {"gpus": 2}, "gpu"),
        ([partition("long"), partition("day", max_time_seconds=8 * HOUR)], {}, "day"),
        ([partition("testing", state="DOWN"), partition("long")], {}, "long"),
        ([partition("testing", max_time_seconds=60), partition("long")], {}, "long"),
        ([partition("testing", nodes=1), partition("long")], {"nodes": 2}, "long"),
        ([partition("testing", max_nodes=1), partition("long")], {"nodes": 2}, "long"),
        ([partition("testing", cpus_per_node=2), partition("long")], {"cpus": 8}, "long"),
        ([partition("testing", memory_per_node=2**30), partition("long")], {"memory_per_node_bytes": 2**32}, "long"),
        ([partition("testing", gpus_per_node=1), partition("gpu", gpus_per_node=4)], {"gpus": 2}, "gpu"),
        ([partition("testing")], {"gpus": 1}, None),
    ],
)
def test_a_smoke_run_goes_to_the_cheapest_partition_that_can_run_it(
    offered: list[Partition], asked: dict[str, int], best: str | None
):
    assert stages.cheapest({one.name: one for one in offered}, Resources(**asked), 30 * 60) == best


def test_what_a_page_says_of_a_partition_wins_over_its_name():
    offered = {one.name: one for one in (partition("testing"), partition("small"), partition("night"))}

    assert stages.cheapest(offered, Resources(), 60, {"testing": "long", "night": "testing"}) == "night"
    assert stages.cheapest(offered, Resources(), 60, {"testing": "long"}) == "night", "by its name, as both are alike"


def run(number: int, stage: Any, state: Any, configuration: str = "c", **more: Any) -> StageRun:
    return StageRun(str(number), stage, configuration, NOW, state, **more)


def test_a_cancelled_run_says_nothing_and_the_one_before_it_counts():
    ladder = Ladder("c", runs=(run(3, "smoke", "cancelled"), run(2, "smoke", "passed"), run(1, "smoke", "failed")))

    assert ladder.newest("smoke") == ladder.validated == ladder.runs[1]
    assert Ladder("other", runs=ladder.runs).newest("smoke") is None


def test_a_pilot_of_an_earlier_version_closes_until_one_has_passed():
    failed = run(1, "pilot", "failed", "old")

    assert Ladder("c", runs=(failed,)).failed_before == failed
    assert Ladder("c", runs=(run(2, "pilot", "passed", "older"), failed)).failed_before is None
    assert Ladder("c", runs=(run(2, "pilot", "active", "older"), failed)).failed_before == failed


def test_the_nearest_run_that_passed_differs_in_the_fewest_parts():
    here = parts()
    near = run(1, "smoke", "passed", "one", parts=parts(args=("a",)))
    far = run(2, "smoke", "passed", "two", parts=parts("#!/bin/bash\ny\n", args=("b",)))

    assert Ladder("c", here, (far, near, run(3, "smoke", "failed", "x", parts=here))).nearest == near


def test_a_pilot_of_its_own_that_passed_stands_beside_one_of_another_version_that_failed():
    loaded = load(shipped())
    example = next(one for one in SMOKE_FIRST.passing if one.facts and "ladder" in one.facts and not one.call)
    plan = plan_of(example, loaded)
    assert plan.live is not None
    own = run(1, "pilot", "passed")
    ladder = Ladder("c", {}, (run(2, "pilot", "failed", "other"), own, run(0, "smoke", "passed")))

    decided = [
        SMOKE_FIRST.check(replace(plan, live=replace(plan.live, ladder=one)), loaded.policy).outcome
        for one in (ladder, replace(ladder, runs=(ladder.runs[0], ladder.runs[2])))
    ]

    assert decided == ["pass", "deny"]
