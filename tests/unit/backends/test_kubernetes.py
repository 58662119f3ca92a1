"""generate_script with format kubernetes: 25 requests under the published schema, strictly, and under our own check."""

from __future__ import annotations

import subprocess
from copy import deepcopy
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from tests.unit.backends import kubernetes_check
from tests.unit.backends.exporting import Asked, cases, generated, requests

from slurm_agent_tools.errors import InputError

LAST_THREE = ("1.35", "1.36", "1.37")
IMAGE = "registry.example.org/team/train:1.2"


async def job(folder: Path, **asked: Any) -> dict[str, Any]:
    reply = await generated(folder, **{"format": "kubernetes", "image": IMAGE} | asked)
    assert reply.status == "written", reply.reason
    read: dict[str, Any] = yaml.safe_load(reply.script or "")
    return read


def container(document: dict[str, Any]) -> dict[str, Any]:
    (only,) = document["spec"]["template"]["spec"]["containers"]
    found: dict[str, Any] = only
    return found


def run(document: dict[str, Any], folder: Path, **env: str) -> str:
    """What the container would print: started as Kubernetes would start it."""
    argv = [
        kubernetes_check.expanded(word, env) for word in (*container(document)["command"], *container(document)["args"])
    ]
    around = {"PATH": "/usr/bin:/bin", **env}
    done = subprocess.run(argv, env=around, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def bash(command: str) -> str:
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True).stdout.strip()


def test_there_are_25_requests():
    assert len(requests("kubernetes")) == 25


@pytest.mark.proves("exports-are-valid")
@pytest.mark.parametrize("asked", cases("kubernetes"))
async def test_a_job_passes_the_schema_of_the_last_three_versions_and_our_own_check(tmp_path: Path, asked: Asked):
    reply = await generated(tmp_path, **asked)

    assert reply.status == "written", reply.reason
    assert reply.path is not None
    assert reply.path.endswith(".kubernetes.yaml")
    assert reply.manual_commands == [f"kubectl apply -f {reply.path}"]
    text = (tmp_path / "project" / reply.path).read_text()
    assert text == reply.script
    document = yaml.safe_load(text)
    for version in LAST_THREE:
        kubernetes_validate.validate(document, version, strict=True)
    assert list(kubernetes_check.complaints(document)) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata", "name"), "Train_1"),
        (("metadata", "labels", "kueue.x-k8s.io/queue"), "team-a"),
        (("spec", "backoffLimit"), 6),
        (("spec", "completions"), -1),
        (("spec", "completionMode"), "indexed"),
        (("spec", "template", "spec", "restartPolicy"), "Always"),
        (("spec", "template", "spec", "restartPolicy"), None),
        (("spec", "template", "spec", "containers"), []),
        (("spec", "template", "spec", "containers", 0, "image"), None),
        (("spec", "template", "spec", "containers", 0, "resources", "limits", "nvidia.com/gpus"), 1),
        (("spec", "template", "spec", "containers", 0, "resources", "limits", "nvidia.com/gpu"), "one"),
        (("spec", "template", "spec", "containers", 0, "resources", "limits", "nvidia.com/gpu"), 1.5),
        (("spec", "template", "spec", "containers", 0, "resources", "limits", "memory"), "16GB"),
        (("spec", "template", "spec", "containers", 0, "resources", "limits", "memory"), "16"),
    ],
)
async def test_our_own_check_finds_what_the_schema_does_not(tmp_path: Path, path: tuple[Any, ...], value: object):
    document = deepcopy(await job(tmp_path))
    assert list(kubernetes_check.complaints(document)) == []
    place = document
    for key in path[:-1]:
        place = place[key]
    place.pop(path[-1], None) if value is None else place.__setitem__(path[-1], value)

    assert list(kubernetes_check.complaints(document))


async def test_a_pod_is_given_what_was_asked_for_no_more_and_no_less(tmp_path: Path):
    document = await job(tmp_path, gpus=4, memory="64G", time_limit="90", gpu_type="NVIDIA-H100-80GB-HBM3")

    asked = {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": 4}
    assert container(document)["resources"] == {"requests": asked, "limits": asked}
    pod = document["spec"]["template"]["spec"]
    assert (pod["activeDeadlineSeconds"], pod["restartPolicy"]) == (5400, "Never")
    assert pod["automountServiceAccountToken"] is False
    assert pod["nodeSelector"] == {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    assert {key: document["spec"][key] for key in ("completions", "parallelism", "backoffLimit")} == {
        "completions": 1, "parallelism": 1, "backoffLimit": 0
    }  # fmt: skip


async def test_work_without_gpus_asks_for_none(tmp_path: Path):
    document = await job(tmp_path, gpus=0, memory="700M", cpus=2)

    assert container(document)["resources"]["limits"] == {"cpu": "2", "memory": "700Mi"}
    assert "nodeSelector" not in document["spec"]["template"]["spec"]


async def test_the_queue_is_kueues_label_and_stands_on_the_job_and_its_pods(tmp_path: Path):
    document = await job(tmp_path, partition="team-a")

    for labels in (document["metadata"]["labels"], document["spec"]["template"]["metadata"]["labels"]):
        assert labels["kueue.x-k8s.io/queue-name"] == "team-a"
    assert "kueue.x-k8s.io/queue-name" not in (await job(tmp_path))["metadata"]["labels"]


@pytest.mark.parametrize(
    ("array", "numbers", "at_once"),
    [("0-3", range(4), 4), ("0-99%3", range(100), 3), ("5-8", range(5, 9), 4), ("0-20:5%2", range(0, 21, 5), 2),
     ("1,3,8-9", (1, 3, 8, 9), 4), ("7", (7,), 1)],
)  # fmt: skip
async def test_an_array_is_indexed_and_each_task_has_the_number_that_slurm_would_give(
    tmp_path: Path, array: str, numbers: Any, at_once: int
):
    document = await job(tmp_path, array=array, command='echo "$SLURM_ARRAY_TASK_ID" "$SLURM_ARRAY_TASK_COUNT"', gpus=0)

    spec = document["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", len(numbers), at_once)
    for place in (0, len(numbers) - 1):
        assert run(document, tmp_path, JOB_COMPLETION_INDEX=str(place)) == f"{numbers[place]} {len(numbers)}"


async def test_bash_sees_what_was_written_although_kubernetes_replaces_variables(tmp_path: Path):
    command = "X=5; echo \"$(echo $X)\" '$(PATH)' '$$' '$$$(X)' \"${X}$(echo '$$')\""
    plain = bash(command)

    assert run(await job(tmp_path, command=command, gpus=0), tmp_path, PATH="/usr/bin:/bin") == plain


async def test_two_files_make_two_jobs_and_one_file_one(tmp_path: Path):
    first, second = await job(tmp_path, name="Größe_1"), await job(tmp_path, name="Größe_1")

    names = [document["metadata"]["name"] for document in (first, second)]
    assert len(set(names)) == 2
    assert all(name.startswith("gr-e-1-") for name in names)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"image": None}, "image.*is required"),
        ({"image": "Not an image"}, "image.*no name of an image"),
        ({"partition": "Team_A"}, "partition.*queue of Kueue"),
        ({"gpu_type": "an A100"}, "gpu_type.*no name of a kind"),
        ({"gpu_type": "A100-"}, "gpu_type.*value of a label"),
        ({"max_hourly_cost": 3}, "max_hourly_cost.*means nothing to format kubernetes"),
        ({"command": "torchrun t.py", "gpus": 4, "nodes": 2, "distributed": True}, "one node only"),
        ({"command": 'echo "$SLURM_JOB_ID"'}, "SLURM_JOB_ID.*Kubernetes has no value for"),
        ({"array": "0-100000", "gpus": 0}, "array.*more than 100000"),
    ],
)
async def test_what_a_job_cannot_say_is_an_error_that_names_the_field(tmp_path: Path, asked: Asked, problem: str):
    with pytest.raises(InputError, match=problem):
        await generated(tmp_path, **{"format": "kubernetes", "image": IMAGE} | asked)
    assert not (tmp_path / "project/scripts").exists()
