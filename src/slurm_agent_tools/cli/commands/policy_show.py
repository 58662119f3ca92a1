"""`policy show`, `explain`, `schema` and `export`: the policy for people, editors and controllers."""

from __future__ import annotations

import argparse
import difflib
import json
from pathlib import Path

import anyio

from slurm_agent_tools.api import printing, render
from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.policy.evaluate import RULES
from slurm_agent_tools.policy.for_others import Site, TicketSource, explanation, job_submit_lua, qos_lines, schema_text
from slurm_agent_tools.policy.loading import LoadedPolicy

DONE = 0


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    """Define `policy export job-submit-lua` and `policy export qos`."""
    forms = parser.add_subparsers(dest="form", required=True, metavar="job-submit-lua|qos")
    lua = forms.add_parser("job-submit-lua", help="a plugin of the controller that refuses what is beyond the limits")
    lua.add_argument("--exempt-user", action="append", default=[], metavar="NAME", help="who passes unjudged")
    lua.add_argument("--exempt-account", action="append", default=[], metavar="NAME", help="whose jobs pass unjudged")
    lua.add_argument("--threads-per-core", type=int, default=1, metavar="N", help="of the nodes (default: 1)")
    lua.add_argument("--most-gpus-per-node", type=int, metavar="N", help="of the largest node (default: not known)")
    lua.add_argument("--default-cpus-per-gpu", type=int, metavar="N", help="the largest DefCpuPerGPU (default: none)")
    lua.add_argument("--tokens", metavar="files:FOLDER|hmac:KEY[,OLDKEY]", help="let in tickets of the site's service")
    lua.add_argument("--spent-tickets", metavar="FILE", help="of signed tickets that were used (default: KEY.spent)")
    lua.add_argument("--agent-user", action="append", default=[], metavar="NAME", help="whose jobs need a ticket")
    lua.add_argument("--agent-account", action="append", default=[], metavar="NAME", help="whose jobs need a ticket")
    lua.add_argument("--check", action="store_true", help="load the file that is written in a Lua of this machine")
    qos = forms.add_parser("qos", help="sacctmgr lines for the limits of QOS")
    qos.add_argument("--qos", action="append", metavar="NAME", help="a QOS to limit (default: normal)")
    for form in (lua, qos):
        form.add_argument("--output", type=Path, metavar="FILE", help="a new file (default: standard output)")


def export(args: argparse.Namespace, loaded: LoadedPolicy) -> int:
    """Write one of the forms. Raises InputError, also for a file that is there already."""
    checked = args.form == "job-submit-lua" and args.check
    if checked and args.output is None:
        raise InputError("check", "--check", "loads the file that --output names", hint="Add --output FILE.")
    text = qos_lines(loaded, args.qos or ["normal"]) if args.form == "qos" else job_submit_lua(loaded, _site(args))
    if args.output is None:
        printing.lines(text.splitlines())
        return DONE
    try:
        with args.output.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise InputError("output", str(args.output), f"cannot be made: {error.strerror}") from error
    if checked:
        _load(args.output)
    return DONE


def _load(path: Path) -> None:
    """A controller does not start with a file that cannot be loaded. Raises AgentToolsError."""
    from slurm_agent_tools.transport import lua_check  # noqa: PLC0415 - starts a process, for this option alone

    by = anyio.run(lua_check.check, path)
    if by is None:
        hint = "Install lua5.1, the Lua that Debian's Slurm holds, and check it before slurmctld reads it."
        raise AgentToolsError(f"{path} is written, but there is no Lua here to load it", hint=hint)
    printing.lines([f"{path} was {by}"])


def _site(args: argparse.Namespace) -> Site:
    if args.tokens is None and args.spent_tickets is not None:
        raise InputError("spent_tickets", args.spent_tickets, "goes with --tokens hmac:KEY")
    tickets = None if args.tokens is None else TicketSource.parse(args.tokens, args.spent_tickets)
    return Site(
        args.exempt_user, args.exempt_account, args.threads_per_core, args.most_gpus_per_node,
        args.default_cpus_per_gpu, tickets,
        args.agent_user, args.agent_account,
    )  # fmt: skip


def show(loaded: LoadedPolicy, *, as_json: bool) -> int:
    """Print the policy in force."""
    body = loaded.told()
    if as_json:
        printing.lines([json.dumps(body, indent=2)])
    else:
        printing.show(render.facts(render.readable(body)))
    return DONE


def explain(name: str, loaded: LoadedPolicy) -> int:
    """Print what one rule is for. Raises InputError for a rule that is not there."""
    rule = next((rule for rule in RULES if rule.id == name), None)
    own = next((item for item in loaded.policy.site_rules if item.id == name), None)
    if rule is None and own is None:
        known = [*(rule.id for rule in RULES), *(item.id for item in loaded.policy.site_rules)]
        near = difflib.get_close_matches(name.replace("_", "-"), known, n=1)
        meant = f"Did you mean {near[0]}? " if near else ""
        raise InputError("rule", name, "is no rule of this policy", hint=f"{meant}Rules: {', '.join(known)}.")
    if own is not None:
        printing.lines([own.id, own.message, f"Speaks ({own.level}) when: {own.when}", own.remedy])
    elif rule is not None:
        from slurm_agent_tools.api import rule_examples  # noqa: PLC0415 - reads scripts, for this command alone

        told = explanation(rule, loaded, rule_examples.plan_of)
        printing.lines(render.plain(line) for line in told.splitlines())
    return DONE


def schema() -> int:
    """Print the JSON Schema of a policy file."""
    printing.lines([schema_text().rstrip("\n")])
    return DONE
