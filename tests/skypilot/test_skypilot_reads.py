"""SkyPilot reads the task files that generate_script writes, and understands what was asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.skypilot.conftest import Read
from tests.unit.backends.exporting import generated, requests

from slurm_agent_tools.backends.export.skypilot_task import read_task


@pytest.mark.proves("exports-are-valid")
async def test_skypilot_takes_all_25_files_and_understands_what_the_policy_judged(tmp_path: Path, reads: Read):
    texts = {}
    for number, (name, asked) in enumerate(requests("skypilot").items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        texts[name] = (await generated(folder, **asked)).script or ""

    for (name, text), understood in zip(texts.items(), reads(list(texts.values())), strict=True):
        ours = read_task(text.encode())
        gpus = {ours.gpu_kind: ours.gpus} if ours.gpus else None
        assert understood == {
            "name": ours.name, "nodes": ours.nodes, "run": yaml.safe_load(text)["run"], "accelerators": gpus,
            "cpus": f"{ours.cpus}+", "memory": f"{ours.memory}+", "spot": False, "down": True,
            "idle_minutes": ours.idle_minutes,
        }, name  # fmt: skip
    assert len(texts) == 25


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"resources": {"accelerator": "A100:1"}}, "accelerators"),
        ({"resources": {"autostop": {"idle_minutes": 10, "dwn": True}}}, "dwn"),
        ({"resources": {"infra": "awsome"}}, "infra"),
        ({"autostop": 10}, "autostop"),
    ],
)
def test_skypilot_finds_what_is_misspelt(reads: Read, change: dict[str, Any], told: str):
    good = {"name": "a", "resources": {"cpus": "1+"}, "run": "true"}
    first, second = reads([yaml.safe_dump(good), yaml.safe_dump(good | change)])

    assert "error" not in first
    assert told in second["error"]
