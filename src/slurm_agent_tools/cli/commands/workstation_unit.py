"""The unit of systemd that starts the workstation: of the user, or of the machine where root brings it up.

A user's unit is handed neither devices nor cores by systemd, so it can hold no GPU back; a unit of the machine can.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from slurm_agent_tools.devcluster.definition import SEARCH, is_root, me
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.settings import workstation_place
from slurm_agent_tools.transport import process

UNIT = "slurm-agent-workstation.service"

RUNS = Path("/run/systemd/system")
"""There where systemd is the first process (sd_booted(3))."""

SYSTEM = Path("/etc/systemd/system")

_PASSED = (workstation_place.VARIABLE, "XDG_STATE_HOME")


def _systemd() -> bool:
    return RUNS.is_dir()


def path() -> Path:
    """Where the unit lies."""
    return (SYSTEM if is_root() else Path.home() / ".config/systemd/user") / UNIT


def text() -> str:
    """The whole unit. What it started outlives it (KillMode=process): stopping keeps the state and ends no job."""
    told = "".join(f"Environment={_word(f'{name}={os.environ[name]}')}\n" for name in _PASSED if os.environ.get(name))
    late = "After=local-fs.target nvidia-persistenced.service\n" if is_root() else ""
    return f"""\
[Unit]
Description=This machine as a Slurm cluster, for slurm-agent-tools
{late}
[Service]
Type=oneshot
RemainAfterExit=yes
{told}ExecStart={_line("up")}
ExecStop={_line("down", "--keep-jobs")}
KillMode=process
Delegate=yes
TimeoutStartSec=300
TimeoutStopSec=120

[Install]
WantedBy={"multi-user" if is_root() else "default"}.target
"""


async def enable() -> list[str]:
    """Write the unit and tell systemd of it; returns lines for the person. StorageError when it cannot be written."""
    if not _systemd():
        by_hand = " ".join(_command("up"))
        return [
            "systemd does not run here, so nothing was written. Start it by hand after each start of the machine:",
            f"  {by_hand}",
            "or let cron do it; add this line with `crontab -e`:",
            f"  @reboot {by_hand}",
        ]
    try:
        path().parent.mkdir(parents=True, exist_ok=True)
        path().write_text(text(), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{path()} could not be written: {error.strerror}", hint="Look at that folder.") from error
    lines = [f"written: {path()}", *await _manage(["daemon-reload"], ["enable", UNIT])]
    if not is_root():
        lines.append(
            f"So that it starts without your login, and jobs outlive your logout: loginctl enable-linger {me()}"
        )
    return lines


async def disable() -> list[str]:
    """Remove the unit; returns lines for the person."""
    if not path().exists():
        return [f"there is no {path()}"]
    lines = await _manage(["disable", UNIT]) if _systemd() else []
    path().unlink(missing_ok=True)
    lines += await _manage(["daemon-reload"]) if _systemd() else []
    return [f"removed: {path()}; what runs goes on", *lines]


async def _manage(*calls: Sequence[str]) -> list[str]:
    """Ask systemctl; for each call that fails, the line to type."""
    lines = []
    for words in calls:
        argv = ["systemctl", *([] if is_root() else ["--user"]), *words]
        try:
            done = await process.run(argv, env={**os.environ, "PATH": SEARCH}, timeout=60)
            said = done.stderr.decode(errors="replace").strip()[-200:] if done.exit_code != 0 else ""
        except OSError as error:
            said = str(error)
        if said:
            lines.append(f"please run `{' '.join(argv)}`: {said}")
    return lines


def _command(*words: str) -> list[str]:
    return [sys.executable, "-m", "slurm_agent_tools", "workstation", *words]


def _line(*words: str) -> str:
    return " ".join(_word(word).replace("$", "$$") for word in _command(*words))


def _word(word: str) -> str:
    """One word as systemd reads it (systemd.syntax(7), systemd.unit(5)): % is doubled; in a command $ is too."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{plain}"' if any(letter in word for letter in " \t'\"\\") else plain
