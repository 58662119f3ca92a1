"""What all jobs waited lately: one or two bounded questions, and none where none may be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import anyio
import anyio.lowlevel
import pytest
from tests.unit.slurm.answers import Prepared, done
from tests.unit.slurm.clocks import START, US

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.errors import SlurmGarbled, SlurmUnreachable
from slurm_agent_tools.models.job import PastWait, comment_for, is_plain_run_id, run_id_in, token_in
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm import occasional_questions
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.slurm.commands import sacct_waits
from slurm_agent_tools.transport.base import Completed

CONFIG = b"ClusterName = test\nSLURM_VERSION = 22.05.8\nAccountingStorageType = %s\n"
TRES = "billing=2,cpu=2,gres/gpu=1,mem=4G,node=1"


def row(
    job: str, *, user: str = "alice", ready: str = str(START), start: str = str(START + 30), tres: str = TRES
) -> str:
    return US.join([job, user, "gpu", str(START - 60), ready, start, "01:00:00", tres])


def table(*rows: str) -> bytes:
    return "".join(f"{one}\n" for one in rows).encode()


class Yielding(Prepared):
    """Lets a cancellation in before it answers, as every real command does."""

    async def run(self, argv: Sequence[str], **facts: object) -> Completed:  # type: ignore[override]
        await anyio.lowlevel.checkpoint()
        return await super().run(argv)


class Told:
    """A cluster whose accounting answers by the window that was asked for, in hours."""

    def __init__(self, answers: dict[int, bytes], *, kind: bytes = b"accounting_storage/slurmdbd") -> None:
        self.answers, self.windows, self.cut = answers, [], False
        self.clock = FakeClock()
        config = done(CONFIG % kind)
        runner = Yielding(
            {"sacct": self.sacct, "scontrol": lambda argv: config if argv[2] == "config" else self.slow(argv)}
        )
        self.slurm = SlurmClient(runner, self.clock, SlurmSettings(), user="alice", mark=str)

    def sacct(self, argv: Sequence[str]) -> Completed:
        assert {"--allusers", "--allocations", "--state=RUNNING", "--endtime=now"} <= set(argv)
        [start] = [word for word in argv if word.startswith("--starttime=now-")]
        self.windows.append(int(start.removeprefix("--starttime=now-").removesuffix("hours")))
        return Completed(tuple(argv), 0, self.answers[self.windows[-1]], b"", 0.01, self.cut)

    def slow(self, argv: Sequence[str]) -> Completed:
        return Completed(tuple(argv), 0, b"", b"", 9.0)


async def test_a_wait_counts_from_when_a_job_could_run():
    told = Told({2: table(row("5"), row("6_3", ready="Unknown"), row("7", start="Unknown")), 168: table(row("5"))})
    told.answers[168] = told.answers[2]

    found = await told.slurm.past()

    asked = Resources("gpu", 1, 2, 1, 4 * 2**30, time_limit_seconds=3600)
    assert found is not None
    kept = [replace(one, user="", ready=None) for one in found.waits]
    assert kept == [PastWait(5, "gpu", 30, asked), PastWait(6, "gpu", 90, asked)]
    assert [(one.user, one.ready and one.ready.timestamp()) for one in found.waits] == [
        ("alice", START),
        ("alice", START - 60),
    ]
    assert (found.hours, found.own, found.note) == (168, True, None)


@pytest.mark.parametrize(
    ("rows", "windows"), [(0, [2, 168]), (59, [2, 168]), (60, [2, 24]), (416, [2, 24]), (417, [2])]
)
async def test_the_window_is_as_wide_as_the_number_of_jobs_allows(rows: int, windows: list[int]):
    few = table(*(row(str(number)) for number in range(1, rows + 1)))
    told = Told({2: few, 24: few, 168: few})

    found = await told.slurm.past()

    assert found is not None
    assert (told.windows, found.hours, len(found.waits)) == (windows, windows[-1], rows)


async def test_an_answer_is_kept_for_ten_minutes():
    told = Told({2: b"", 168: b""})
    for passed in (0, 300, 299):
        told.clock.move(passed)
        await told.slurm.past()
    assert told.windows == [2, 168]
    assert await told.slurm.past(ask=False) is not None

    told.clock.move(2)

    assert await told.slurm.past(ask=False) is None
    await told.slurm.past()
    assert len(told.windows) == 4


async def test_a_slow_controller_is_not_asked():
    told = Told({})
    for _ in range(3):
        told.clock.move(10)
        await told.slurm.nodes(max_age=0)

    assert told.slurm.verdict.kind != "calm"
    assert await told.slurm.past() is None


async def test_a_cluster_without_accounting_says_so():
    told = Told({}, kind=b"accounting_storage/none")
    found = await told.slurm.past()
    assert found is not None
    assert (found.waits, found.note) == ((), "this cluster keeps no accounting")


async def test_an_answer_that_is_too_long_is_not_used():
    told = Told({2: table(row("1"))})
    told.cut = True
    found = await told.slurm.past()
    assert found is not None
    assert found.waits == ()
    assert found.note == "too many jobs ran in the last 2 hours to look at them all"


async def test_jobs_of_others_are_told_apart():
    told = Told({2: table(row("1"), row("2", user="bob")), 168: table(row("1"), row("2", user="bob"))})
    found = await told.slurm.past()
    assert found is not None
    assert found.own is False


@pytest.mark.parametrize("text", [row("5").replace(US, "|"), row("five"), row("5", tres="cpu"), row("5", start="soon")])
def test_a_row_that_cannot_be_read_is_an_error(text: str):
    with pytest.raises(SlurmGarbled):
        sacct_waits.parse(done(table(text), argv=sacct_waits.argv(2)))


def test_an_accounting_that_is_away_is_an_error_and_no_empty_answer():
    with pytest.raises(SlurmUnreachable):
        sacct_waits.parse(done(b"", b"sacct: error: slurm_persist_conn_open: failed to open", 1, sacct_waits.argv(2)))
    with pytest.raises(SlurmUnreachable):
        sacct_waits.parse(done(b"", b"sacct: error: slurm_persist_conn_open: failed to open", 0, sacct_waits.argv(2)))


# --- the comment ---------------------------------------------------------------------------


@pytest.mark.parametrize("run_id", [None, "exp-7", "a:b", "mlflow/12@node.3+x_y"])
def test_a_comment_holds_the_token_and_the_run_id(run_id: str | None):
    made = comment_for("sat-0123456789abcdef", run_id)
    assert token_in(f"{made} ") == "sat-0123456789abcdef"
    assert run_id_in(made) == run_id


def test_a_comment_that_others_wrote_is_no_token_of_ours():
    assert token_in(None) is run_id_in(None) is None
    assert token_in("sat-0123456789abcdef0") != "sat-0123456789abcdef"
    assert run_id_in("free words") is None


@pytest.mark.parametrize("run_id", ["", "a b", "a\n", "a|b", "a=b", "é", "$(id)", "a'b", 'a"b', "x" * 101, "\x1f"])
def test_a_run_id_of_other_signs_is_not_plain(run_id: str):
    assert not is_plain_run_id(run_id)
    assert is_plain_run_id("x" * 100)


# --- an accounting that gives no answer ----------------------------------------------------------------------------


async def test_an_accounting_that_failed_is_left_alone_for_a_minute():
    told = Told({2: b"garbage\n", 168: b""})
    with pytest.raises(SlurmGarbled):
        await told.slurm.past()
    told.answers[2] = b""
    told.clock.move(59)

    assert await told.slurm.past() is None
    assert told.windows == [2]
    told.clock.move(1)
    assert await told.slurm.past() is not None


async def test_an_accounting_that_nobody_waits_for_any_longer_is_left_alone_too():
    told = Told({2: b"", 168: b""})
    with anyio.CancelScope() as scope:
        scope.cancel()
        await told.slurm.past()

    assert await told.slurm.past() is None
    told.clock.move(60)
    assert await told.slurm.past() is not None


async def test_a_wider_window_that_takes_too_long_or_is_too_much_leaves_the_short_one(monkeypatch: pytest.MonkeyPatch):
    told = Told({2: table(row("1")), 168: table(row("1"), row("2"))})
    monkeypatch.setattr(occasional_questions, "_WIDE", 0)

    found = await told.slurm.past()

    assert found is not None
    assert (found.hours, len(found.waits), found.note) == (2, 1, None)
    assert await told.slurm.past(ask=False) == found
