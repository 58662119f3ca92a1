"""nvidia-smi in a step of a job: what is asked, and what its answers mean."""

from __future__ import annotations

import pytest

from slurm_agent_tools.slurm.commands import srun_overlap
from slurm_agent_tools.transport.base import Completed

A, B = "GPU-0f1c2d3e-aaaa-bbbb-cccc-000000000001", "GPU-0f1c2d3e-aaaa-bbbb-cccc-000000000002"


def done(out: str, *, code: int | None = 0, err: str = "") -> Completed:
    return Completed(("srun",), code, out.encode(), err.encode(), 2.0)


def test_it_is_a_short_step_that_takes_nothing_from_the_job():
    words = srun_overlap.argv(17, 2)
    assert {"--overlap", "--jobid=17", "--nodes=2", "--mem=0", "--time=1", "--input=none"} <= {*words}
    assert any(word.startswith("--immediate=") for word in words)
    assert words[-3:] == ["nvidia-smi", "--query-gpu=uuid,utilization.gpu", "--format=csv,noheader,nounits"]


def test_each_gpu_has_its_share_and_what_cannot_be_told_has_none():
    look = srun_overlap.parse(done(f"{A}, 37\n{B}, [N/A]\n"))
    assert (look.shares, look.note) == ({A: 0.37, B: None}, None)


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (done("", code=None), "did not answer within 2 s"),
        (done("", code=2, err="srun: error: execve(): nvidia-smi: No such file or directory"), "No such file"),
        (done("", code=1, err="srun: error: Unable to create step for job 17: Access/permission denied"), "denied"),
        (done("No devices were found\n"), "named no GPU"),
    ],
)
def test_what_is_not_measured_is_said_with_the_reason(answer, note):
    look = srun_overlap.parse(answer)
    assert look.shares == {}
    assert note in (look.note or "")


@pytest.mark.parametrize("share", ["9" * 5000, "-1", "\u0663", "1e9", "", "100 %"])
def test_a_share_that_is_no_number_of_per_cent_is_not_measured(share: str):
    assert srun_overlap.parse(done(f"{A}, {share}\n{B}, 50\n")).shares == {A: None, B: 0.5}


def test_a_share_is_never_above_the_whole():
    """A driver tells more than 100 for a moment."""
    assert srun_overlap.parse(done(f"{A}, 100\n{B}, 104\n")).shares == {A: 1.0, B: 1.0}
