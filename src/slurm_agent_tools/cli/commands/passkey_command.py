"""The subcommand `passkey`: a person enrols on a terminal the passkeys that may say yes on a page."""

from __future__ import annotations

import argparse
import re

from slurm_agent_tools import settings
from slurm_agent_tools.api import printing
from slurm_agent_tools.api.context_registry import load_policy_for
from slurm_agent_tools.cli.terminal import person, person_types
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.allowed_passkeys import LOOPBACK, AllowedPasskey, is_origin, parse
from slurm_agent_tools.store import enrolled_passkeys

DONE, BLOCKED = 0, 3

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._+-]{0,99}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `passkey`."""
    parser.description = (
        "Passkeys that may approve a request on its page, where the policy lists the channel passkey. Needs the extra"
        " passkey. Where a site's policy decides, only the keys in its allowed_passkeys count: add prints the line."
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="add|list|remove")
    add = actions.add_parser("add", help="make a passkey in a browser, and let it approve: at a terminal only")
    add.add_argument("name", help="whose it is; it stands in the decision log")
    add.add_argument("--origin", default=LOOPBACK, help=f"of the pages where it counts: https://NAME, or {LOOPBACK}")
    add.add_argument("--listen", default="localhost:0", metavar="WHERE", help="HOST:PORT of loopback for the one page")
    actions.add_parser("list", help="show whose passkeys count here, and from where they are known")
    remove = actions.add_parser("remove", help="let no enrolled passkey of this name approve any more")
    remove.add_argument("name")


async def run(args: argparse.Namespace) -> int:
    """Do it; returns the exit code. Raises AgentToolsError."""
    if args.action == "add":
        return await _add(args)
    if args.action == "list":
        return _list()
    removed = enrolled_passkeys.strike(args.name)
    if not removed:
        hint = "slurm-agent-tools passkey list shows the names; those of the policy are removed there."
        raise InputError("name", args.name, "has no enrolled passkey", hint=hint)
    printing.lines([f"Removed {removed} of {args.name}. What they approved and was not used does not count any more."])
    return DONE


async def _add(args: argparse.Namespace) -> int:
    if not _NAME.fullmatch(args.name):
        raise InputError("name", args.name, "is no name", hint="Use letters, digits and @ . _ + -, 100 at most.")
    if not is_origin(args.origin):
        hint = f"Write {LOOPBACK}, or https://NAME as the browser shows it, without a path."
        raise InputError("origin", args.origin, "is no origin that passkeys are made for", hint=hint)
    ours = settings.load()
    ours = ours.model_copy(update={"http": ours.http.model_copy(update={"listen": args.listen})})
    by_site = load_policy_for(ours).by_site
    with person("enrolling a passkey") as (reading, writing):
        from slurm_agent_tools.server.web import dashboard_server, passkey_enrolment  # noqa: PLC0415 - a server
        from slurm_agent_tools.transport import passkeys  # noqa: PLC0415 - as above

        passkeys.check_installed()
        key = await dashboard_server.make_passkey(ours, args.name, args.origin, _told)
        if key is None:
            printing.lines(["No passkey was made."])
            return BLOCKED
        if by_site:
            printing.lines(
                ["The site's policy decides whose passkeys count: give its administrator this line.", key.line]
            )
            return DONE
        ask = f"{passkey_enrolment.fingerprint(key)}\nType yes to let this passkey of {args.name} approve: "
        if person_types(reading, writing, ask).strip().lower() != "yes":
            printing.lines(["Nothing was changed."])
            return BLOCKED
    enrolled_passkeys.enrol(key)
    printing.lines([f"Enrolled for {args.origin}. It counts where the policy lists the channel passkey."])
    return DONE


def _told(link: str) -> None:
    printing.note(f"Open this link in the browser that has the passkey: {link}")
    printing.note("Control-C ends it.")


def _list() -> int:
    policy = load_policy_for(settings.load())
    named = [(parse(line), "policy") for line in policy.policy.allowed_passkeys]
    own = [(parse(line), "enrolled") for line in enrolled_passkeys.enrolled()]
    found = [
        *named,
        *((key, "enrolled, does not count: the site's policy decides") for key, _ in own if policy.by_site),
    ]
    found += [] if policy.by_site else own
    printing.lines([_line(key, where) for key, where in found] or ["No passkey may approve here."])
    if found and "passkey" not in policy.policy.approval_channels:
        printing.note("The policy does not list the channel passkey: none of them counts.")
    return DONE


def _line(key: AllowedPasskey, where: str) -> str:
    return f"{key.name}  {key.origin}  {where}"
