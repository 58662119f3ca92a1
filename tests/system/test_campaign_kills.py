"""The MCP server is killed again and again while it advances a campaign: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from tests.system.campaign_files import RATES, RATES_FILE, TRAIN, laboratory
from tests.system.faces import Place, call

SOAK = os.environ.get("SOAK") == "1"
KILLS = 60 if SOAK else 6
RUNS = 1 + 9
"""A smoke run, four rates with two batch sizes each, and the baseline."""


def server(place: Place) -> StdioServerParameters:
    """The server, whose process id is in the file `server.pid` once it is there."""
    plain = place.server()
    wrapped = ["sh", "-c", 'echo $$ >"$0" && exec "$@"', str(place.project / "server.pid")]
    at = plain.args.index("-m") - 1 if plain.command == "setpriv" else 0
    argv = [plain.command, *plain.args]
    place.run(["rm", "-f", "server.pid"])
    words = [*argv[: at + 1], *wrapped, *argv[at + 1 :]] if at else [*wrapped, *argv]
    return plain.model_copy(update={"command": words[0], "args": words[1:]})


async def killed(place: Place, name: str, seconds: float) -> dict[str, Any] | None:
    """Advance a campaign with a new server, and kill that so long after the call; what it answered before, or None."""
    reply: dict[str, Any] | None = None

    async def shoot() -> None:
        await anyio.sleep(seconds)
        os.kill(int((place.project / "server.pid").read_text()), signal.SIGKILL)

    with suppress(MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with Client(server(place)) as client, anyio.create_task_group() as group:
            group.start_soon(shoot)
            with suppress(MCPError):
                reply = await call(client, "advance_campaign", name=name, timeout_seconds=50)
                group.cancel_scope.cancel()
    return reply


@pytest.mark.proves("campaign-survives-crash")
async def test_a_server_that_is_killed_again_and_again_loses_no_run_and_does_none_twice(fresh: Place):
    """Several campaigns one after the other, until there were enough kills."""
    chance, left, number, begun = random.Random(41), KILLS, 0, time.monotonic()  # noqa: S311 - moments, no secrets
    counting = f'{TRAIN}with open(f"ran-{{asked.out.parent.name}}.txt", "a") as log: print(asked.out.stem, file=log)\n'
    while left > 0:
        number += 1
        name = f"rates{number}"
        short = RATES_FILE.replace(str(list(RATES)), "[0.001, 0.003, 0.03, 0.3]").replace("runs/", f"runs/{name}/")
        laboratory(fresh, name, short, {"train.py": counting})
        reply = None
        while left > 0 and reply is None:
            reply = await killed(fresh, name, chance.uniform(0, 4))
            left -= reply is None
        async with fresh.client() as client:
            while reply is None or reply["status"] in {"planned", "running"}:
                reply = await call(client, "advance_campaign", name=name, timeout_seconds=50)
        assert reply["status"] == "finished", reply
        listed = (fresh.project / f"ran-{name}.txt").read_text().split()
        assert sorted(listed) == sorted(set(listed))
        assert len(listed) == reply["counts"]["done"] == RUNS
    if SOAK:
        print(f"\n{KILLS} kills in {number} campaigns, {time.monotonic() - begun:.0f} s")  # noqa: T201 - of a soak run
