"""A site's own rules: CEL expressions, compiled and type-checked when the policy is loaded.

The library is an optional extra. A policy that holds an expression does not load without it: a rule is never skipped.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import product
from typing import Any

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.policy.document import SiteRule
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.units import HUNDRED_YEARS, UNLIMITED

_MIB = 2**20

# name -> (CEL type, what it is). The names are the published facts: add, never rename.
FACTS: dict[str, tuple[str, str]] = {
    "job.name": ("STRING", "the job's name"),
    "job.partition": ("STRING", "partitions asked for, without empty and repeated names; empty for the default one"),
    "job.qos": ("STRING", "QOS asked for in lower case, or empty"),
    "job.options": ("LIST", "long names of the sbatch options that are used"),
    "job.gpus": ("INT", "GPUs of the job"),
    "job.cpus": ("INT", "CPUs of the job"),
    "job.nodes": ("INT", "nodes, at least"),
    "job.memory_mb": ("INT", "memory of the whole job, in MB of 2^20 bytes"),
    "job.memory_per_gpu_mb": ("INT", "memory per GPU in the worst placement; 0 without GPUs"),
    "job.time_limit": ("DURATION", "time limit; a hundred years for an unlimited one"),
    "job.array_tasks": ("INT", "tasks of the array, 1 without one"),
    "job.array_concurrency": ("INT", "tasks that may run at once"),
    "job.dependency": ("STRING", "as sbatch --dependency, or empty"),
    "job.justification": ("STRING", "the written reason, or empty"),
    "script.path": ("STRING", "the script, relative to the project"),
    "script.text": ("STRING", "its text"),
    "script.files": ("LIST", "project files that it runs"),
    "script.findings": ("LIST", "ids of the rules that what it does bears on"),
    "caller.user": ("STRING", "the operating-system user"),
    "caller.project": ("STRING", "the project folder"),
    "queue.active_jobs": ("INT", "this user's running and pending jobs; only where a cluster is asked"),
}

HELD_EXACTLY = {
    "job.gpus": "gpus", "job.nodes": "nodes", "job.time_limit": "time", "job.array_tasks": "tasks",
    "job.array_concurrency": "once", "job.qos": "qos",
}  # fmt: skip
"""Facts that a ticket binds from below too where a rule speaks of them, in its words; a QOS has to be named then."""

HELD_BY_NOTHING = ("job.name", "job.options", "script.path", "caller.project")
"""Facts that the user's own program may change once a ticket is given."""

_NAME = re.compile(r"\b(job|script|caller|queue)\s*\.\s*([a-z_]+)")

_TEXT = re.compile(r"\"{3}.*?\"{3}|'{3}.*?'{3}|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)

_CHOICES_AT_MOST = 1000


@dataclass(frozen=True, slots=True)
class Expression:
    """One site rule, ready to be asked. `ask` gives True, False, or what went wrong as text."""

    rule: SiteRule
    names: tuple[str, ...]
    ask: Callable[[Mapping[str, object]], bool | str]


def compile_rules(rules: Sequence[SiteRule]) -> tuple[Expression, ...]:
    """Every rule compiled. Raises ConfigError naming the rule: for a typing error, or where CEL is not installed."""
    return tuple(_compiled(rule) for rule in rules)


def held_exactly(expressions: Sequence[Expression]) -> list[str]:
    """What these rules speak of, in the words of a ticket: such a rule may be against less of it as well."""
    named = {name for one in expressions for name in one.names}
    return [word for name, word in HELD_EXACTLY.items() if name in named]


def _compiled(rule: SiteRule) -> Expression:
    cel = _library(rule)
    plain = _TEXT.sub('""', rule.when)
    if "`" in plain or "//" in plain:  # between the parts of a name they would hide which fact is asked for
        raise _wrong(rule, "holds a backtick or a comment; write comments behind # of YAML")
    kinds = {"LIST": cel.Type.List(cel.Type.STRING)}
    env = cel.NewEnv(variables={name: kinds.get(kind) or getattr(cel.Type, kind) for name, (kind, _) in FACTS.items()})
    try:
        program = env.compile(rule.when)
    except (RuntimeError, ValueError, TypeError) as error:
        raise _wrong(rule, str(error).split(" [INVALID", maxsplit=1)[0].removeprefix("INVALID_ARGUMENT: ")) from error
    if program.return_type() != cel.Type.BOOL:
        raise _wrong(rule, f"gives {program.return_type().name()}, not true or false")
    names = tuple(dict.fromkeys(name for name in map(".".join, _NAME.findall(rule.when)) if name in FACTS))
    return Expression(rule, names, lambda facts: _asked(cel, program, facts))


def _library(rule: SiteRule) -> Any:
    try:
        from cel_expr_python import cel  # noqa: PLC0415 - an optional extra
    except ImportError as error:
        hint = "Install slurm-agent-tools[cel], or take the rule out: a rule is never skipped."
        raise ConfigError(f"site_rules.{rule.id}", rule.when, "needs the CEL library", hint=hint) from error
    return cel


def _wrong(rule: SiteRule, problem: str) -> ConfigError:
    hint = f"Facts of a request: {', '.join(FACTS)}."
    return ConfigError(f"site_rules.{rule.id}.when", rule.when, f"is no CEL condition: {problem}", hint=hint)


def _asked(cel: Any, program: Any, facts: Mapping[str, object]) -> bool | str:
    """An error comes back as a value of CEL, not as an exception; whatever is not a plain answer is an error."""
    try:
        value = program.eval(data=dict(facts))
        answer = value.plain_value()
    except (RuntimeError, ValueError, TypeError) as error:
        return str(error) or type(error).__name__
    if value.type() == cel.Type.BOOL and isinstance(answer, bool):
        return answer
    return str(answer)


def facts(plan: PlannedRequest) -> dict[str, object]:
    """What is known of a request, under the published names; what is not known is left out."""
    if plan.reading is None:
        return {}
    request, numbers = plan.reading.request, plan.resources
    limit = numbers.time_limit_seconds
    found: dict[str, object | None] = {
        "job.name": request.name or plan.reading.path.rsplit("/", 1)[-1],
        "job.partition": ",".join(_listed(request.partition)),
        "job.qos": ",".join(_listed(request.qos, lower=True)),
        "job.options": sorted({directive.option for directive in request.directives}),
        "job.gpus": numbers.gpus,
        "job.cpus": numbers.cpus,
        "job.nodes": numbers.nodes,
        "job.memory_mb": _megabytes(numbers.memory_bytes),
        "job.memory_per_gpu_mb": 0 if numbers.gpus == 0 else _megabytes(numbers.memory_per_gpu_bytes),
        "job.time_limit": None if limit is None else timedelta(seconds=HUNDRED_YEARS if limit == UNLIMITED else limit),
        "job.array_tasks": request.array.count if request.array is not None else 1,
        "job.array_concurrency": request.array.concurrency if request.array is not None else 1,
        "job.dependency": request.dependency or "",
        "job.justification": plan.justification or request.justification or "",
        "script.path": plan.reading.path,
        "script.text": plan.reading.text.encode("utf-8", "replace").decode(),
        "script.files": sorted(plan.reading.files),
        "script.findings": sorted({finding.rule for finding in plan.reading.findings}),
        "caller.user": plan.user,
        "caller.project": plan.project,
        "queue.active_jobs": None if plan.live is None else plan.live.active_jobs,
    }
    return {name: value for name, value in found.items() if value is not None}


def _listed(text: str | None, *, lower: bool = False) -> list[str]:
    """The names of a list as Slurm takes them: empty ones passed over, each once (`lower`: QOS, whatever the case)."""
    words = (text or "").split(",")
    return list(dict.fromkeys(word.strip().lower() if lower else word.strip() for word in words if word.strip()))


def worst_answer(expression: Expression, known: Mapping[str, object], default: str | None) -> bool | str:
    """What a rule says of the request as it is, and as if it asked for one of its partitions or QOS alone.

    Slurm chooses one of a list, so a rule about one of them speaks of the list. `default`: the partition of a request
    that names none, where it is known. False only where every answer is; else the first that is not.
    """
    alone = {"job.partition": default, "job.qos": None}
    choices = {name: _choices(str(known[name]), alone[name]) for name in expression.names if name in alone}
    if math.prod(map(len, choices.values())) > _CHOICES_AT_MOST:
        return f"more than {_CHOICES_AT_MOST} choices of partitions and QOS"
    for chosen in product(*choices.values()):
        answer = expression.ask({**known, **dict(zip(choices, chosen, strict=True))})
        if answer is not False:
            return answer
    return False


def _choices(text: str, default: str | None) -> list[str]:
    """A list as a whole and each of its names; of an empty one also the default, where there is one."""
    return list(dict.fromkeys([text, *(text.split(",") if text else [default or ""])]))


def _megabytes(size: int | None) -> int | None:
    return None if size is None else -(-size // _MIB)
