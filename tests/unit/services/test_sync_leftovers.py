"""What a transfer that was cut left on the other side: the next one takes away its own, and nothing else."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.unit.services.two_sides import Sides, two_sides
from tests.unit.transport.sshserver import Node

HOUR = 3600


@pytest.fixture
async def sides(tmp_path: Path, node: Node) -> AsyncIterator[Sides]:
    async with two_sides(tmp_path, node) as made:
        made.write("a.txt")
        made.write("src/-deep name/b.py")
        made.write("src/" + "long" * 20)
        made.track()
        yield made


def left(sides: Sides, name: str, age: float = 2 * HOUR) -> Path:
    path = sides.write(name, "half", there=True)
    os.utime(path, (time.time() - age,) * 2)
    return path


OWN = [
    ".a.txt.01ab23cd.tmp",
    "src/-deep name/.b.py.0123456789ab.slurm-agent-part",
    "src/-deep name/.b.py.ffffffff.tmp",
    f"src/.{('long' * 20)[:50]}.01ab23cd.tmp",
    ".slurm-agent-part/a.txt",
    "src/-deep name/.slurm-agent-part/b.py",
]


@pytest.mark.proves("sync-goes-on-where-it-broke")
async def test_the_next_push_takes_away_what_earlier_ones_left_half_done(sides: Sides) -> None:
    for name in OWN:
        left(sides, name)
    (sides.there / "src/.b.py.01ab23cd.tmp").symlink_to("b.py")  # of no name in this folder
    reply = await sides.sync("push")
    assert (reply.status, reply.sent) == ("done", 3)
    assert f"left half done: {len(OWN)} files" in reply.summary
    assert sorted(sides.files()) == ["a.txt", "src/-deep name/b.py", "src/" + "long" * 20]
    assert not list(sides.there.rglob(".slurm-agent-part"))
    assert (sides.there / "src/.b.py.01ab23cd.tmp").is_symlink()
    assert "half done" not in (await sides.sync("push")).summary


@pytest.mark.parametrize(
    "name",
    [
        ".a.txt.tmp", ".a.txt.01AB23CD.tmp", ".a.txt.01ab23cd5.tmp", "a.txt.01ab23cd.tmp", ".other.txt.01ab23cd.tmp",
        ".a.txt.01ab23cd.tmp.bak", "src/.a.txt.01ab23cd.tmp", ".slurm-agent-part/other", "results/.a.txt.01ab23cd.tmp",
        "src/-deep name/.b.py.0123456789a.slurm-agent-part", ".slurm-agent-part/more/a.txt", ".a.txt.a1b2c3",
    ],
)  # fmt: skip
async def test_what_has_another_name_stays_however_much_it_looks_like_it(sides: Sides, name: str) -> None:
    kept = left(sides, name)
    assert (await sides.sync("push")).status == "done"
    assert kept.read_text() == "half"


async def test_what_another_push_may_be_writing_now_stays(sides: Sides) -> None:
    kept = [left(sides, name, age=HOUR / 2) for name in OWN]
    assert (await sides.sync("push")).status == "done"
    assert all(path.exists() for path in kept)


async def test_a_file_of_the_project_with_such_a_name_is_a_file_of_the_project(sides: Sides) -> None:
    sides.write(".a.txt.01ab23cd.tmp", "mine")
    sides.track()
    left(sides, ".a.txt.01ab23cd.tmp")
    assert (await sides.sync("push")).sent == 4
    assert sides.files()[".a.txt.01ab23cd.tmp"] == b"mine"


@pytest.mark.parametrize("direction", ["status", "push"])
async def test_who_only_looks_takes_nothing_away(sides: Sides, direction: str) -> None:
    kept = left(sides, OWN[0])
    more = {"dry_run": True} if direction == "push" else {}
    reply = await sides.sync(direction, **more)
    assert OWN[0] not in reply.differs
    assert kept.exists()


async def test_what_lies_behind_a_link_stays(sides: Sides, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("theirs")
    os.utime(outside / "a.txt", (0, 0))
    (sides.there / ".slurm-agent-part").symlink_to(outside)
    assert (await sides.sync("push")).status == "done"
    assert (outside / "a.txt").read_text() == "theirs"
