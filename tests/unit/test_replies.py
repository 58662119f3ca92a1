"""The room of answers: every name is there, and none is made before it is used."""

import subprocess
import sys

import pytest

from slurm_agent_tools.models import answers


@pytest.mark.parametrize("name", answers.__all__)
def test_every_name_of_the_room_is_there(name: str) -> None:
    assert getattr(answers, name) is not None


def test_another_name_is_an_attribute_error() -> None:
    assert not hasattr(answers, "NoSuchReply")


def test_an_answer_is_made_when_it_is_used_and_the_others_are_not() -> None:
    program = "import sys; from slurm_agent_tools.replies import StatusReply; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    loaded = {name.rpartition(".")[2] for name in done.stdout.split() if name.startswith("slurm_agent_tools.replies.")}
    assert {"shapes", "status"} <= loaded
    assert not loaded & {"report", "results", "diagnosis", "submission", "history"}
