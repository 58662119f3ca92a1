"""What sstat and `scontrol show reservation` tell, and names of nodes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from tests.unit.slurm.answers import done

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import SlurmGarbled, SlurmUnreachable
from slurm_agent_tools.models.job import StepUse
from slurm_agent_tools.models.node import Reservation
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm import node_list
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.slurm.commands import scontrol_reservations, sstat
from slurm_agent_tools.units import JobId

TRES = "cpu=00:00:09,energy=0,fs/disk=176472,mem=165830656,pages=0,vmem=165830656"
STEPS = f"2.batch|1|4173824|00:00:00|cpu=00:00:00,mem=4173824\n2.0|4|55279616|00:00:02|{TRES}\n".encode()


# --- sstat -------------------------------------------------------------------------------------------------------


def test_a_step_is_read_with_what_all_its_tasks_have_now():
    batch, first = sstat.parse(done(STEPS))
    assert batch == StepUse(2, "batch", 1, 4173824, 4173824, 0.0)
    assert first == StepUse(2, "0", 4, 165830656, 55279616, 9.0)


def test_sizes_with_a_unit_and_cpu_time_without_a_sum_are_read_as_well():
    [step] = sstat.parse(done(b"2.0|4|52.5M|00:00:02|mem=158.15M,pages=0\n"))
    assert (step.task_peak_bytes, step.memory_bytes, step.cpu_seconds) == (52.5 * 2**20, round(158.15 * 2**20), 8.0)


def test_a_component_of_a_het_job_stands_under_its_own_number():
    [step] = sstat.parse(done(b"12+1.0|1|1024|00:00:00|cpu=00:00:01,mem=1024\n"))
    assert step.raw_id == 13


def test_a_step_without_a_sample_has_measured_nothing():
    [step] = sstat.parse(done(b"2.extern|1|0|00:00:00|cpu=00:00:00,mem=0\n"))
    assert (step.memory_bytes, step.task_peak_bytes) == (None, None)
    [step] = sstat.parse(done(b"2.extern||||\n"))
    assert step == StepUse(2, "extern", None, None, None, None)


@pytest.mark.parametrize("code", [0, 1])
def test_a_job_without_steps_has_none(code: int):
    assert sstat.parse(done(b"", b"sstat: error: couldn't get steps for job 77\n", code)) == ()


def test_silence_and_nonsense_are_errors():
    with pytest.raises(SlurmUnreachable):
        sstat.parse(done(b"", b"slurm_load: Unable to contact slurm controller (connect failure)", 1))
    with pytest.raises(SlurmUnreachable):
        sstat.parse(done(code=None))
    for text in (b"lorem ipsum\n", b"2.0|x|1|00:00:00|mem=1\n", b"2.0|1|1|soon|mem=1\n", b"2.0|1|1|00:00:01|mem\n"):
        with pytest.raises(SlurmGarbled):
            sstat.parse(done(text))


def test_an_array_is_asked_for_once_and_as_a_whole():
    argv = sstat.argv([JobId(3, task=1), JobId(3, task=2), JobId(9)])
    assert argv[-1] == "--jobs=3,9"
    assert {"--allsteps", "--noconvert", "--parsable2"} <= set(argv)


# --- reservations ------------------------------------------------------------------------------------------------

LINE = (
    "ReservationName=works StartTime=1795274296 EndTime=1795277896 Duration=01:00:00 Nodes=cpu[01-02],gpu1 NodeCnt=3"
    " CoreCnt=288 Features=(null) PartitionName=(null) Flags=MAINT,IGNORE_JOBS,SPEC_NODES TRES=cpu=288 Users=root"
    " Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE BurstBuffer=(null) Watts=n/a MaxStartDelay=(null)"
)


def test_a_reservation_is_read():
    assert scontrol_reservations.parse(done(LINE.encode() + b"\n")) == (
        Reservation(
            "works", datetime.fromtimestamp(1795274296, UTC), datetime.fromtimestamp(1795277896, UTC),
            frozenset({"cpu01", "cpu02", "gpu1"}), None, frozenset({"MAINT", "IGNORE_JOBS", "SPEC_NODES"}),
        ),
    )  # fmt: skip


def test_what_stands_behind_the_fields_changes_none_of_them():
    told = f"{LINE} Comment=StartTime=1 Nodes=all Flags=SPEC_NODES\n"
    assert scontrol_reservations.parse(done(told.encode())) == scontrol_reservations.parse(done(LINE.encode()))


def test_a_reservation_of_no_nodes_and_none_at_all_are_read():
    [one] = scontrol_reservations.parse(done(LINE.replace("cpu[01-02],gpu1", "(null)").replace("MAINT,", "").encode()))
    assert (one.nodes, one.maintenance) == (frozenset(), False)
    assert scontrol_reservations.parse(done(b"No reservations in the system\n")) == ()


def test_a_reservation_that_cannot_be_read_is_an_error():
    for text in (LINE.replace("StartTime=1795274296", "StartTime=soon"), LINE.replace("[01-02]", "[01-")):
        with pytest.raises(SlurmGarbled):
            scontrol_reservations.parse(done(text.encode()))
    with pytest.raises(SlurmUnreachable):
        scontrol_reservations.parse(done(code=None))


# --- questions ---------------------------------------------------------------------------------------------------


def client(fake: FakeSlurm) -> SlurmClient:
    return SlurmClient(fake, fake.clock, SlurmSettings(), user=fake.user)


async def test_looks_at_several_jobs_in_one_moment_are_one_command_and_kept(tmp_path: Path):
    fake = FakeSlurm()
    numbers = [fake.submit(cwd=str(tmp_path)) for _ in range(3)]
    await fake.clock.advance(10)
    slurm = client(fake)
    found: list[object] = []

    async def one(base: int) -> None:
        found.append((await slurm.running.use([base])).get(base))

    for _ in range(2):
        async with anyio.create_task_group() as group:
            for base in numbers:
                group.start_soon(one, base)
    assert [argv[-1] for argv in fake.asked] == ["--jobs=1,2,3"]
    assert slurm.calls["sstat"] == 1
    assert found[:3] == found[3:]
    assert [step.step_id for step in (await slurm.running.use([2]))[2]] == ["batch"]


async def test_reservations_are_kept_for_a_minute():
    fake = FakeSlurm()
    fake.extra["reservations"] = f"{LINE}\n"
    slurm = client(fake)
    assert await slurm.running.reservations() == await slurm.running.reservations()
    assert slurm.calls == {"scontrol show reservation": 1}
    fake.clock.move(61)
    assert [one.name for one in await slurm.running.reservations()] == ["works"]
    assert slurm.calls == {"scontrol show reservation": 2}


# --- names of nodes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("cpu01", {"cpu01"}),
        ("cpu[01-03,7],gpu1", {"cpu01", "cpu02", "cpu03", "cpu7", "gpu1"}),
        ("r[1-2]n[09-10]", {"r1n09", "r1n10", "r2n09", "r2n10"}),
        ("a-b.c[1]", {"a-b.c1"}),
    ],
)
def test_host_lists_are_expanded(text: str, names: set[str]):
    assert node_list.expand(text) == names


@pytest.mark.parametrize("text", ["", "a,,b", "a[1-", "a]1[", "a[x]", "a[3-1]", "a[1-999999999]", "a b", "a[[1]]"])
def test_what_is_no_host_list_is_an_error(text: str):
    with pytest.raises(ValueError, match="not a"):
        node_list.expand(text)


def test_an_expression_for_more_nodes_than_any_cluster_has_is_an_error():
    with pytest.raises(ValueError, match="more than"):
        node_list.expand("a[1-50000],b[1-50001]")
