"""Smoke runs of a campaign before the guard: mended or repeated, they open their stage as a plain one does.

And what the campaign tells the guard, and the record, of what was decided after one failed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.api.campaigns import FILE, CampaignScene, go_on, to_the_end

from slurm_agent_tools.devcluster.fake.endings import Ending

FIXES = """fixes:
  - {failure: host-out-of-memory, memory: 4G}
  - {failure: missing-module, change: {lr: 0.2}}
"""

PASSES = Ending(after=30, output="val_loss=0.5\n")

FAILURES = {
    "memory": Ending(fate="out_of_memory", after=10, errors="slurmstepd: error: Detected 1 oom_kill event in StepId=1.batch. Some of the step tasks have been OOM Killed.\n"),
    "value": Ending(after=10, exit_code=1, errors="Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n"),
}  # fmt: skip


def guarded(folder: Path, text: str) -> CampaignScene:
    """A project whose policy wants a smoke run before anything that this campaign sends."""
    scene = CampaignScene(folder, text)
    scene.policy(smoke_first=scene.context.policy.policy.smoke_first.model_copy(update={"cpu_hours": 0.01}))
    return scene


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_smoke_run_that_a_fix_mended_opens_its_stage(tmp_path: Path, failure: str):
    scene = guarded(tmp_path, FILE + FIXES)
    ends = iter([FAILURES[failure]])
    scene.slurm.on_start(lambda _: next(ends, PASSES))
    reply = await to_the_end(scene)
    assert (reply.status, reply.question) == ("finished", None)
    assert (reply.counts.failed, reply.counts.done >= 4) == (1, True)


async def test_a_mended_smoke_run_is_not_asked_for_what_only_a_long_run_reaches(tmp_path: Path):
    demanding = FILE.replace("    metrics:", "    passes: {at_least: {reached: 10}}\n    metrics:")
    demanding = demanding.replace("([0-9.]+)'}", "([0-9.]+)', reached: 'reached=([0-9.]+)'}")
    scene = guarded(tmp_path, demanding + FIXES)
    ends = iter([FAILURES["value"], Ending(after=30, output="val_loss=0.5\nreached=1\n")])
    scene.slurm.on_start(lambda _: next(ends, Ending(after=30, output="val_loss=0.5\nreached=10\n")))
    assert (await to_the_end(scene)).status == "finished"


async def test_repeated_smoke_runs_are_sent_one_by_one(tmp_path: Path):
    scene = guarded(tmp_path, FILE.replace("{kind: smoke}", "{kind: smoke, repeats: 2}"))
    scene.slurm.on_start(lambda _: PASSES)
    reply = await to_the_end(scene)
    assert (reply.status, reply.question) == ("finished", None)
    assert reply.counts.done == 5


def reasons(scene: CampaignScene) -> list[str]:
    return list(dict.fromkeys(line["justification"] for line in scene.lines("decided") if line.get("justification")))


async def test_after_a_change_of_code_the_reason_says_that_and_not_that_values_differ(tmp_path: Path):
    scene = CampaignScene(tmp_path)
    ends = iter([FAILURES["value"]])
    scene.slurm.on_start(lambda _: next(ends, PASSES))
    assert (await to_the_end(scene)).status == "needs_decision"
    scene.write("train.py", "import sys\nprint('val_loss=0.6')\n# mended\n")
    assert "go_on" in ((await go_on(scene)).question or pytest.fail("nothing is asked")).choices
    answered = await go_on(scene, decision="go_on")
    assert any("answered through advance_campaign by" in line and "(cli): go_on" in line for line in answered.happened)
    assert (await to_the_end(scene)).status == "finished"
    (reason,) = reasons(scene)
    assert "what the stage runs or reads, or how it is measured, was changed since" in reason
    assert "other values" not in reason


async def test_a_script_that_failed_with_other_values_is_said_to_run_with_these(tmp_path: Path):
    scene = CampaignScene(tmp_path, FILE + FIXES)
    ends = iter([FAILURES["value"]])
    scene.slurm.on_start(lambda _: next(ends, PASSES))
    assert (await to_the_end(scene)).status == "finished"
    (reason,) = reasons(scene)
    assert "other values than what failed: " in reason
    assert "lr=0.2" in reason
