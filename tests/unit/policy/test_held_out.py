"""Scripts that were written without a look at the reader: how it does on what it was not made for."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurm_agent_tools.cli.commands import policy_cases
from slurm_agent_tools.cli.commands.policy_cases import PolicyCase
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.settings import Settings

FOLDER = Path(__file__).parents[3] / "policies" / "tests"
RED, HONEST = FOLDER / "red-team-held-out.yaml", FOLDER / "honest-held-out.yaml"
OPEN = FOLDER / "not-caught" / "cases.yaml"
SETTINGS = Settings(project_root=FOLDER.parents[1])
LOADED = load(shipped())


def listed(path: Path) -> list[object]:
    return [pytest.param(case, id=Path(case.script or "").stem) for case in policy_cases.read(path)]


@pytest.mark.parametrize("case", listed(RED))
def test_a_trick_that_the_reader_was_not_made_for_is_stopped(case: PolicyCase):
    assert policy_cases.difference(case, policy_cases.judge_case(case, RED, LOADED, SETTINGS)) is None


@pytest.mark.parametrize("case", listed(HONEST))
def test_an_honest_script_that_the_reader_was_not_made_for_passes(case: PolicyCase):
    assert policy_cases.difference(case, policy_cases.judge_case(case, HONEST, LOADED, SETTINGS)) is None


def test_what_is_known_to_get_through_is_listed_until_it_is_stopped():
    stopped = [
        case.name
        for case in policy_cases.read(OPEN)
        if policy_cases.difference(case, policy_cases.judge_case(case, OPEN, LOADED, SETTINGS)) is None
    ]

    assert stopped == [], "move these to the held-out suite"
