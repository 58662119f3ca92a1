"""What a value of one trial makes its script run: the guard judges it as if it stood in the script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.api.campaigns import CampaignScene, go_on

from slurm_agent_tools.models.campaign_answer import CampaignReply
from slurm_agent_tools.models.toolset_arguments import GetCampaign

SUBMITS = "import os; os.system('sbatch y.sh')\n"
TRAINS = ["python3", "train.py"]


def made(vary: list[Any], parameter: dict[str, Any], **stage: Any) -> str:
    """A file of one round that tries these values of `x` beside its default."""
    told = {
        "name": "training",
        "kind": "cpu",
        "command": TRAINS,
        "parameters": {"x": parameter},
        "resources": {"cpus": 1, "memory": "1G", "time_limit": "10min", "partition": "cpu"},
        "metrics": {"pattern": {"val_loss": "val_loss=([0-9.]+)"}},
        **stage,
    }
    return yaml.safe_dump(
        {
            "campaign": 1,
            "objective": {"metric": "val_loss", "direction": "minimize"},
            "stages": [told],
            "rounds": [{"kind": "list", "hypothesis": "Some do better.", "trials": [{"x": one} for one in vary]}],
            "limits": {"cpu_hours": 10, "trials": 20, "at_once": 4},
        }
    )


def by_argument(option: str, default: object = "a") -> dict[str, Any]:
    return {"default": default, "argument": option}


CONFIG = {"config_file": "c.yaml", "command": [*TRAINS, "--config", "{config}"]}

WAYS = [
    ("device-index", ["cpu", "cuda"], "cuda:1", by_argument("--device"), {}),
    ("device-index", ["b", "c"], "0,1", by_argument("--gpu-id"), {}),
    ("device-index", ["cpu", "mps"], "cuda:1", {"default": "cuda", "environment": "DEVICE"}, {}),
    ("device-index", ["cuda", "mps"], "cuda:1", {"default": "cpu", "config": "device"}, CONFIG),
    ("direct-submission", ["true", "ls"], "sbatch y.sh", by_argument("CMD=", "date"), {"command": ["make"]}),
    ("direct-submission", ["json", "this"], "submits", by_argument("-m"), {"command": ["python3"]}),
    ("direct-submission", ["b.py", "c.py"], "submits.py", by_argument("python3", "train.py"), {"command": ["env"]}),
    ("direct-submission", ["b.py", "c.py"], "submits.py", by_argument("run"), {"command": ["bash", "runs.sh"]}),
    ("direct-submission", [1, 2, 4], 3, by_argument("run", 9), {"command": ["bash", "numbered.sh"]}),
    ("cuda-visible-devices", ["A=1", "B=2"], "CUDA_VISIBLE_DEVICES=1", by_argument("run"), {"script": "sets.sh"}),
    ("interactive", [1, 2, 60], 500_000, by_argument("run", 9), {"command": ["bash", "sleeps.sh"]}),
]


def scene_of(folder: Path, text: str) -> CampaignScene:
    scene = CampaignScene(folder, text)
    for name, content in {
        "submits.py": SUBMITS,
        "program3.py": SUBMITS,
        "runs.sh": 'python3 "$2"\n',
        "numbered.sh": 'python3 "program$2.py"\n',
        "sets.sh": 'export "$2"\npython3 train.py\n',
        "sleeps.sh": 'sleep "$2"\n',
        "c.yaml": "device: cpu\n",
        "Makefile": "CMD = true\nall:\n\t$(CMD)\n",
    }.items():
        scene.write(name, content)
    return scene


async def plan(scene: CampaignScene) -> CampaignReply:
    reply = await scene.box.call("get_campaign", GetCampaign(name="rates", view="plan"))
    assert isinstance(reply, CampaignReply)
    return reply


@pytest.mark.parametrize(("rule", "fine", "bad", "parameter", "stage"), WAYS)
@pytest.mark.parametrize("alone", [True, False])
async def test_no_trial_runs_by_its_value_what_a_script_may_not_run(
    tmp_path: Path, rule: str, fine: list[Any], bad: object, parameter: dict[str, Any], stage: Any, *, alone: bool
):
    stage = {"command": None, **stage} if "script" in stage else stage
    scene = scene_of(tmp_path, made([bad] if alone else [*fine, bad], parameter, **stage))
    told = await plan(scene)
    assert rule in told.summary
    reply = await go_on(scene)
    assert rule in (reply.question.text if reply.question else "")
    assert reply.counts.pending + reply.counts.running <= 1  # that of the default alone


@pytest.mark.parametrize(("rule", "fine", "bad", "parameter", "stage"), WAYS)
async def test_other_values_go(
    tmp_path: Path, rule: str, fine: list[Any], bad: object, parameter: dict[str, Any], stage: Any
):
    stage = {"command": None, **stage} if "script" in stage else stage
    scene = scene_of(tmp_path, made(fine, parameter, **stage))
    assert "allows every trial" in (await plan(scene)).summary
    assert (await go_on(scene)).question is None
    assert scene.sent()


async def test_a_program_of_each_trials_own_is_read_for_each(tmp_path: Path):
    text = made([1, 2, 3, 4], by_argument("--lr", 0.5), command=["python3", "made/{trial}.py"])
    scene = scene_of(tmp_path, text)
    scene.write("made/r0-t4.py", SUBMITS)
    assert "direct-submission" in (await plan(scene)).summary
    assert "direct-submission" in str((await go_on(scene)).question)
    scene.write("made/r0-t4.py", "print('val_loss=0.5')\n")
    assert "allows every trial" in (await plan(scene)).summary


async def test_a_file_that_all_run_is_asked_for_once_for_all_values(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    scene = scene_of(tmp_path, made(list(range(1, 21)), by_argument("--lr", 0), command=TRAINS))
    files, asked = scene.context.there.files, list[str]()
    real = files.read

    async def read(path: str, **more: Any) -> bytes | None:
        asked.append(path)
        return await real(path, **more)

    monkeypatch.setattr(files, "read", read)
    await plan(scene)
    assert (
        0 < sum(path.endswith("/train.py") for path in asked) <= 4
    )  # for the script, for all values, and twice for what identifies the stage


async def test_what_was_sent_before_is_not_refused_by_its_values(tmp_path: Path):
    scene = scene_of(tmp_path, made([1, 2], by_argument("run", 9), command=["bash", "numbered.sh"]))
    batch, stage = scene.batches(0)[-1], scene.file.stages[0]
    await scene.ports.write(batch)
    first = await scene.ports.send(batch, stage)
    scene.write("program1.py", SUBMITS)
    assert await scene.ports.send(batch, stage) == first
