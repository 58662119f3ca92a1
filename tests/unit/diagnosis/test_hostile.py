"""Lines made to keep a regular expression busy end none of them up in it; `make bench` has what they take."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import pytest
from tests.effort import some
from tests.unit.diagnosis.hostile import ANCHORED, MODULES, UNITS, hostile_log, lines, others, patterns
from tests.unit.diagnosis.records import job, log
from tests.watchdog import Hung, ends

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.signatures import Signature, signatures


def searched(search: Callable[[str], object], texts: Iterable[str], seconds: float = 60) -> int:
    """How many texts were searched to their ends."""
    count = 0
    with ends(seconds):
        for text in texts:
            search(text)
            count += 1
    return count


@pytest.mark.parametrize("signature", some(signatures()), ids=lambda signature: signature.id)
def test_no_pattern_of_a_signature_is_kept_busy_by_lines_made_for_it(signature: Signature):
    for pattern in patterns(signature):
        assert searched(pattern.search, lines(pattern, signature.samples)) > 10, pattern.pattern


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_no_other_pattern_of_a_diagnosis_is_kept_busy_by_lines_made_for_it(module):
    found = others(module)
    assert found
    for name, pattern in found.items():
        assert searched(pattern.match if name in ANCHORED else pattern.search, lines(pattern)) > 10, name


@pytest.mark.parametrize("unit", some(UNITS))
def test_a_log_full_of_lines_made_to_be_slow_is_diagnosed(unit):
    with ends():
        found = diagnose(job(exit_code=1), (), [log(*hostile_log(unit))])

    assert found.category
    assert len(found.explanation) < 500


def test_a_pattern_that_is_kept_busy_is_ended():
    """The test itself sees what it is for."""
    cube = re.compile(r"slurm\w+\S*\S*\S*: .*DUE TO")

    with pytest.raises(Hung):
        searched(cube.search, lines(cube), 0.5)
