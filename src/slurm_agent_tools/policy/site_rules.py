"""A site's own rules: CEL expressions, compiled and type-checked when the policy is loaded.

The library is an optional extra. A policy that holds an expression does not load without it: a rule is never skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.policy.document import SiteRule
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.units import UNLIMITED

_MIB = 2**20

_FOREVER = timedelta(days=36500)

# name -> (CEL type, what it is). The names are the published facts: add, never rename.
FACTS: dict[str, tuple[str, str]] = {
    "job.name": ("STRING", "the job's name"),
    "job.partition": ("STRING", "partitions asked for, empty for the default one"),
    "job.qos": ("STRING", "QOS asked for, or empty"),
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

_NAME = re.compile(r"\b(?:job|script|caller|queue)\.[a-z_]+")


@dataclass(frozen=True, slots=True)
class Expression:
    """One site rule, ready to be asked. `ask` gives True, False, or what went wrong as text."""

    rule: SiteRule
    names: tuple[str, ...]
    ask: Callable[[Mapping[str, object]], bool | str]


def compile_rules(rules: Sequence[SiteRule]) -> tuple[Expression, ...]:
    """Every rule compiled. Raises ConfigError naming the rule: for a typing error, or where CEL is not installed."""
    return tuple(_compiled(rule) for rule in rules)


def _compiled(rule: SiteRule) -> Expression:
    cel = _library(rule)
    kinds = {"LIST": cel.Type.List(cel.Type.STRING)}
    env = cel.NewEnv(variables={name: kinds.get(kind) or getattr(cel.Type, kind) for name, (kind, _) in FACTS.items()})
    try:
        program = env.compile(rule.when)
    except (RuntimeError, ValueError, TypeError) as error:
        raise _wrong(rule, str(error).split(" [INVALID", maxsplit=1)[0].removeprefix("INVALID_ARGUMENT: ")) from error
    if program.return_type() != cel.Type.BOOL:
        raise _wrong(rule, f"gives {program.return_type().name()}, not true or false")
    names = tuple(dict.fromkeys(name for name in _NAME.findall(rule.when) if name in FACTS))
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
        "job.partition": request.partition or "",
        "job.qos": request.qos or "",
        "job.options": sorted({directive.option for directive in request.directives}),
        "job.gpus": numbers.gpus,
        "job.cpus": numbers.cpus,
        "job.nodes": numbers.nodes,
        "job.memory_mb": _megabytes(numbers.memory_bytes),
        "job.memory_per_gpu_mb": 0 if numbers.gpus == 0 else _megabytes(numbers.memory_per_gpu_bytes),
        "job.time_limit": None if limit is None else _FOREVER if limit == UNLIMITED else timedelta(seconds=limit),
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


def _megabytes(size: int | None) -> int | None:
    return None if size is None else -(-size // _MIB)
