"""The subcommand `token`: make, list and revoke what lets a client call the server over HTTP."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime

from slurm_agent_tools import settings
from slurm_agent_tools.api import printing
from slurm_agent_tools.api.context_registry import ledger_folder
from slurm_agent_tools.store.tokens import Token, Tokens

DONE = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `token`."""
    parser.description = "Tokens for `serve --http`. A change counts at once, also for a server that runs."
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    actions = parser.add_subparsers(dest="action", required=True, metavar="new|list|revoke")
    new = actions.add_parser("new", help="make a token and print it, once")
    new.add_argument("--name", required=True, help="who or what will use it; it stands in the decision log")
    new.add_argument(
        "--scope",
        required=True,
        choices=["scrape", "read", "write"],
        help="scrape: /metrics and its kin, no tool; read: looking only; write: submitting and saving too",
    )
    new.add_argument("--days", type=int, metavar="N", help="it ends after N days; without: only when revoked")
    listed = actions.add_parser("list", help="show names, scopes and times; never the tokens")
    revoke = actions.add_parser("revoke", help="end a token now")
    revoke.add_argument("name")
    for action in (new, listed, revoke):
        action.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    """Do it; returns the exit code. Raises InputError, ConfigError and StorageError."""
    tokens = Tokens(ledger_folder(settings.load()).folder)
    if args.action == "new":
        _new(tokens, args)
    elif args.action == "list":
        _list(tokens.all(), as_json=args.json)
    else:
        tokens.revoke(args.name)
        _say(f"The token {args.name} is revoked.", {"status": "revoked", "name": args.name}, as_json=args.json)
    return DONE


def _new(tokens: Tokens, args: argparse.Namespace) -> None:
    token = tokens.new(args.name, args.scope, args.days)
    body = {"status": "created", "name": args.name, "scope": args.scope, "days": args.days, "token": token}
    if not args.json:
        printing.note(f"This token of {args.name} ({args.scope}) is shown once. Keep it as you keep a password.")
    _say(token, body, as_json=args.json)


def _list(found: list[Token], *, as_json: bool) -> None:
    now = datetime.now(UTC)
    shown: list[dict[str, object]] = [
        {
            "name": token.name,
            "scope": token.scope,
            "created": token.created.isoformat(timespec="seconds"),
            "expires": None if token.expires is None else token.expires.isoformat(timespec="seconds"),
            "expired": token.expired(now),
        }
        for token in found
    ]
    lines = [f"{item['name']:<24} {item['scope']:<6} {item['created']}  {_end(item)}" for item in shown]
    _say("\n".join(lines) or "There is no token.", {"status": "ok", "tokens": shown}, as_json=as_json)


def _end(item: dict[str, object]) -> str:
    if item["expires"] is None:
        return "lasting"
    return f"{'expired' if item['expired'] else 'until'} {item['expires']}"


def _say(text: str, body: dict[str, object], *, as_json: bool) -> None:
    printing.lines([json.dumps(body, indent=2) if as_json else text])
