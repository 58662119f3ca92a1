"""The subcommand `approve`: a person reads exactly what would run, and says yes or no on a terminal or by signature."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from slurm_agent_tools import settings
from slurm_agent_tools.api import printing
from slurm_agent_tools.api.context_registry import OpenedContexts, one_cluster
from slurm_agent_tools.cli.commands import launching
from slurm_agent_tools.cli.terminal import person, person_types
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.services import approval
from slurm_agent_tools.services.context import ClusterContext, SiteJudge
from slurm_agent_tools.store.submissions import Approval
from slurm_agent_tools.text import plan_text, safe_open, sanitize
from slurm_agent_tools.transport import signature

DONE, BLOCKED = 0, 3

_MOST = 64 * 1024

_ELSE, _ENTER = "or use --signature where the policy counts signatures", "Enter alone changes nothing"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `approve`."""
    parser.description = (
        "Read a request that needs a person, and approve exactly it, once. Approving submits nothing: the next"
        " identical submit_job uses it. Without an id, list the open questions of this project."
    )
    parser.add_argument("id", nargs="?", help="the question's id, as the blocked submit_job told it")
    parser.add_argument("--cluster", metavar="NAME", help="the cluster of the settings that the request is for")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--decline", action="store_true", help="say no; the same request is not asked again for a while")
    how.add_argument("--show", action="store_true", help="print exactly the text that a signature has to cover")
    how.add_argument(
        "--sign", metavar="KEY", help="read it, and sign it with this SSH key (private, or public with an agent)"
    )
    how.add_argument("--signature", metavar="FILE", help="a signature that was made elsewhere over what --show prints")
    parser.add_argument("--socket", type=Path, metavar="PATH", help="of the site's service, whose question it is")
    parser.add_argument("--principal", metavar="NAME", help="who signs, where the policy lists the key by a pattern")


async def run(args: argparse.Namespace) -> int:
    """Answer one question; returns the exit code. Raises AgentToolsError."""
    known = settings.load()
    if args.socket:
        known = known.model_copy(update={"site_socket": args.socket.absolute()})
    async with one_cluster(OpenedContexts(known), args.cluster) as context:
        if context.site is not None:
            return await _at_site(context.site, args)
        if args.id is None:
            return await _list(context)
        item = await _open(context, args.id)
        if not args.decline:
            await _check(context, item)
        if args.show:
            sys.stdout.write(item.plan)
            return DONE
        if args.sign or args.signature:
            return await _signed(context, item, args)
        return await asked(context, item, decline=args.decline)


async def _at_site(site: SiteJudge, args: argparse.Namespace) -> int:
    """The same where the site's service asks and counts: a yes is a signature, or a passkey's on the service's page."""
    if args.id is None:
        found = (await site.ask("questions", {}))["questions"]
        for one in found:
            state = f"approved ({one['granted']})" if one["granted"] else "open"
            printing.lines(
                [f"{one['id']}  {state}  until {one['expires']}  {ascii(one['job_name'])[1:-1]}", *_page(one)]
            )
        if not found:
            printing.lines(["No question of the site's service is open in this project."])
        return DONE
    if args.decline:
        await site.ask("answer", {"id": args.id, "decline": True})
        printing.lines(["Declined."])
        return DONE
    told = await site.ask("question", {"id": args.id})
    text = str(told["text"])
    if args.show:
        sys.stdout.write(text)
        return DONE
    if not (args.sign or args.signature):
        if page := _page(told):
            printing.lines(
                ["Nothing is approved yet. Read it and answer with a passkey there, or give --sign KEY:", *page]
            )
            return BLOCKED
        hint = "Read it with --show; sign it with --sign KEY, or elsewhere, and give --signature FILE."
        raise InputError("approve", args.id, "needs a signature: nothing typed counts at the site's service", hint=hint)
    if args.sign and not _agreed(text, args.sign):
        printing.lines(["Nothing was changed."])
        return BLOCKED
    proof = _read(Path(args.signature)) if args.signature else await signature.sign(text, Path(args.sign))
    words = {"id": args.id, "channel": "signed", "proof": proof, "who": args.principal}
    by = ascii((await site.ask("answer", words))["by"])[1:-1]
    printing.lines([f"Approved with the signature of {by}. The next identical submit_job uses it, once."])
    return DONE


def _page(told: Mapping[str, Any]) -> list[str]:
    """The link of a question's page at the service, where it has one."""
    return [sanitize.line(str(told["page"]))] if told.get("page") else []


async def _list(context: ClusterContext) -> int:
    found = await context.db(context.store.approvals.open, context.owner)
    for item in found:
        state = f"approved ({item.channel})" if item.granted else "open"
        printing.lines([f"{item.id}  {state}  until {item.expires:%Y-%m-%d %H:%M} UTC  {ascii(item.job_name)[1:-1]}"])
    if not found:
        printing.lines(["No question is open in this project."])
    return DONE


async def _open(context: ClusterContext, name: str) -> Approval:
    """The question, if it can still be answered. Raises InputError."""
    item = await context.db(context.store.approvals.find, context.owner, name)
    hint = "See `slurm-agent-tools approve` for the open ones; a new submit_job asks again."
    if item is None:
        raise InputError("id", name, "is no question of this user", hint=hint)
    if (closed := item.closed(context.clock.now())) is not None:
        raise InputError("id", name, closed, hint=hint)
    return item


async def _check(context: ClusterContext, item: Approval) -> None:
    """Raises InputError where the question is not about what would run now."""
    launch = launching.task_of(item) is not None
    found = await (launching if launch else approval).outdated(context, item)
    if found:
        hint = f"Nothing was changed. Let {_used_by(item)} be called again: it asks about what would run."
        raise InputError("id", item.id, f"is not what would run now: {'; '.join(found)}", hint=hint)


def _used_by(item: Approval) -> str:
    return "submit_job" if launching.task_of(item) is None else "launch"


async def asked(context: ClusterContext, item: Approval, *, decline: bool) -> int:
    """Yes or no from the person at the terminal of this process, and from nowhere else."""
    _allowed(context, "terminal")
    word = "no" if decline else "yes"
    with person("approving", _ELSE) as (reading, writing):
        what = "decline" if decline else "approve exactly this, once"
        told = "" if decline else f"A yes here is {context.policy.worth('terminal')}.\n"
        told += f"Type {word} to {what}; {_ENTER}: "
        answer = _answer(reading, writing, sanitize.visible(item.plan), told)
        name = os.ttyname(sys.stdin.fileno())
    if answer != word:  # a letter is typed too easily
        printing.lines([f"Nothing was changed: only the word {word} counts." if answer else "Nothing was changed."])
        return BLOCKED
    now = context.clock.now()
    if decline:
        await context.db(context.store.approvals.update, item, declined=now, channel="terminal")
    else:
        await _grant(
            context, item, granted=now, granted_by=f"typed as {context.owner.user} at {name}", channel="terminal"
        )
    event = "declined" if decline else "approved"
    await approval.log_answer(context, item, event, channel="terminal", by=context.owner.user, face="cli")
    printing.lines(["Declined." if decline else f"Approved. The next identical {_used_by(item)} uses it, once."])
    return DONE


def _answer(reading: TextIO, writing: TextIO, text: str, ask: str) -> str | None:
    """What is typed behind the last page; None where somebody stops before. All of it is shown, by no other program."""
    *first, last = plan_text.pages(text, _size(writing))
    for number, page in enumerate(first, 1):
        more = f"{page}--- page {number} of {len(first) + 1}: Enter shows the next, anything else ends this: "
        if person_types(reading, writing, more) not in {"\n", "\r\n"}:
            return None
    return person_types(reading, writing, f"{last}\n{ask}").strip().lower()


def _size(terminal: TextIO) -> os.terminal_size:
    found = os.get_terminal_size(terminal.fileno())
    return found if found.columns and found.lines else os.terminal_size((80, 24))


async def _grant(context: ClusterContext, item: Approval, **changes: object) -> None:
    """Write the yes down, if the question is still what was read and what would run. Raises InputError."""
    await _check(context, item)
    if not await context.db(context.store.approvals.grant, item, **changes):
        raise InputError(
            "id", item.id, "was exchanged while it was read", hint="Nothing was changed. Look at it again."
        )


async def _signed(context: ClusterContext, item: Approval, args: argparse.Namespace) -> int:
    _allowed(context, "signed")
    if args.signature:
        signed = _read(Path(args.signature))
    elif _agreed(item.plan, args.sign):
        signed = await signature.sign(item.plan, Path(args.sign))
    else:
        printing.lines(["Nothing was changed."])
        return BLOCKED
    now = context.clock.now()
    by = signature.verify(item.plan, signed, context.policy.policy.allowed_signers, now=now, who=args.principal)
    await _grant(context, item, granted=now, granted_by=by, channel="signed", signature=signed)
    await approval.log_answer(context, item, "approved", channel="signed", by=by, face="cli")
    printing.lines(
        [f"Approved with the signature of {ascii(by)[1:-1]}. The next identical {_used_by(item)} uses it, once."]
    )
    return DONE


def _agreed(plan: str, key: str) -> bool:
    """Whether the person who reads it wants to sign: the very text, whatever the ledger holds by then."""
    with person("approving", _ELSE) as (reading, writing):
        ask = f"Type sign to sign exactly this with {sanitize.visible(key)}; {_ENTER}: "
        return _answer(reading, writing, sanitize.visible(plan), ask) == "sign"


def _read(path: Path) -> str:
    try:
        return safe_open.read(path, _MOST).decode("ascii", "replace")
    except OSError as error:
        raise InputError(
            "signature", str(path), f"cannot be read: {error.strerror}", hint="Name the .sig file."
        ) from error


def _allowed(context: ClusterContext, channel: str) -> None:
    channels = context.policy.policy.approval_channels
    if channel not in channels:
        hint = f"Channels of this policy: {', '.join(channels) or 'none'}."
        raise InputError("approval_channels", channel, "does not count under this policy", hint=hint)
