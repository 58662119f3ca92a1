"""`campaign run --all`: keeps the queue fed from all campaigns until each has ended, and ends with its terminal."""

from __future__ import annotations

import argparse
import signal
import sys
from datetime import timedelta

import anyio

from slurm_agent_tools.api import brief, printing, serialize
from slurm_agent_tools.api.campaign_feed import CampaignFeed
from slurm_agent_tools.api.toolbox import Toolbox, closed_after
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign_answer import FeedReply
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.units import parse_span

_EXITS = {"finished": 0, "needs_decision": 3, "running": 4}

_ENDINGS = [signal.SIGINT, signal.SIGTERM]
"""What Ctrl-C, a shutdown and a terminal that is closed send: what is being sent then is still written down."""
if hasattr(signal, "SIGHUP"):  # not on Windows
    _ENDINGS.append(signal.SIGHUP)


def run(toolbox: Toolbox, args: argparse.Namespace) -> int:
    """Tick after tick, and one answer at the end. Raises InputError for a window that is no time."""
    window = _window(args.window)
    try:
        return anyio.run(_within, toolbox, args, window)
    except KeyboardInterrupt:  # the second one
        return _EXITS["running"]


def _window(text: str) -> timedelta:
    try:
        seconds = parse_span(text)
    except ValueError:
        seconds = 0
    if seconds <= 0:
        raise InputError("--window", text, "is no time", hint="Write it with its unit, such as 24h or 90min.")
    return timedelta(seconds=seconds)


async def _within(toolbox: Toolbox, args: argparse.Namespace, window: timedelta) -> int:
    async with closed_after(toolbox):
        feed = CampaignFeed(await toolbox.registry.at(args.cluster), Caller(), window)
        reply = await _until_left(feed)
    printing.document(serialize.document(reply) if args.full else brief.brief(reply), as_json=args.json)
    return _EXITS[reply.status]


async def _until_left(feed: CampaignFeed) -> FeedReply:
    """Ticks until all have ended or somebody leaves: the tick that is under way then comes to its end."""
    over = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_hear, feed, over)
        said: dict[str, str | None] = {}
        while True:
            reply = await feed.tick()
            _tell(reply, said)
            if reply.status != "running" or over.is_set():
                break
            await until_next(feed, over)
            if over.is_set():
                break
        group.cancel_scope.cancel()
    if over.is_set():
        printing.note("Left. The jobs go on; slurm-agent-tools campaign run --all goes on with them.")
    return reply


async def until_next(feed: CampaignFeed, over: anyio.Event) -> None:
    """Until the next tick is due, or somebody leaves."""
    with anyio.move_on_after(feed.pause):
        await over.wait()


async def _hear(feed: CampaignFeed, over: anyio.Event) -> None:
    """Leave at the first signal; a second one ends it at once, as a crash would, which the next call makes good."""
    if sys.platform == "win32":  # asyncio hears no signals there: the first one ends it at once
        return
    with anyio.open_signal_receiver(*_ENDINGS) as signals:
        async for _ in signals:
            feed.leaving = True
            over.set()
            return


def _tell(reply: FeedReply, said: dict[str, str | None]) -> None:
    """What happened, and why nothing more is sent where that is new, on standard error."""
    for line in reply.happened:
        printing.note(line)
    for one in reply.campaigns:
        if said.get(one.name) != one.why and one.why is not None and not one.active:
            printing.note(f"{one.name}: nothing can be sent: {one.why}")
        said[one.name] = one.why
