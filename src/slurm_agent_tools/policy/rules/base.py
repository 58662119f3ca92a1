"""What a rule is: an object that carries its reason and its examples."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from slurm_agent_tools.jobscript import options
from slurm_agent_tools.jobscript.directives import split
from slurm_agent_tools.model import Directive, Evidence, JobRequest, Live, Plan, ScriptReading
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.replies import EvidenceLine, Outcome, RuleResult

Level = Literal["warn", "justify", "approve", "deny"]
SUBMIT = frozenset({"submit_job"})
SCRIPTS = frozenset({"submit_job", "generate_script", "validate_config"})

# What an argument of submit_job is called, by the option that it becomes.
_ARGUMENTS = {
    "job-name": "job_name",
    "partition": "partition",
    "time": "time_limit",
    "dependency": "dependency",
    "array": "array",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule's judgement says; Rule.check adds the id. `message`: one sentence what, one why."""

    outcome: Outcome
    message: str
    observed: str | int | float | None = None
    limit: str | int | float | None = None
    remedy: str | None = None
    evidence: Sequence[Evidence] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A plan and what the rule says about it; `limits`: those that differ from the shipped policy's."""

    name: str
    plan: Plan
    outcome: Outcome
    limits: Mapping[str, object] = field(default_factory=dict)

    def under(self, policy: Policy) -> Policy:
        """The policy with this example's limits."""
        return policy.model_copy(update={"limits": policy.limits.model_copy(update=dict(self.limits))})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `tools`: whose plans it judges; `live`: it can say nothing without facts of the moment."""

    id: str
    what: str
    why: str
    levels: tuple[Level, ...]
    tools: frozenset[str]
    judge: Callable[[Plan, Policy], Verdict]
    passing: tuple[Example, ...]
    failing: tuple[Example, ...]
    live: bool = False
    script: bool = True

    def __post_init__(self) -> None:
        if not self.passing or not self.failing:
            raise ValueError(f"rule {self.id} needs examples that pass and that fail")

    def applies(self, plan: Plan) -> bool:
        """True where this rule has something to judge; an absent script is script-exists' business."""
        return plan.tool in self.tools and (plan.reading is not None or not self.script)

    def check(self, plan: Plan, policy: Policy) -> RuleResult:
        """What this rule says about the plan."""
        if plan.tool not in self.tools:
            return self._silent(f"Does not concern {plan.tool}.")
        if self.script and plan.reading is None:
            return self._silent("There is no script to look at.")
        if self.live and plan.live is None:
            return self._silent("Needs the cluster's facts of the moment, which were not asked for.")
        verdict = self.judge(plan, policy)
        return RuleResult(
            id=self.id,
            outcome=verdict.outcome,
            message=verdict.message,
            observed=verdict.observed,
            limit=verdict.limit,
            remedy=verdict.remedy,
            evidence=[EvidenceLine(file=e.file, line=e.line, text=e.text) for e in verdict.evidence],
        )

    def _silent(self, message: str) -> RuleResult:
        return RuleResult(id=self.id, outcome="not_evaluated", message=message)


def passed(message: str, observed: str | float | None = None, limit: str | float | None = None) -> Verdict:
    """The judgement of a rule that has nothing against it."""
    return Verdict("pass", message, observed, limit)


def not_evaluated(message: str) -> Verdict:
    """The judgement of a rule that lacks a fact."""
    return Verdict("not_evaluated", message)


def proof(directives: Sequence[Directive]) -> tuple[Evidence, ...]:
    """The lines of these options."""
    return tuple(d.evidence for d in directives)


def replace(directives: Sequence[Directive], *lines: str) -> str:
    """How to put the exact `lines` in place of these options; without lines, how to delete them.

    Other options on the same lines are kept.
    """
    stated = [d for d in directives if d.source != "pinned"]
    places = list(dict.fromkeys(d.evidence for d in stated if d.source == "script"))
    words = [_argument(d, lines) for d in stated if d.source == "argument"]
    if places:
        where = ", ".join(f"line {place.line}" for place in places)
        shown = "; ".join(f"`{place.text.strip()}`" for place in places)
        new = [*_kept(places, {d.option for d in stated}), *lines]
        action = f"Replace {where} ({shown}) by:" if new else f"Delete {where} ({shown})."
        words.append("\n".join([action, *new]))
    elif not words and lines:
        words.append("\n".join(["Add:", *lines]))
    return "\n".join(words)


def _kept(places: Sequence[Evidence], dropped: set[str]) -> list[str]:
    """What else stands on these lines, each as a line of its own."""
    found = []
    for place in places:
        try:
            read = options.read(split(place.text.removeprefix("#SBATCH"))[0])
        except ValueError:  # a line that sbatch refuses has no other options
            continue
        rest = [_option(option.name, value) for option, value in read if option.name not in dropped]
        found += [f"#SBATCH {' '.join(rest)}"] if rest else []
    return found


def _option(name: str, value: str | None) -> str:
    if value is None:
        return f"--{name}"
    plain = re.fullmatch(r"[\w@%+=:,./\[\]-]+", value) is not None
    return f"--{name}={value}" if plain else f"--{name}={json.dumps(value, ensure_ascii=False)}"


def _argument(directive: Directive, lines: Sequence[str]) -> str:
    name = _ARGUMENTS.get(directive.option, directive.option)
    for line in lines:
        head, sign, value = line.partition(f"--{directive.option}=")
        if sign and head.strip() == "#SBATCH":
            return f'Call again with {name}="{value.split("  #")[0].strip()}".'
    return f"Call again without the argument {name}."


def reading_of(plan: Plan) -> ScriptReading:
    """The script that a rule about scripts judges; Rule.check asks no such rule without one."""
    if plan.reading is None:
        raise ValueError("there is no script in this plan")
    return plan.reading


def request_of(plan: Plan) -> JobRequest:
    """What that script asks for."""
    return reading_of(plan).request


def facts_of(plan: Plan) -> Live:
    """The facts of the moment; Rule.check asks no rule that needs them without them."""
    if plan.live is None:
        raise ValueError("there are no live facts in this plan")
    return plan.live


_EMPTY_WORDS = frozenset({"justified", "justification", "because", "needed", "required", "necessary", "important"})


def reason_for(plan: Plan, policy: Policy, *, directive: bool = True) -> str | None:
    """The written justification, if it says something; `directive` False: only the call's argument counts."""
    texts = [plan.justification]
    if directive and plan.reading is not None:
        texts.append(plan.reading.request.justification)
    return next((text.strip() for text in texts if text and _says_something(text, policy)), None)


def _says_something(text: str, policy: Policy) -> bool:
    if text.strip().startswith("<"):  # the remedy's own words, copied
        return False
    words = [word.strip(".,:;!?").lower() for word in text.split()]
    return len(text.strip()) >= policy.justification_min_characters and not set(words) <= _EMPTY_WORDS


def ask_reason(lines: Sequence[str]) -> str:
    """The remedy's part that offers a written justification."""
    return "\n".join(
        ["or give the reason on the line (or as the argument `justification`):"]
        + [f"{line}  # JUSTIFIED: <why this job needs it>" for line in lines]
    )
