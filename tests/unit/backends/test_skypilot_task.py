"""A SkyPilot task as the policy has to see it: what it asks for, and what cannot be judged."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.unit.cli.test_launch_command import TASK

from slurm_agent_tools.backends.export.skypilot_task import SkyPilotTask, read_task
from slurm_agent_tools.errors import InputError

LOOP = """failed=0
for SLURM_ARRAY_TASK_ID in {numbers}; do
export SLURM_ARRAY_TASK_ID
timeout 5m ./a || failed=1
done
exit "$failed"
"""


def task(*, resources: dict[str, Any] | None = None, **more: Any) -> SkyPilotTask:
    """The task of the tests with other values; None leaves a key out."""
    known = {key: value for key, value in (TASK["resources"] | (resources or {})).items() if value is not None}
    return read_task(yaml.safe_dump(TASK | more | {"resources": known}, sort_keys=False).encode())


def test_a_task_asks_slurm_for_what_its_machines_have():
    assert task().script.splitlines()[1:8] == [
        "#SBATCH --job-name=train-a1b2c3", "#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=1", "#SBATCH --time=120",
        "#SBATCH --gpus-per-node=1", "#SBATCH --cpus-per-task=8", "#SBATCH --mem=16G",
    ]  # fmt: skip
    plain = task(resources={"accelerators": None, "cpus": None, "memory": "8GB"}, envs={"SEED": 7, "A": "it's"})
    assert "gpus" not in plain.script
    assert "#SBATCH --mem=8G" in plain.script
    assert "export SEED=7\nexport A='it'\"'\"'s'\ntimeout" in plain.script


@pytest.mark.parametrize(
    ("run", "seconds", "tasks"),
    [
        ("timeout 90 ./a", 90, 1),
        ("timeout --kill-after=1m 2h ./a --b 'c; d' \"e $F\"", 7200, 1),
        ("export A=1\ntimeout 1d ./a\n", 86400, 1),
        (LOOP.format(numbers="1 3 8"), 300, 3),
        (LOOP.format(numbers="$(seq 2 3 11)"), 300, 4),
    ],
)  # fmt: skip
def test_the_time_limit_and_the_tasks_are_those_of_the_work(run: str, seconds: int, tasks: int):
    read = task(run=run)

    assert (read.time_limit, read.tasks) == (seconds, tasks)
    assert ("#SBATCH --array" in read.script) == (tasks > 1)
    assert read.most == pytest.approx(9.0 * (seconds * tasks / 3600 + 10 / 60))


@pytest.mark.parametrize(
    ("value", "read"),
    [("A100:4", (4, "A100")), ("A100", (1, "A100")), ({"L4": 2}, (2, "L4")), (None, (0, None))],
)
def test_one_kind_of_gpu_is_read_in_each_spelling(value: object, read: tuple[int, str | None]):
    found = task(resources={"accelerators": value})

    assert (found.gpus, found.gpu_kind) == read


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"setup": "python train.py"}, "setup"),
        ({"file_mounts": {"/x": "/etc"}}, "file_mounts"),
        ({"workdir": "/home/me"}, "workdir"),
        ({"workdir": ["."]}, "workdir"),
        ({"num_nodes": 0}, "num_nodes"),
        ({"num_nodes": True}, "num_nodes"),
        ({"name": "Train_1"}, "name"),
        ({"resources": {"job_recovery": {"max_restarts_on_errors": 3}}}, "resources.job_recovery"),
        ({"resources": {"any_of": [{"cloud": "aws"}]}}, "resources.any_of"),
        ({"resources": {"instance_type": "p5.48xlarge"}}, "resources.instance_type"),
        ({"resources": {"infra": "slurm/lab"}}, "resources.infra"),
        ({"resources": {"infra": None, "cloud": "Slurm"}}, "resources.infra"),
        ({"resources": {"accelerators": ["A100:1", "H100:1"]}}, "resources.accelerators"),
        ({"resources": {"accelerators": "A100:0.5"}}, "resources.accelerators"),
        ({"resources": {"accelerators": {"A100": 1, "H100": 1}}}, "resources.accelerators"),
        ({"resources": {"cpus": "many"}}, "resources.cpus"),
        ({"resources": {"memory": "16XB"}}, "resources.memory"),
        ({"resources": {"use_spot": "no"}}, "resources.use_spot"),
        ({"resources": {"max_hourly_cost": None}}, "resources.max_hourly_cost"),
        ({"resources": {"max_hourly_cost": float("nan")}}, "resources.max_hourly_cost"),
        ({"resources": {"autostop": None}}, "resources.autostop"),
        ({"resources": {"autostop": 10}}, "resources.autostop"),
        ({"resources": {"autostop": {"idle_minutes": 10}}}, "resources.autostop"),
        ({"resources": {"autostop": {"idle_minutes": 600, "down": True}}}, "resources.autostop"),
        ({"resources": {"autostop": {"idle_minutes": 5, "down": True, "hook": "rm -rf /"}}}, "resources.autostop"),
        ({"envs": {"A B": "1"}}, "envs.A B"),
        ({"envs": {"A": None}}, "envs.A"),
        ({"run": "python train.py"}, "run"),
        ({"run": "timeout 0 python train.py"}, "run"),
        ({"run": "timeout 2h python a.py\npython b.py"}, "run"),
        ({"run": "timeout 2h python a.py; python b.py"}, "run"),
        ({"run": "timeout 2h python a.py & python b.py"}, "run"),
        ({"run": "timeout 2h python a.py && python b.py"}, "run"),
        ({"run": "timeout 2h echo $(python b.py)"}, "run"),
        ({"run": 'timeout 2h echo "$(python b.py)"'}, "run"),
        ({"run": "timeout 2h echo `python b.py`"}, "run"),
        ({"run": "timeout 2h cat <(python b.py)"}, "run"),
        ({"run": "timeout 2h python a.py 'open"}, "run"),
        ({"run": "export A=$(python b.py)\ntimeout 2h python a.py"}, "run"),
        ({"run": "timeout -s 0 2h python a.py"}, "run"),
        ({"run": 5}, "run"),
    ],
)
def test_what_the_policy_cannot_judge_is_an_error_that_names_the_key(change: dict[str, Any], field: str):
    with pytest.raises(InputError) as error:
        task(**change)
    assert error.value.message.startswith(f"{field}:") or f"{field} " in error.value.message
    assert error.value.hint
