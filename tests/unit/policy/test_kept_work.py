"""Whoever follows the advice about a script still has the script: on all that is in `policies/tests`."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.effort import some
from tests.unit.policy.kept_work import LOADED, broken, follow, judge, parses, spoken
from tests.unit.policy.script_maker import made

from slurm_agent_tools.cli.commands import policy_cases

FOLDER = Path(__file__).parents[3] / "policies" / "tests"
SUITES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "requests.yaml")


def listed() -> list[object]:
    scripts = {FOLDER / case.script: None for suite in SUITES for case in policy_cases.read(suite) if case.script}
    return [pytest.param(script, id=str(script.relative_to(FOLDER))) for script in scripts]


def beside(script: Path) -> dict[str, str]:
    """The files of a case that has a folder of its own, as the project holds them."""
    if script.parent.name != script.stem:
        return {}
    found = (path for path in script.parent.rglob("*") if path.is_file())
    return {f"scripts/{path.relative_to(script.parent)}": text(path) for path in found}


def text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "surrogateescape")


@pytest.mark.parametrize("script", some(listed()))
async def test_advice_about_a_case_keeps_the_work(script: Path):
    done = await follow(text(script), beside(script), f"scripts/{script.name}")

    assert done.broken == [], done.text
    assert done.told, done.left


def test_scripts_made_by_chance_are_bash_and_are_refused_for_many_reasons():
    scripts = [made(seed) for seed in range(100)]

    assert all(parses(script) for script in scripts)
    assert len(set(scripts)) == len(scripts)


# --- the property itself sees what it is for -----------------------------------------------------------------------


LOST = {
    "work beside it": ("srun python a.py && sbatch b.sh", ""),
    "a condition": ("if sbatch b.sh; then python a.py; fi", "python a.py"),
    "a loop": ("for f in a b; do python a.py $f; sbatch $f; done", "python a.py $f"),
    "what it hangs on": ("./b || { sbatch c.sh; python a.py; }", "./b\npython a.py"),
    "an order": ("sbatch b.sh\npython a.py\npython c.py", "python c.py\npython a.py"),
    "an argument": ("sbatch b.sh\npython a.py --lr 1", "python a.py"),
    "something new": ("sbatch b.sh\npython a.py", "python a.py\npython c.py"),
    "no shell": ("sbatch b.sh\npython a.py", "if python a.py"),
    "nothing left": ("sbatch b.sh\nsbatch c.sh\npython a.py", "echo over"),
}


@pytest.mark.parametrize(("before", "after"), LOST.values(), ids=LOST.keys())
async def test_a_script_that_lost_something_is_seen(before: str, after: str):
    first, second = f"#!/bin/bash\n{before}\n", f"#!/bin/bash\n{after}\n"
    reading, _ = await judge({"job.sh": first}, "job.sh", LOADED)

    assert await broken(first, second, reading)
    assert await broken(first, first, reading) == []


async def test_what_only_warns_never_says_delete():
    script = "#!/bin/bash\nexport HIP_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES # the same\npython a.py\n"
    _, decision = await judge({"job.sh": script}, "job.sh", LOADED)

    (warned,) = spoken(decision)

    assert warned.outcome == "warn"
    assert "Delete" not in (warned.remedy or "")
    assert "Replace" not in (warned.remedy or "")
