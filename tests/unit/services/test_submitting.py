"""A submission from end to end over a fake Slurm: sent once, found again, never left to run unchecked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import SlurmRefused
from slurm_agent_tools.models.arguments import GetStatus, SubmitJob
from slurm_agent_tools.models.submission_answer import SubmitReply

SCRIPT = "#!/bin/bash\n#SBATCH --partition=gpu\n#SBATCH --output=logs/%j.out\nsleep 600\n"


def write(folder: Path, script: str = SCRIPT) -> None:
    (folder / "project/a.sh").write_text(script)


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm(clock=FakeClock(datetime.now(UTC)))  # the ledger dates its records by the system's clock


@pytest.fixture
async def box(slurm: FakeSlurm, tmp_path: Path) -> AsyncIterator[Toolbox]:
    made = fake_toolbox(tmp_path, slurm)
    write(tmp_path)
    await made.call("get_status", GetStatus())
    yield made
    await made.close()


async def submitted(box: Toolbox, **more: object) -> SubmitReply:
    reply = await box.call("submit_job", SubmitJob.model_validate({"script": "a.sh", "idempotency_key": "k"} | more))
    assert isinstance(reply, SubmitReply)
    return reply


def jobs(slurm: FakeSlurm) -> list[tuple[str, str]]:
    return [(job.request.name, job.state) for job in slurm.controller.known()]


async def test_it_is_sent_held_and_released_once(box, slurm):
    reply = await submitted(box)
    assert (reply.status, reply.granted.gpus, reply.granted.memory_bytes) == ("submitted", 1, 16 * 2**30)
    await slurm.clock.advance(3)
    assert jobs(slurm) == [("a.sh", "RUNNING")]
    assert slurm.job(int(reply.job_id)).request.hold  # it was sent held


async def test_what_a_cluster_does_not_hold_is_told_with_each_submission_and_in_the_status(box, slurm):
    plain = await submitted(box)
    assert "not-held" not in {alert.code for alert in plain.alerts}
    box.registry.context = replace(box.registry.context, notes=lambda: ("No wall holds.",))
    for reply in (
        await submitted(box, dry_run=True, idempotency_key="other"),
        await submitted(box, idempotency_key="third", justification="once more"),
        await box.call("get_status", GetStatus(refresh=True)),
    ):
        told = [(alert.message, alert.severity) for alert in reply.alerts if alert.code == "not-held"]
        assert told == [("No wall holds.", "medium")], reply


async def test_whose_jobs_the_cluster_refuses_is_not_told_to_submit_by_the_status(box):
    box.registry.context = replace(box.registry.context, refused=lambda: "work as an ordinary user")
    reply = await box.call("get_status", GetStatus(refresh=True))
    assert (reply.queue.recommendation, "work as an ordinary user" in reply.queue.why) == ("ADJUST", True)


@pytest.mark.parametrize("command", ["sbatch --parsable", "scontrol release"])
@pytest.mark.parametrize("lose", [FakeSlurm.lose_next_reply, FakeSlurm.lose_next_request, FakeSlurm.hang])
async def test_whatever_gets_lost_one_job_runs_when_it_is_called_again(
    box, slurm, command: str, lose: Callable[[FakeSlurm, str], None]
):
    lose(slurm, command)
    first = await submitted(box)
    assert first.status in {"submitted", "unconfirmed"}
    await slurm.clock.advance(61)
    again = await submitted(box)
    assert again.status == "submitted", again.summary
    await slurm.clock.advance(3)
    assert [state for _, state in jobs(slurm) if state != "COMPLETED"] == ["RUNNING"]
    assert len(jobs(slurm)) == 1


async def test_a_controller_that_is_away_gets_nothing_and_a_person_gets_a_script(box, slurm):
    slurm.controller_down()
    reply = await submitted(box)
    assert (reply.status, reply.blocker, len(reply.artifacts)) == ("blocked", "cluster_unreachable", 1)
    assert slurm.counts["sbatch"] == 0


async def test_a_job_that_slurm_made_larger_never_runs(box, slurm):
    def widen() -> None:
        (job,) = slurm.controller.known()
        job.request.gpus = 4

    slurm.before_next("scontrol show job", widen)
    reply = await submitted(box)
    assert reply.status == "blocked"
    assert "number of GPUs is 4" in reply.reason
    await slurm.clock.advance(5)
    assert jobs(slurm) == [("a.sh", "CANCELLED")]


async def test_what_slurm_refuses_is_not_sent(box, slurm, tmp_path):
    write(tmp_path, SCRIPT.replace("=gpu", "=gpu\n#SBATCH --gpus=v100:1\n#SBATCH --mem=4G"))
    with pytest.raises(SlurmRefused, match="Requested node configuration is not available"):
        await submitted(box)
    assert not slurm.controller.known()
