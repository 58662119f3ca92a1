"""Free space comes from df where the jobs run; what df does not tell is an error, not zero."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.unit.services.contexts import toolbox

from slurm_agent_tools.errors import SlurmUnreachable, StorageError
from slurm_agent_tools.services import status
from slurm_agent_tools.transport.base import Completed

HEAD = "Filesystem     1024-blocks     Used Available Capacity Mounted on\n"


class Df:
    def __init__(self, text: str | None, exit_code: int = 0) -> None:
        self.text, self.exit_code = text, exit_code
        self.asked: list[Sequence[str]] = []

    async def run(self, argv, **_: object) -> Completed:
        self.asked.append(argv)
        if self.text is None:
            raise SlurmUnreachable("the connection is gone")
        return Completed(tuple(argv), self.exit_code, self.text.encode(), b"", 0.0)


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
    made = toolbox(tmp_path, Df(HEAD + row))
    found = await status.disk_room(made.context)
    assert (found.path, found.total_bytes, found.free_bytes) == (made.context.project, total * 1024, free * 1024)
    await made.close()


@pytest.mark.parametrize("df", [Df(None), Df(HEAD), Df("", 1), Df(HEAD + "x y z\n"), Df(HEAD + "/d 1 1 1 5% /\n", 1)])
async def test_what_df_does_not_tell_is_an_error_that_names_the_folder(tmp_path: Path, df: Df):
    made = toolbox(tmp_path, df)
    with pytest.raises(StorageError, match="project"):
        await status.disk_room(made.context)
    assert list(df.asked[0][:4]) == ["df", "-P", "-k", "--"]
    await made.close()
