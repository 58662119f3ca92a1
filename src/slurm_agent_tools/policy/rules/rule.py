"""What a rule is, an object with its reason and examples; the judgements that several rules share; remedies.

A remedy is one way, or several, each behind a line that begins with `Or` and ends with a colon. A way is steps:
`Replace line 3 (`...`) by:` and the new lines, `Delete line 3 (`...`).`, `Add:` and lines that go behind the first one,
`Call again with NAME="VALUE" and NAME="VALUE".`, `Call again without the argument NAME.`, `Run `COMMAND`.`; `Do both:`
stands before those that help only together. A line of another file of the project is `line 3 of FILE (`...`), indented
like it,`: how far in it stands is not shown. Where no edit of a line keeps the work, `Change line 3 (`...`) yourself:
WORDS.` says what to do. What else is said follows a step on the same line, or in a line that begins with `Note:`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from slurm_agent_tools.models import sbatch_options
from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.request import Directive, Evidence, Finding, JobRequest, ScriptReading
from slurm_agent_tools.models.shapes import Outcome
from slurm_agent_tools.policy.document import Bands, Policy
from slurm_agent_tools.policy.plan import LiveFacts, PlannedRequest
from slurm_agent_tools.scripts.directive_lines import MAX_SHOWN, spelled, split

Level = Literal["warn", "justify", "approve", "deny"]

SUBMIT = frozenset({"submit_job"})
SCRIPTS = frozenset({"submit_job", "generate_script", "validate_config"})


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a rule's judgement says; Rule.check adds the id. `message`: one sentence what, one why."""

    outcome: Outcome
    message: str
    observed: str | int | float | None = None
    limit: str | int | float | None = None
    remedy: str | None = None
    evidence: Sequence[Evidence] = ()


@dataclass(frozen=True, slots=True)
class Example:
    """A script's lines and what the rule says; `limits`, `fields`: what differs from the shipped policy's.

    `facts`: what differs from an idle cluster; None: it was not asked. `call`: what else is planned. `counted` False:
    numbers that are always known once a script was read are missing, and the rule refuses to guess.
    """

    name: str
    script: tuple[str, ...] | None
    outcome: Outcome
    facts: Mapping[str, object] | None = None
    call: Mapping[str, object] = field(default_factory=dict)
    limits: Mapping[str, object] = field(default_factory=dict)
    fields: Mapping[str, object] = field(default_factory=dict)
    counted: bool = True

    def under(self, policy: Policy) -> Policy:
        """The policy with this example's limits."""
        limits = policy.limits.model_copy(update=dict(self.limits))
        return policy.model_copy(update={**self.fields, "limits": limits})


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `tools`: whose plans it judges; `live`: it can say nothing without facts of the moment."""

    id: str
    what: str
    why: str
    levels: tuple[Level, ...]
    tools: frozenset[str]
    judge: Callable[[PlannedRequest, Policy], Judgement]
    passing: tuple[Example, ...]
    failing: tuple[Example, ...]
    live: bool = False
    script: bool = True

    def __post_init__(self) -> None:
        if not self.passing or not self.failing:
            raise ValueError(f"rule {self.id} needs examples that pass and that fail")

    def applies(self, plan: PlannedRequest) -> bool:
        """True where this rule has something to judge; an absent script is script-exists' business."""
        return plan.tool in self.tools and (plan.reading is not None or not self.script)

    def check(self, plan: PlannedRequest, policy: Policy) -> RuleDecision:
        """What this rule says about the plan."""
        if plan.tool not in self.tools:
            verdict = not_evaluated(f"Does not concern {plan.tool}.")
        elif self.script and plan.reading is None:
            verdict = not_evaluated("There is no script to look at.")
        elif self.live and plan.live is None:
            verdict = not_evaluated("Needs the cluster's facts of the moment, which were not asked for.")
        else:
            verdict = self.judge(plan, policy)
        return RuleDecision(
            id=self.id, outcome=verdict.outcome, message=verdict.message, observed=verdict.observed,
            limit=verdict.limit, remedy=verdict.remedy, evidence=tuple(verdict.evidence),
        )  # fmt: skip


def passed(message: str, observed: str | float | None = None, limit: str | float | None = None) -> Judgement:
    """The judgement of a rule that has nothing against it."""
    return Judgement("pass", message, observed, limit)


def not_evaluated(message: str) -> Judgement:
    """The judgement of a rule that lacks a fact."""
    return Judgement("not_evaluated", message)


def proof(directives: Sequence[Directive]) -> tuple[Evidence, ...]:
    """The lines of these options, each once."""
    return tuple(dict.fromkeys(d.evidence for d in directives))


def reading_of(plan: PlannedRequest) -> ScriptReading:
    """The script that a rule about scripts judges; Rule.check asks no such rule without one."""
    if plan.reading is None:
        raise ValueError("there is no script in this plan")
    return plan.reading


def request_of(plan: PlannedRequest) -> JobRequest:
    """What that script asks for."""
    return reading_of(plan).request


def facts_of(plan: PlannedRequest) -> LiveFacts:
    """The facts of the moment; Rule.check asks no rule that needs them without them."""
    if plan.live is None:
        raise ValueError("there are no live facts in this plan")
    return plan.live


_EMPTY_WORDS = frozenset({"justified", "justification", "because", "needed", "required", "necessary", "important"})


def reason_for(plan: PlannedRequest, policy: Policy, *, directive: bool = True) -> str | None:
    """The written justification, if it says something; `directive` False: only the call's argument counts."""
    texts = [plan.justification]
    if directive and plan.reading is not None:
        texts.append(plan.reading.request.justification)
    return next((text.strip() for text in texts if text and _says_something(text, policy)), None)


def _says_something(text: str, policy: Policy) -> bool:
    """Whether it is more than the words that a remedy puts where the reason belongs, brackets or not."""
    for told in PLACEHOLDERS:
        text = re.sub(re.escape(told.strip("<>")), "", text, flags=re.IGNORECASE)
    said = re.sub(r"<[^<>]*>", "", text).strip()
    words = [word.strip(".,:;!?").lower() for word in said.split()]
    return len(said) >= policy.justification_min_characters and not set(words) <= _EMPTY_WORDS


# --- The judgement that memory, GPUs and time share: free, with a written reason, or by a person ----------------------


@dataclass(frozen=True, slots=True)
class Measure:
    """A number of the request: `line` writes it as a directive, `show` for people, `why` is the limit's reason.

    `stated`: the options that this line stands for where that depends on the number; `note`: what else to change then.
    `offer`: the most that the job can have where it runs, and a sentence on that; None where it is not known.
    """

    thing: str
    value: int
    bands: Bands
    directives: tuple[Directive, ...]
    line: Callable[[int], str]
    show: Callable[[int], str]
    why: str
    stated: Callable[[int], tuple[Directive, ...]] | None = None
    note: Callable[[int], str] | None = None
    offer: Callable[[], tuple[int, str] | None] | None = None

    def options(self, size: int) -> tuple[Directive, ...]:
        """The options that the line of this size stands for."""
        return self.directives if self.stated is None else self.stated(size)

    def lower(self, size: int) -> str:
        """How to ask for this size."""
        told = self.note(size) if self.note is not None else ""
        way = replace(self.options(size), *self.line(size).splitlines())
        return f"{way}\n{note(told)}" if told else way

    def there(self) -> tuple[int, str]:
        """The most that a remedy may ask for, and the reason behind a refusal: first what the nodes have, if less."""
        most, told = (self.offer() if self.offer is not None else None) or (self.value, "")
        return (most, f"{told} {self.why}") if most < self.value else (self.value, self.why)


def judge_measure(measure: Measure, plan: PlannedRequest, policy: Policy) -> Judgement:
    """Pass, justify or approve, with the exact lines that pass."""
    shown, free, most = (measure.show(n) for n in (measure.value, measure.bands.free, measure.bands.justify))
    if measure.value <= measure.bands.free:
        return Judgement("pass", f"{measure.thing}: {shown}, up to {free} is free.", shown, free)
    evidence = proof(measure.options(measure.bands.free))
    reason = reason_for(plan, policy)
    if measure.value <= measure.bands.justify and reason is not None:
        message = f"{measure.thing}: {shown}, above the free {free}, justified by: {reason}"
        return Judgement("pass", message, shown, free, None, evidence)
    has, why = measure.there()
    if measure.value > measure.bands.justify:
        message = f"{measure.thing}: {shown} is more than {most}, and beyond that a person decides. {why}"
        remedy = or_reason(measure, min(measure.bands.justify, has), has)
        return Judgement("approve", message, shown, most, remedy, evidence)
    message = f"{measure.thing}: {shown} is more than the free {free} and needs a written reason. {why}"
    return Judgement("justify", message, shown, free, or_reason(measure, min(measure.value, has), has), evidence)


def uncountable(thing: str, free: str, directives: tuple[Directive, ...], line: str) -> Judgement:
    """A number that cannot be told from the request: refused, never guessed. `line` states one that is free."""
    message = f"{thing}: cannot be told from this request, and {free} is free. What cannot be counted is not submitted."
    return Judgement("deny", message, "unknown", free, replace(directives, line), proof(directives))


def or_reason(measure: Measure, size: int, has: int) -> str:
    """Lower it; or ask for `size`, with a written reason on the line or in the call. Never more than there is."""
    lower = measure.lower(min(measure.bands.free, has))
    if size <= measure.bands.free:
        return lower  # all that there is needs no reason
    others = [("give your reason on the line", with_reason(measure.options(size), measure.line(size)))]
    if size == measure.value:
        others.append(("give your reason in the call", call_again("justification", WHY_NEEDED)))
    return ways(lower, *others)


# --- The judgement over what a script was found to do -----------------------------------------------------------------

_FINDING_SEVERITY: tuple[Outcome, ...] = ("warn", "justify", "approve", "deny")


def judge_findings(
    rule: str,
    *,
    clean: str,
    why: str,
    advice: str,
    justified: Callable[[Sequence[Finding], PlannedRequest, Policy], Judgement] | None = None,
) -> Callable[[PlannedRequest, Policy], Judgement]:
    """A judgement over the findings for `rule`. `advice` explains the steps of the remedy.

    `justified` judges instead where a finding is one that a written reason may be enough for.
    """

    def verdict(plan: PlannedRequest, policy: Policy) -> Judgement:
        reading = reading_of(plan)
        findings = [finding for finding in reading.findings if finding.rule == rule]
        if justified is not None and any(finding.level == "justify" for finding in findings):
            return justified(findings, plan, policy)
        return speak(rule, reading, findings, why, advice) if findings else passed(clean)

    return verdict


def speak(rule: str, reading: ScriptReading, findings: Sequence[Finding], why: str, advice: str) -> Judgement:
    """What a rule says about these findings: the most severe of their levels decides."""
    worst: Outcome = max((finding.level for finding in findings), key=_FINDING_SEVERITY.index)
    what = sentence([finding.what for finding in findings])
    remedy = f"{mended(rule, reading, findings)}\n{note(advice)}"
    return Judgement(worst, f"{what} {why}", len(findings), 0, remedy, [finding.evidence for finding in findings])


def mended(mending: str, reading: ScriptReading, findings: Sequence[Finding]) -> str:
    """The steps that take what was found out of the script, by the name of the mending in `command_mending`."""
    from slurm_agent_tools.policy.rules import command_mending, script_mending  # noqa: PLC0415 - 7 ms, for a refusal only

    return script_mending.steps(reading, findings, command_mending.MENDS[mending])


def sentence(whats: Sequence[str]) -> str:
    """What was found, each thing once."""
    text = "; ".join(dict.fromkeys(what.strip().rstrip(".") for what in whats))
    return f"{text[:1].upper()}{text[1:]}."


# --- The fixed forms in which a remedy says what to change, so that whoever reads it alone can do just that -----------

WHY_NEEDED = "<why this job needs it>"
WHAT_CHANGED = "<what changed outside the script: the code, a package, the data, a node>"
WHY_TWICE = "<why the same work twice>"
WHY_UNTRIED = "<why no smoke run is needed>"
PLACEHOLDERS = (WHY_NEEDED, WHAT_CHANGED, WHY_TWICE, WHY_UNTRIED)

_SHOWN, _MANY = 120, 3

# What an argument of submit_job is called where it is not called like the option that it becomes.
_ARGUMENTS = {"job-name": "job_name", "time": "time_limit"}


def ways(first: str, *others: tuple[str, str]) -> str:
    """The first way and the others, each with what leads to it, like `give a reason`."""
    return "\n".join([first, *(f"Or {lead}:\n{way}" for lead, way in others)])


def without_reasons(remedy: str) -> str:
    """The remedy without the ways that give a reason, for a policy to which no reason is enough."""
    every = re.split(r"\n(?=Or [^\n]*:\n)", remedy)
    return "\n".join(way for way in every if not re.match(r"Or give your reason[^\n]*:\n", way))


def call_again(name: str, value: str, *more: tuple[str, str]) -> str:
    """The step that repeats the call with an argument, or with several of them at once."""
    *others, last = [f'{one}="{text}"' for one, text in ((name, value), *more)]
    return f"Call again with {', '.join(others)} and {last}." if others else f"Call again with {last}."


def both(*steps: str) -> str:
    """Steps of which none helps without the others."""
    lead = "Do both:" if len(steps) == 2 else "Do all of this:"
    return "\n".join([lead, *steps] if len(steps) > 1 else steps)


def note(text: str) -> str:
    """A line that explains and changes nothing."""
    return f"Note: {text}"


def edit(places: Sequence[Evidence], lines: Sequence[str], *, script: str | None = None) -> str:
    """Put `lines` in place of these, which lie in one file; `script`: the file that needs no name."""
    where = ", ".join(f"line {place.line}" for place in places)
    shown = [f"`{_short(place.text.strip())}`" for place in places]
    told = "; ".join(shown) if len(shown) <= _MANY else f"{shown[0]} to {shown[-1]}"
    elsewhere = script is not None and places[0].file != script
    where += f" of {places[0].file} ({told}), indented like it," if elsewhere else f" ({told})"
    action = f"Replace {where} by:" if lines else f"Delete {where}."
    return "\n".join([action, *lines])


def in_words(places: Sequence[Evidence], what: str, *, script: str | None = None) -> str:
    """What to do about these lines where no literal edit keeps the work; `what`: one sentence without its end."""
    where = ", ".join(f"line {place.line}" for place in places)
    told = "; ".join(f"`{_short(place.text.strip())}`" for place in places)
    elsewhere = f" of {places[0].file}" if script is not None and places[0].file != script else ""
    return f"Change {where}{elsewhere} ({told}) yourself: {what}."


def _short(text: str) -> str:
    text = re.sub(r"[\x00-\x1f\x7f]", " ", text)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def replace(directives: Sequence[Directive], *lines: str) -> str:
    """How to put the exact `lines`, or nothing, in place of these options; others on the same lines are kept."""
    stated = [d for d in directives if d.source != "pinned"]
    places = sorted({d.evidence for d in stated if d.source == "script"}, key=lambda place: place.line)
    given = dict(_argument(d, lines) for d in stated if d.source == "argument")
    new = [(name, value) for name, value in given.items() if value is not None]
    words = [call_again(*new[0], *new[1:])] if new else []
    words += [f"Call again without the argument {name}." for name, value in given.items() if value is None]
    dropped = {d.option: None for d in stated}
    if any(len(place.text) >= MAX_SHOWN for place in places):  # what stands behind is not known here
        new_lines = " and ".join(f"`{line}`" for line in lines) or "nothing"
        words.append(in_words(places, f"put {new_lines} in place of --{' and --'.join(dropped)}, and keep the rest"))
    elif places:
        words.append(edit(places, [*_kept(places, dropped), *lines]))
    elif not words and lines:
        words.append("\n".join(["Add:", *lines]))
    return both(*words)


def with_reason(directives: Sequence[Directive], line: str) -> str:
    """The same with a written reason: on the line, or where the call states the option, in the call."""
    way = replace(directives, f"{line}  # JUSTIFIED: {WHY_NEEDED}")
    if f"# JUSTIFIED: {WHY_NEEDED}" in way:
        return way
    call, reason = re.fullmatch(r'Call again with (\S+)="([^"]*)"\.', way), ("justification", WHY_NEEDED)
    return call_again(call[1], call[2], reason) if call else both(way, call_again(*reason))


def _kept(places: Sequence[Evidence], dropped: Container[str]) -> list[str]:
    """What else stands on these lines, each as a line of its own, with its comment."""
    found = []
    for place in places:
        try:
            words, comment = split(place.text.removeprefix("#SBATCH"))
            read = sbatch_options.read(words)
        except ValueError:  # a line that sbatch refuses has no other options
            continue
        rest = [spelled(option.name, value) for option, value in read if option.name not in dropped]
        behind = f"  # {comment.strip()}" if comment.strip() else ""
        found += [f"#SBATCH {' '.join(rest)}{behind}"] if rest else []
    return found


def _argument(directive: Directive, lines: Sequence[str]) -> tuple[str, str | None]:
    """The argument's name and its new value; None where it goes."""
    name = _ARGUMENTS.get(directive.option, directive.option)
    for line in lines:
        head, sign, value = line.partition(f"--{directive.option}=")
        if sign and head.strip() == "#SBATCH":
            return name, value.split("  #")[0].strip()
    return name, None
