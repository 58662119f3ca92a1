"""`policy show`, `explain`, `schema` and `export`: the policy for people, editors and controllers."""

from __future__ import annotations

import argparse
import json

from slurm_agent_tools import policy_export, printing, render
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.policy.loading import LoadedPolicy, schema_text
from slurm_agent_tools.policy.reference import explanation
from slurm_agent_tools.policy.rules import RULES

DONE = 0


def show(loaded: LoadedPolicy, *, as_json: bool) -> int:
    """Print the policy in force."""
    body = loaded.told()
    printing.lines([json.dumps(body, indent=2)] if as_json else render.facts(render.readable(body)))
    return DONE


def explain(name: str, loaded: LoadedPolicy) -> int:
    """Print what one rule is for. Raises InputError for a rule that is not there."""
    rule = next((rule for rule in RULES if rule.id == name), None)
    own = next((item for item in loaded.policy.site_rules if item.id == name), None)
    if rule is None and own is None:
        known = [*(rule.id for rule in RULES), *(item.id for item in loaded.policy.site_rules)]
        raise InputError("rule", name, "is no rule of this policy", hint=f"Rules: {', '.join(known)}.")
    if own is not None:
        printing.lines([own.id, own.message, f"Speaks ({own.level}) when: {own.when}", own.remedy])
    elif rule is not None:
        printing.lines(render.plain(line) for line in explanation(rule, loaded).splitlines())
    return DONE


def schema() -> int:
    """Print the JSON Schema of a policy file."""
    printing.lines([schema_text().rstrip("\n")])
    return DONE


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `policy export`."""
    policy_export.add_arguments(parser)


def export(args: argparse.Namespace, loaded: LoadedPolicy) -> int:
    """Print what Slurm itself can hold."""
    return policy_export.run(args, loaded)
