"""What is wrong inside an object that a caller sends: the error names the field, what it holds, and what exists."""

from __future__ import annotations

import pytest

from slurm_agent_tools.api import serialize
from slurm_agent_tools.api.catalogue import Tool
from slurm_agent_tools.errors import InputError

CHOOSE = serialize.BY_NAME["choose_backend"]


PLAN = serialize.BY_NAME["plan_jobs"]


def refused(tool: Tool = CHOOSE, **arguments: object) -> InputError:
    with pytest.raises(InputError) as caught:
        serialize.parse(tool, arguments)
    return caught.value


def test_a_misspelt_field_of_an_object_is_named_with_those_that_exist() -> None:
    error = refused(resources={"gpu": 1, "memory": "16G"}, expected="2h")
    assert error.message.startswith("resources.gpu: 1 is not a field of resources")
    assert error.hint == "Did you mean gpus? Known fields: gpus, cpus, memory, nodes."


def test_a_field_that_resembles_none_is_not_taken_for_one() -> None:
    assert refused(resources={"zz": 1}).hint == "Known fields: gpus, cpus, memory, nodes."


def test_an_object_sent_as_text_is_told_of_in_the_same_words() -> None:
    assert refused(resources='{"gpu": 1}').hint == refused(resources={"gpu": 1}).hint


def test_a_value_that_is_wrong_in_a_field_that_exists_is_told_as_before() -> None:
    assert refused(resources={"gpus": -1}).message.startswith("resources.gpus: input should be greater than")


@pytest.mark.proves("plans-refuse-by-name")
def test_what_is_in_a_list_is_named_by_its_name_where_it_has_one() -> None:
    wrong = refused(PLAN, jobs=[{"name": "a"}, {"name": "train", "resources": {"gpus": -1}}])
    assert wrong.message.startswith("jobs 'train': resources.gpus: input should be greater than")
    misspelt = refused(PLAN, jobs=[{"name": "train", "resources": {"gpu": 1}}])
    assert misspelt.message == "jobs 'train': resources.gpu: 1 is not a field of jobs 'train': resources"
    assert refused(PLAN, jobs=[{"count": 2}]).message == "jobs.0.name is required"
    assert refused(PLAN, jobs=["train"]).message.startswith("jobs.0: input should be")
    assert refused(PLAN, jobs=[{"name": "a"}], pool={"gpus": "x"}).message.startswith("pool.0.gpus: ")


@pytest.mark.proves("plans-refuse-by-name")
def test_of_too_many_jobs_the_first_beyond_is_named() -> None:
    error = refused(PLAN, jobs=[{"name": f"j{number}"} for number in range(10_002)])
    assert "10002 entries" in error.message
    assert "jobs 'j10000'" in error.hint
