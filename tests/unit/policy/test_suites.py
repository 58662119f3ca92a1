"""The scripts that get around a rule, and the honest ones, each judged as `policy check` judges it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from slurm_agent_tools.cli.commands import policy_cases
from slurm_agent_tools.cli.commands.policy_cases import PolicyCase
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.settings import Settings

FOLDER = Path(__file__).parents[3] / "policies" / "tests"
RED, HONEST = FOLDER / "red-team.yaml", FOLDER / "honest.yaml"
SETTINGS = Settings(project_root=FOLDER.parents[1])
LOADED = load(shipped())


def listed(path: Path) -> list[object]:
    return [pytest.param(case, id=Path(case.script or "").stem) for case in policy_cases.read(path)]


def scripts(path: Path) -> list[Path]:
    return [FOLDER / (case.script or "") for case in policy_cases.read(path)]


def plain(path: Path) -> str:
    """A script's commands without directives, comments and white space, with the files beside it."""
    beside = sorted(path.parent.rglob("*")) if path.parent.name == path.stem else [path]
    texts = [one.read_text() for one in beside if one.is_file()]
    lines = [line for text in texts for line in text.split("\n")]
    directives = [line for line in lines if line.startswith(("#SBATCH", "#PBS", "#BSUB", "#SLURM"))]
    commands = [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    return re.sub(r"\s+", " ", " ".join(commands if len(commands) > 1 else [*directives, *commands]))


@pytest.mark.parametrize("case", listed(RED))
def test_a_script_that_gets_around_a_rule_is_stopped_by_that_rule(case: PolicyCase):
    assert case.expect.rules
    assert policy_cases.difference(case, policy_cases.judge_case(case, RED, LOADED, SETTINGS)) is None


@pytest.mark.parametrize("case", listed(HONEST))
def test_an_honest_script_is_not_refused_for_the_wrong_reason(case: PolicyCase):
    decision = policy_cases.judge_case(case, HONEST, LOADED, SETTINGS)

    assert policy_cases.difference(case, decision) is None
    assert policy_cases.decision_text(decision) == set(case.expect.rules)


def test_there_are_enough_tricks_of_enough_kinds():
    kinds = Counter(path.relative_to(FOLDER / "red-team").parts[0] for path in scripts(RED))

    assert sum(kinds.values()) >= 150
    assert len(kinds) >= 12


def test_there_are_enough_honest_scripts():
    assert len(scripts(HONEST)) >= 100


@pytest.mark.parametrize("path", [RED, HONEST], ids=lambda path: path.stem)
def test_no_two_scripts_are_the_same(path: Path):
    texts = Counter(plain(script) for script in scripts(path))

    assert [text for text, count in texts.items() if count > 1] == []


@pytest.mark.parametrize("path", [RED, HONEST], ids=lambda path: path.stem)
def test_no_script_is_left_out(path: Path):
    named = {script.relative_to(FOLDER / path.stem).with_suffix("") for script in scripts(path)}
    tops = {name.parts[: 2 if path == RED else 1] for name in named}
    found = {
        one.relative_to(FOLDER / path.stem).with_suffix("").parts
        for one in (FOLDER / path.stem).glob("*/*" if path == RED else "*")
    }

    assert found == tops
