"""Free space comes from df where the jobs run; what df does not tell is an error, not zero."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.services import status

HEAD = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n"


@pytest.mark.parametrize(
    ("row", "total", "free"),
    [
        ("/dev/vda         264212084 26174560  80216352      25% /\n", 264212084, 80216352),
        ("//server/my share 1000 400 600 40% /mnt/my 1 2 3 folder\n", 1000, 600),
        ("data:/vol 1000 1000 0 100% /home\n", 1000, 0),
        ("tmpfs 0 0 0 - /odd\n", 0, 0),
    ],
)
async def test_the_room_is_read_from_df(tmp_path: Path, row: str, total: int, free: int):
    slurm = FakeSlurm()
    slurm.garble("df", HEAD + row)
    made = fake_toolbox(tmp_path, slurm)
    found = await status.disk_room(made.context)
    assert (found.path, found.total_bytes, found.free_bytes) == (made.context.project, total * 1024, free * 1024)
    await made.close()


@pytest.mark.parametrize(
    "wrong",
    [
        lambda slurm: slurm.lose_connection("df"),
        lambda slurm: slurm.hang("df"),
        lambda slurm: slurm.garble("df", HEAD),
        lambda slurm: slurm.fail("df", ""),
        lambda slurm: slurm.garble("df", HEAD + "x y z\n"),
        lambda slurm: slurm.fail("df", "", stdout=HEAD + "/d 1 1 1 5% /\n"),
    ],
)
async def test_what_df_does_not_tell_is_an_error_that_names_the_folder(
    tmp_path: Path, wrong: Callable[[FakeSlurm], None]
):
    slurm = FakeSlurm()
    wrong(slurm)
    made = fake_toolbox(tmp_path, slurm)
    with pytest.raises(StorageError, match="project"):
        await status.disk_room(made.context)
    assert list(slurm.asked[0][:4]) == ["df", "-P", "-k", "--"]
    await made.close()
