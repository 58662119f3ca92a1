"""What many findings in a long script cost: each is looked up where it stands, and none looks at the whole script."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.unit.counting import counted
from tests.unit.policy.kept_work import LOADED
from tests.unit.scripts.project import read

from slurm_agent_tools.models.request import ScriptLayout, ScriptReading, ShellCommand
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate
from slurm_agent_tools.policy.rules import device_mending, script_mending

CONTEXT = EvaluationContext(LOADED, "/p")


class Looked(tuple[ShellCommand, ...]):  # noqa: SLOT001 - no tuple has a count
    """The commands of a script, and how often somebody went through all of them."""

    times = 0

    def __iter__(self) -> Iterator[ShellCommand]:
        type(self).times += 1
        return super().__iter__()


def remedy(reading: ScriptReading, rule: str) -> str:
    (found,) = (one for one in evaluate(reading, CONTEXT).rules if one.id == rule)
    return str(found.remedy)


async def test_lines_before_a_finding_are_counted_once_and_not_for_each_finding():
    async def calls(blank: int) -> int:
        bad = "".join(f"export CUDA_VISIBLE_DEVICES={n}\npython a.py --device cuda:{n}\n" for n in range(60))
        reading = await read("\n" * blank + bad)
        assert f"Delete line {blank + 2} (`export CUDA_VISIBLE_DEVICES=0`)." in remedy(reading, "cuda-visible-devices")
        return counted(lambda: evaluate(reading, CONTEXT))[1]

    assert await calls(6000) - await calls(2000) < 4000 * 10


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("python a{n}.py --device cuda:{n}", "device-index"),
        ("CUDA_VISIBLE_DEVICES={n} python a.py &", "cuda-visible-devices"),
        ("cat <<E\npython a{n}.py\nE\npython b.py --device cuda:{n}", "device-index"),
        ("python \\\n  --device cuda:{n}", "device-index"),
    ],
)
async def test_all_commands_are_gone_through_a_few_times_however_much_is_found(line: str, rule: str):
    reading = await read("".join(line.format(n=n) + "\n" for n in range(40)))
    assert reading.layout is not None
    commands = Looked(reading.layout.commands)
    Looked.times = 0
    assert "Replace line" in remedy(replace(reading, layout=ScriptLayout(commands)), rule)
    assert 0 < Looked.times < 20


async def test_what_a_job_has_for_its_workers_is_counted_once(monkeypatch: pytest.MonkeyPatch):
    real, counts = device_mending.geometry, list[int]()

    def noted(*words: object):
        counts.append(1)
        return real(*words)  # type: ignore[arg-type]

    reading = await read("#SBATCH --gpus=4\n" + "CUDA_VISIBLE_DEVICES=1 python a.py &\n" * 40 + "wait\n")
    monkeypatch.setattr(device_mending, "geometry", noted)
    assert "srun -n1" in remedy(reading, "cuda-visible-devices")
    assert len(counts) < 5


async def test_of_more_commands_than_can_be_taken_out_it_is_told_in_words(monkeypatch: pytest.MonkeyPatch):
    reading = await read("python a.py\n" + "".join(f"sbatch {n}.sh\n" for n in range(9)))
    assert "yourself" not in remedy(reading, "direct-submission")
    monkeypatch.setattr(script_mending, "_MOST_LOOKS", 50)
    told = remedy(reading, "direct-submission")
    assert "Delete line 3 (`sbatch 0.sh`)" in told
    assert "Change line 11 (`sbatch 8.sh`) yourself: take the submission out" in told
