"""The subcommand `campaign`: plan, run, status, report, stop. `run` stays to the end, and can be left at any time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable

import anyio

from slurm_agent_tools.api import brief, campaign_tools, printing
from slurm_agent_tools.api.toolbox import Toolbox, closed_after
from slurm_agent_tools.cli.terminal import at_terminal
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.models.campaign_answer import CampaignReply
from slurm_agent_tools.models.toolset_arguments import AdvanceCampaign, GetCampaign
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.settings import load
from slurm_agent_tools.text import log_events

DONE, BLOCKED, AGAIN = 0, 3, 4

_BY_STATUS = {"needs_decision": BLOCKED, "running": AGAIN, "planned": AGAIN}

_LOOK, _DRAWN = 60.0, 10.0
"""Seconds of one step of `run`, and of one where a bar is drawn behind each. A step looks at jobs when that is due."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define `campaign plan`, `run`, `status`, `report` and `stop`."""
    parser.description = (
        "Many runs to one answer, as campaigns/NAME.yaml says: what to vary, what counts, where to stop. Each run goes"
        " through the guard as submit_job's do. `run` needs no daemon: leave it with Ctrl-C and run it again, the jobs"
        " go on meanwhile. Exit codes: 0 done, 3 a person has to decide (--decide CHOICE), 4 not finished."
    )
    commands = parser.add_subparsers(dest="what", required=True, metavar="plan|run|status|report|stop")
    helps = {
        "plan": "what it would do, its hours and cost, and what the guard says; nothing is submitted",
        "run": "carry it on until it is finished or a person has to decide",
        "status": "how it stands, with a table of its runs",
        "report": "write the report beside the file, as Markdown and as a page with plots",
        "stop": "submit no more; what runs is left to end, what waits is cancelled",
    }
    for name, text in helps.items():
        command = commands.add_parser(name, help=text)
        optional = "?" if name == "run" else None
        command.add_argument("name", metavar="NAME", nargs=optional, help="of campaigns/NAME.yaml")
        command.add_argument("--cluster", metavar="NAME", help="the cluster of the settings")
        command.add_argument("--full", action="store_true", help="all rows and all that is known")
        command.add_argument("--json", action="store_true", help="print one JSON document")
        if name == "run":
            command.add_argument("--decide", metavar="CHOICE", help="the answer to the question that is open")
            told = "in place of NAME: keep the queue fed from all campaigns, by their shares, until each has ended"
            command.add_argument("--all", action="store_true", help=told)
            told = "with --all: over so long used time is compared with the shares (default 24h)"
            command.add_argument("--window", metavar="TIME", default="24h", help=told)
        if name == "stop":
            command.add_argument("--reason", default="campaign stop was called", help="for the record")


def run(args: argparse.Namespace) -> int:
    """Do it and print one answer; left with Ctrl-C it is not finished. Raises AgentToolsError."""
    settings = load()
    settings.need_toolset("campaigns", "campaign")
    log_events.configure(settings.log_level)
    if args.what == "run" and _is_feed(args):
        from slurm_agent_tools.cli.commands import campaign_feeding  # noqa: PLC0415 - one campaign needs none of it

        return campaign_feeding.run(Toolbox.open(settings), args)
    try:
        return anyio.run(_within, Toolbox.open(settings), args)
    except KeyboardInterrupt:
        printing.note(f"Left. Its jobs go on; slurm-agent-tools campaign run {args.name} goes on with it.")
        return AGAIN


def _is_feed(args: argparse.Namespace) -> bool:
    """Whether all campaigns are meant. Raises InputError where it is not clear."""
    if args.all and (args.name is not None or args.decide is not None):
        given = "NAME" if args.name is not None else "--decide"
        hint = f"slurm-agent-tools campaign run {args.name or 'NAME'} is about one campaign."
        raise InputError("--all", given, "stands beside --all, which is about every campaign", hint=hint)
    if not args.all and args.name is None:
        raise InputError("NAME", "", "is missing", hint="Name the campaign, or give --all for every one.")
    return bool(args.all)


async def _within(toolbox: Toolbox, args: argparse.Namespace) -> int:
    ways: dict[str, Callable[[Toolbox, argparse.Namespace], Awaitable[CampaignReply]]] = {
        "plan": _plan, "run": _run, "status": _status, "report": _report, "stop": _stop,
    }  # fmt: skip
    async with closed_after(toolbox):
        reply = await ways[args.what](toolbox, args)
    if args.json and not args.full:  # a person reads every sentence whole, a program as an agent gets it
        reply = campaign_tools.told_short(reply)
    body = brief.answer(reply, GetCampaign(name=args.name, detail="full" if args.full else "brief"))
    printing.document(body, as_json=args.json)
    if reply.question is not None:
        choices = " | ".join(reply.question.choices)
        printing.note(f"To answer: slurm-agent-tools campaign run {args.name} --decide CHOICE, one of {choices}")
    return _BY_STATUS.get(reply.status, DONE) if args.what in {"run", "stop"} else DONE


async def _call(toolbox: Toolbox, ask: ToolArguments) -> CampaignReply:
    name = "get_campaign" if isinstance(ask, GetCampaign) else "advance_campaign"
    reply = await toolbox.call(name, ask, caller=Caller(), asked=at_terminal)
    if not isinstance(reply, CampaignReply):  # pragma: no cover - these tools answer nothing else
        raise TypeError(reply)
    return reply


def _common(args: argparse.Namespace) -> dict[str, str | None]:
    return {"name": args.name, "cluster": args.cluster, "detail": "full" if args.full else "brief"}


async def _plan(toolbox: Toolbox, args: argparse.Namespace) -> CampaignReply:
    return await _call(toolbox, GetCampaign.model_validate({**_common(args), "view": "plan"}))


async def _status(toolbox: Toolbox, args: argparse.Namespace) -> CampaignReply:
    return await _call(toolbox, GetCampaign.model_validate({**_common(args), "view": "table"}))


async def _report(toolbox: Toolbox, args: argparse.Namespace) -> CampaignReply:
    return await campaign_tools.write_report(await toolbox.registry.at(args.cluster), args.name, Caller())


async def _stop(toolbox: Toolbox, args: argparse.Namespace) -> CampaignReply:
    common = {**_common(args), "detail": "full"}
    ask = AdvanceCampaign.model_validate({**common, "stop": args.reason, "timeout_seconds": 0})
    return await _call(toolbox, ask)


async def _run(toolbox: Toolbox, args: argparse.Namespace) -> CampaignReply:
    """Step after step, with what happened on standard error and a bar for each stage at a terminal."""
    seconds = _DRAWN if sys.stderr.isatty() else _LOOK
    decision = args.decide
    with printing.stages(sys.stderr) as tell:
        while True:
            common = {**_common(args), "detail": "full"}
            ask = AdvanceCampaign.model_validate({**common, "timeout_seconds": seconds, "decision": decision})
            decision = None
            reply = await _call(toolbox, ask)
            for text in reply.happened:
                printing.note(text)
            await _draw(toolbox, args, tell)
            if reply.status not in {"running", "planned"}:
                told = not (args.json or args.full)  # each sentence was just told
                return reply.model_copy(update={"happened": []}) if told else reply


async def _draw(toolbox: Toolbox, args: argparse.Namespace, tell: Callable[[str, int, int, str], None]) -> None:
    if not sys.stderr.isatty():
        return
    found = await campaign_tools.stage_counts(await toolbox.registry.at(args.cluster), args.name)
    for stage, stands in found.items():
        total = sum(stands.model_dump().values())
        words = f"{stands.running} running, {stands.pending} waiting, {stands.failed} failed"
        tell(stage, stands.done + stands.failed, total, words)
