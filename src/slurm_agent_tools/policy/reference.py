"""The reference page of the policy, from the rules and the fields themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pydantic import BaseModel

from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.engine import format_result
from slurm_agent_tools.policy.levels import SETTABLE
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.policy.rules import RULES
from slurm_agent_tools.policy.rules.base import Example, Rule

_HEAD = """# Policy reference

This page is generated from the rules (`slurm_agent_tools.policy.reference`); do not edit it.

Every rule is asked about every request, and every answer is shown. The most severe one decides:
`deny` before `approve` (a person must agree) before `justify` (a written reason is needed) before `allow`.
`warn` is shown and stops nothing. `not_evaluated` means that a fact was missing: in `policy check` it does not
count, in `submit_job` it denies.
"""


def page(policy: Policy) -> str:
    """The page in Markdown; the examples are judged by `policy`, the shipped one."""
    parts = [_HEAD, "## Rules\n", *(_rule(rule, policy) for rule in RULES), "## Fields of a policy file\n", _fields()]
    return "\n".join(parts)


def _rule(rule: Rule, policy: Policy) -> str:
    lines = [
        f"### {rule.id}\n",
        f"{rule.what} {rule.why}\n",
        f"Answers: {_words(('pass', *rule.levels))}. Asked for: {_words(sorted(rule.tools))}.\n",
        f"A policy may set it to: {_settable(rule)}.\n",
        "Passes:\n",
        *(_example(example) for example in rule.passing),
        "Does not pass:\n",
        *(_refused(rule, example, policy) for example in rule.failing),
    ]
    return "\n".join(lines)


def explanation(rule: Rule, loaded: LoadedPolicy) -> str:
    """One rule for a person at a terminal: its place in this policy, then what the page says."""
    own, floor = loaded.policy.rules.get(rule.id), loaded.floors.get(rule.id)
    level = f"set to {own}" if own else "answers for itself"
    level += f", at least {floor}" if floor else ""
    return "\n".join([_rule(rule, loaded.policy), f"In this policy it {level}. It can be set to: {_settable(rule)}."])


def _settable(rule: Rule) -> str:
    return _words(SETTABLE[rule.id])


def _words(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _example(example: Example) -> str:
    reading = example.plan.reading
    shown = "" if reading is None else "\n" + _block("bash", "\n".join(reading.text.splitlines()[1:]))
    return f"- {example.name}{shown}\n"


def _refused(rule: Rule, example: Example, policy: Policy) -> str:
    result = rule.check(example.plan, example.under(policy))
    return f"{_example(example)}{_block('text', format_result(result))}\n"


def _block(language: str, text: str) -> str:
    lines = [f"```{language}", *text.splitlines(), "```"]
    return "\n".join(["", *(f"  {line}".rstrip() for line in lines)])


def _fields() -> str:
    rows = [f"| `{name}` | {text} |" for name, text in _described(Policy, "")]
    return "\n".join(["| field | meaning |", "|---|---|", *rows, ""])


def _described(model: type[BaseModel], path: str) -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if field.description is None and isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _described(kind, f"{path}{name}.")
        else:
            bands = isinstance(kind, type) and issubclass(kind, BaseModel)
            more = " (`free`: passes, `justify`: with a written reason, beyond: a person)" if bands else ""
            yield f"{path}{name}", f"{field.description}{more}"
