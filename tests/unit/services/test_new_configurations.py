"""Whether a configuration is new, for choose_backend: what the ladder knows, where nobody says it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.services.ladders import laboratory, over
from tests.unit.services.scenes import Scene

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.backend_answer import ChooseReply
from slurm_agent_tools.models.toolset_arguments import ChooseBackend


async def choose(scene: Scene, **ask: Any) -> ChooseReply:
    reply = await scene.box.call("choose_backend", ChooseBackend(**{"script": "train.sh", **ask}))
    assert isinstance(reply, ChooseReply)
    return reply


async def test_a_large_one_that_was_never_tried_gets_a_smoke_run(scene: Scene) -> None:
    laboratory(scene)
    found = await choose(scene)
    assert (found.question, found.stage, found.status) == (2, "smoke", "chosen")
    assert found.next is not None
    assert found.next.arguments == {
        "script": "train.sh", "partition": "cpu", "stage": "smoke", "time_limit": "00:30:00",
    }  # fmt: skip
    sent = await scene.submit(**found.next.arguments)
    assert sent.status == "submitted"


async def test_one_that_passed_goes_to_production_and_its_job_is_named(scene: Scene) -> None:
    laboratory(scene)
    scene.slurm.next_job(after=60)
    sent = await scene.submit(stage="smoke", time_limit="00:20:00")
    await over(scene, sent.job_id)
    found = await choose(scene)
    assert (found.question, found.stage) == (4, "production")
    assert f"Job {sent.job_id} (smoke) of it passed." in found.reasons


async def test_one_whose_smoke_run_failed_goes_back_to_a_smoke_run(scene: Scene) -> None:
    laboratory(scene)
    scene.slurm.next_job(after=60, exit_code=1)
    sent = await scene.submit(stage="smoke", time_limit="00:20:00")
    await over(scene, sent.job_id)
    found = await choose(scene)
    assert (found.question, found.stage) == (2, "smoke")
    assert any(f"Its smoke run, job {sent.job_id}, did not pass" in reason for reason in found.reasons)


async def test_a_small_one_needs_none_and_what_the_caller_says_counts(scene: Scene) -> None:
    assert (await choose(scene, expected="2h")).stage == "production"
    assert (await choose(scene, expected="2h", new_configuration=True)).stage == "smoke"
    laboratory(scene)
    assert (await choose(scene, new_configuration=False)).stage == "production"


async def test_its_arguments_are_a_part_of_what_was_tried_and_of_the_next_call(scene: Scene) -> None:
    laboratory(scene)
    scene.slurm.next_job(after=60)
    sent = await scene.submit(args=["--alpha"], stage="smoke", time_limit="00:20:00")
    await over(scene, sent.job_id)
    tried, other = await choose(scene, args=["--alpha"]), await choose(scene, args=["--beta"])
    assert (tried.stage, other.stage) == ("production", "smoke")
    assert tried.next is not None
    assert tried.next.arguments["args"] == ["--alpha"]


async def test_arguments_without_a_script_are_an_error(scene: Scene) -> None:
    with pytest.raises(InputError, match="args"):
        await choose(scene, script=None, resources={"gpus": 1}, expected="2h", args=["x"])
