"""How long the next wait should be: until the job is expected to end, at least the default, at most half an hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.services.clusters import NOW, Cluster, submitted

STEPS = "".join(f"step {number}/100 loss 0.1\n" for number in range(41))  # 40 % in 600 s: 900 s are left


def at(second: int) -> datetime:
    return datetime.fromtimestamp(second, UTC)


def ran(cluster: Cluster, *seconds: int, script: str = "a.sh", outcome: str = "COMPLETED") -> None:
    """The job itself and earlier runs in the ledger, the newest last."""
    context = cluster.box.context
    for number, took in enumerate(seconds, 100):
        run = replace(
            submitted(at(NOW - 90_000 + number), outcome=outcome, run_seconds=took), token=f"t{number}", job_id=number,
            idempotency_key=f"k{number}", script_path=script, script_sha256="other",
        )  # fmt: skip
        context.store.add(context.owner, run)
    context.store.add(context.owner, submitted(at(cluster.begun)))


async def suggested(cluster: Cluster) -> int | None:
    return (await cluster.wait()).suggested_timeout_seconds


@pytest.mark.parametrize(
    ("limit", "seconds"),
    [
        ("1:00:00", 1800),
        ("40:00", 1800),
        ("39:00", 1740),
        ("12:00", 120),
        ("11:00", 60),
        ("10:00", 45),
        ("UNLIMITED", 1800),
    ],
)
async def test_a_running_job_is_waited_for_until_its_limit_within_bounds(tmp_path: Path, limit: str, seconds: int):
    assert await suggested(Cluster(tmp_path, limit=limit)) == seconds


async def test_a_job_whose_log_tells_its_end_is_waited_for_until_then(tmp_path: Path):
    cluster = Cluster(tmp_path)
    cluster.write(STEPS)
    ran(cluster, 700, 700, 700)
    assert await suggested(cluster) == 900


@pytest.mark.parametrize(
    ("took", "more", "seconds"),
    [
        ([700], {}, 100),
        ([700, 800, 900], {}, 200),
        ([5000, 700, 700, 800, 900, 900], {}, 200),
        ([600], {}, 1800),
        ([700], {"script": "b.sh"}, 1800),
        ([700], {"outcome": "FAILED"}, 1800),
        ([], {}, 1800),
    ],
)
async def test_a_job_is_waited_for_as_long_as_its_last_runs_took(tmp_path: Path, took, more, seconds: int):
    cluster = Cluster(tmp_path)
    ran(cluster, *took, **more)
    assert await suggested(cluster) == seconds


@pytest.mark.parametrize(
    ("start", "seconds"), [(NOW + 100, 145), (NOW + 1755, 1800), (NOW + 9000, 1800), ("N/A", 1800)]
)
async def test_a_job_that_waits_is_waited_for_until_just_after_its_start(tmp_path: Path, start: object, seconds: int):
    cluster = Cluster(tmp_path, state="PENDING", reason="Resources", start=start, elapsed="0:00", nodes="")
    assert await suggested(cluster) == seconds


async def test_nobody_is_told_to_wait_for_what_is_over_or_never_starts(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    assert await suggested(Cluster(tmp_path / "a", state="FAILED", end=NOW - 5)) is None
    never = Cluster(
        tmp_path / "b", state="PENDING", reason="DependencyNeverSatisfied", dependency="afterok:4(failed)", elapsed="0:00",
        start="N/A", nodes="",
    )  # fmt: skip
    assert await suggested(never) is None
