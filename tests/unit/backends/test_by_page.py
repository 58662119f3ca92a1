"""generate_script takes image, queue, kind of GPU and price from the page of its backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.backends import pbs_grammar
from tests.unit.backends.exporting import generated

from slurm_agent_tools.backends.page_templates import TEMPLATES, template
from slurm_agent_tools.errors import InputError

KUBERNETES = """
kind: kubernetes
kueue_queue: research
image: registry.example.org/team/train:1.2
partitions:
  - {name: large, purpose: production, gpus: {type: h100, per_node: 8}}
  - {name: small, purpose: testing}
"""

CLOUD = """
kind: skypilot
image: team/train:1
partitions:
  - {name: a100, purpose: production, gpus: {type: A100, per_node: 8}, gpu_hour: 2.5}
  - {name: l4, purpose: testing, gpus: {type: L4, per_node: 1}}
price: {currency: USD, gpu_hour: 0.7}
"""

PBS = """
kind: pbs
partitions:
  - {name: workq, purpose: production}
"""


async def written(folder: Path, page: str, **asked: Any) -> tuple[str, str]:
    """What was written, and the reasons in one text."""
    (folder / "project/backends").mkdir(parents=True, exist_ok=True)
    (folder / "project/backends/there.yaml").write_text(page)
    reply = await generated(folder, backend="there", **asked)
    assert reply.status == "written", reply.reason
    return reply.script or "", "\n".join(reply.reasons)


async def test_a_job_has_the_pages_image_and_kueues_queue_whatever_its_size_of_node(tmp_path: Path):
    for partition in ("large", "small", "research", None):
        script, reasons = await written(tmp_path, KUBERNETES, format="kubernetes", partition=partition)
        document = yaml.safe_load(script)
        assert document["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "research"
        (container,) = document["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "registry.example.org/team/train:1.2"
        assert "By the page there: image registry.example.org/team/train:1.2." in reasons


async def test_without_kueue_a_page_puts_no_queue_into_a_job(tmp_path: Path):
    page = KUBERNETES.replace("kueue_queue: research\n", "")
    script, _ = await written(tmp_path, page, format="kubernetes", partition="large")

    assert "kueue" not in script


async def test_a_machine_is_of_the_pages_kind_and_price(tmp_path: Path):
    script, reasons = await written(tmp_path, CLOUD, format="skypilot", partition="a100", gpus=4, memory="16G")
    resources = yaml.safe_load(script)["resources"]
    assert (resources["accelerators"], resources["max_hourly_cost"]) == ("A100:4", 10.0)
    assert resources["image_id"] == "docker:team/train:1"
    assert "By the page there: max_hourly_cost 10.0." in reasons

    script, _ = await written(tmp_path, CLOUD, format="skypilot", partition="l4")
    resources = yaml.safe_load(script)["resources"]
    assert (resources["accelerators"], resources["max_hourly_cost"]) == ("L4:1", 0.7)


async def test_what_the_caller_states_counts_before_the_page(tmp_path: Path):
    asked = {"image": "mine:2", "max_hourly_cost": 9.0, "gpu_type": "H100", "partition": "a100"}
    script, reasons = await written(tmp_path, CLOUD, format="skypilot", **asked)
    resources = yaml.safe_load(script)["resources"]

    assert (resources["accelerators"], resources["max_hourly_cost"]) == ("H100:1", 9.0)
    assert resources["image_id"] == "docker:mine:2"
    assert "max_hourly_cost 9" not in reasons.replace("By the page", "")
    assert "By the page there: image" not in reasons


async def test_the_only_queue_of_a_page_is_taken_and_told(tmp_path: Path):
    script, reasons = await written(tmp_path, PBS, format="pbs")
    assert pbs_grammar.read(script).options["q"] == "workq"
    assert "By the page there: partition workq." in reasons

    several = PBS + "  - {name: debug, purpose: testing}\n"
    script, _ = await written(tmp_path, several, format="pbs")
    assert "q" not in pbs_grammar.read(script).options
    script, _ = await written(tmp_path, several, format="pbs", partition="debug")
    assert pbs_grammar.read(script).options["q"] == "debug"


@pytest.mark.parametrize(
    ("page", "asked", "problem"),
    [
        (CLOUD, {"format": "pbs"}, r"format.*the page there \(skypilot\)"),
        (PBS, {}, r"format.*the page there \(pbs\)"),
        (PBS, {"format": "pbs", "partition": "gpu"}, "partition.*is not on the page there"),
        (KUBERNETES.replace("image:", "# image:"), {"format": "kubernetes"}, "image.*is required"),
        (CLOUD.replace("USD", "EUR"), {"format": "skypilot", "partition": "l4"}, "max_hourly_cost.*is required"),
        (CLOUD, {"format": "skypilot"}, "gpu_type.*is required|max_hourly_cost.*is required"),
        (CLOUD, {"format": "skypilot", "gpus": 0, "partition": "l4"}, "max_hourly_cost.*is required"),
    ],
)
async def test_what_page_and_request_do_not_say_together_is_an_error(tmp_path: Path, page, asked, problem):
    with pytest.raises(InputError, match=problem):
        await written(tmp_path, page, **asked)
    assert not (tmp_path / "project/scripts").exists()


async def test_a_backend_without_a_page_is_an_error_that_lists_the_pages(tmp_path: Path):
    await written(tmp_path, PBS, format="pbs")
    with pytest.raises(InputError, match="has no page") as error:
        await generated(tmp_path, backend="elsewhere", format="pbs")
    assert "there" in error.value.hint


@pytest.mark.parametrize("name", [one for one in TEMPLATES if one not in {"slurm", "workstation"}])
async def test_each_template_says_enough_to_write_a_job_with_an_image_beside_it(tmp_path: Path, name: str):
    page = template(name)
    partition = yaml.safe_load(page)["partitions"][0]["name"]
    scheduler = {"cloud": "skypilot"}.get(name, name)
    image = {"image": "team/train:1"} if name == "kubernetes" else {}

    assert (await written(tmp_path, page, format=scheduler, partition=partition, time_limit="01:00:00", **image))[0]


LIMITED = """
kind: pbs
partitions:
  - {name: workq, purpose: production, time_limit: "4h", nodes: 2, cpus_per_node: 8, memory_per_node: "20G",
     gpus: {type: a100, per_node: 2}}
"""


@pytest.mark.parametrize(
    ("just", "beyond", "said"),
    [
        ({"time_limit": "04:00:00"}, {"time_limit": "04:00:01"}, "time_limit: '04:01:00' is more than workq.*04:00:00"),
        (
            {"gpus": 2, "memory": "16G"},
            {"gpus": 3, "memory": "16G"},
            "gpus: '3' is more than workq of the page there has on a node: 2",
        ),
        ({"cpus": 8}, {"cpus": 9}, "cpus: '9' is more"),
        ({"gpus": 0, "memory": "20G"}, {"gpus": 0, "memory": "21G"}, "memory: '21G' is more.*20G"),
        (
            {"gpus": 2, "nodes": 2, "launcher": "mpi"},
            {"gpus": 3, "nodes": 3, "launcher": "mpi"},
            "nodes: '3' is more than workq of the page there has: 2",
        ),
    ],
)
async def test_what_is_more_than_the_pages_partition_has_is_an_error(tmp_path: Path, just, beyond, said):
    why = {"justification": "it needs this much"}
    assert (await written(tmp_path, LIMITED, format="pbs", **(just | why)))[0]
    with pytest.raises(InputError, match=said):
        await written(tmp_path, LIMITED, format="pbs", **(beyond | why))


async def test_where_a_page_leaves_a_limit_open_nothing_is_compared(tmp_path: Path):
    assert (await written(tmp_path, PBS, format="pbs", gpus=4, time_limit="1-00:00:00"))[0]
