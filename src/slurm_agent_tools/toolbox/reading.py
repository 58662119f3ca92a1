"""Reading a script with the files that it would run: those on the cluster, where it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slurm_agent_tools.errors import SlurmError, SlurmUnreachable
from slurm_agent_tools.model import ScriptReading
from slurm_agent_tools.reader import read_script
from slurm_agent_tools.toolbox.desk import Desk


async def read(
    desk: Desk,
    data: bytes,
    path: str,
    *,
    arguments: Mapping[str, str] | None = None,
    args: Sequence[str] | None = None,
) -> tuple[ScriptReading, SlurmUnreachable | None]:
    """The reading; and why its files are those here, where the cluster's could not be read: then nothing may be sent.

    Raises ConfigError when shfmt cannot be run.
    """
    away: SlurmUnreachable | None = None
    for shelf in (desk.there, desk.here):
        try:
            found = await read_script(
                data, path, project=shelf.root, files=shelf.files, arguments=arguments, args=args
            )  # fmt: skip
        except SlurmError as error:
            away = SlurmUnreachable(error.message, hint=error.hint)
        else:
            return found, away
    raise away or AssertionError  # files here do not speak to a cluster
