"""The subcommand of one tool: words to arguments, one call, one answer, one exit code."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import anyio

from slurm_agent_tools import config, faces, logs, options, printing
from slurm_agent_tools.catalogue import Ask
from slurm_agent_tools.config import Settings
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.terminal import at_terminal
from slurm_agent_tools.toolbox import Caller, Toolbox

DONE, FAILED, INVALID, BLOCKED, AGAIN = 0, 1, 2, 3, 4
_BY_STATUS = {
    "blocked": BLOCKED,
    "unconfirmed": AGAIN,
    "running": AGAIN,
    "pending": AGAIN,
    "unknown": AGAIN,
    "no_log": FAILED,
    "partial": FAILED,
    "invalid": INVALID,
}


def run(name: str, words: Sequence[str], as_json: bool) -> int:
    """Call the tool and print its answer; returns the exit code. Raises AgentToolsError."""
    tool = faces.BY_NAME.get(name)
    if tool is None:
        raise InputError("command", name, "is not a command", hint="slurm-agent-tools --help lists them.")
    if options.wants_help(words):
        printing.lines([options.usage(tool, f"slurm-agent-tools {name}")])
        return DONE
    ask = faces.parse(tool, options.read(tool, words))
    settings = config.load()
    logs.configure(settings.log_level)
    body = anyio.run(_call, settings, name, ask)
    printing.document(body, as_json=as_json)
    return _BY_STATUS.get(body["status"], DONE)


async def _call(settings: Settings, name: str, ask: Ask) -> faces.Document:
    toolbox = Toolbox.open(settings)
    try:
        reply = await toolbox.call(
            name, ask, caller=Caller(), progress=_tell if sys.stderr.isatty() else None, asked=at_terminal
        )
        return faces.document(reply)
    finally:
        with anyio.CancelScope(shield=True):
            await toolbox.close()


async def _tell(done: float, total: float | None, message: str) -> None:
    """Progress for a person at a terminal."""
    share = f"{done:.0f}/{total:.0f} s  " if total else ""
    printing.note(f"{share}{message}")
