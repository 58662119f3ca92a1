"""interactive: no terminal inside a batch job, and no node kept for a person without a written reason."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slurm_agent_tools.models.decision import Outcome
from slurm_agent_tools.models.request import Evidence, Finding, ScriptReading
from slurm_agent_tools.policy.document import Policy, harsher
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules import remedies, script_mending
from slurm_agent_tools.policy.rules.examples import FILE, asks, does
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    Example,
    Judgement,
    Rule,
    judge_findings,
    passed,
    reading_of,
    reason_for,
    sentence,
    speak,
)
from slurm_agent_tools.policy.rules.script_mending import Change, Mend, Place

ID = "interactive"

_WHY = "Nobody sits at the terminal of a batch job: it waits until its time is over and holds its nodes meanwhile."

_WHY_KEPT = "What nobody uses meanwhile nobody else can use, until the job's time is over."

_PTY = re.compile(r"--pty(?:=\S+)?")

_IDLING = frozenset({"sleep", "tail", "while", "until", "for"})

_WORDS = "write the commands that somebody would type there; for work at a terminal ask a person"


def _without_terminal(place: Place) -> Change | None:
    """The step without its terminal; a shell that nobody types into goes, where other work is left."""
    gone, puts = set[int](), list[tuple[int, int, str]]()
    for command in place.here:
        terminals = [word for word in command.words if _PTY.fullmatch(word.text)]
        if not terminals and script_mending.program(command) != "salloc":
            continue
        if not script_mending.does_work(command) and not command.redirected:
            gone.add(command.index)
            continue
        puts += [script_mending.without_word(place, word) for word in terminals]
    return Change(frozenset(gone), tuple(puts))


_MEND = Mend(_without_terminal, lambda _: None, lambda _: _WORDS)


_ADVICE = "a batch job runs its commands by itself; for work at a terminal ask a person."


def _with_kept(findings: Sequence[Finding], plan: PlannedRequest, policy: Policy) -> Judgement:
    """Nodes that are kept, and terminals beside them, all in one answer."""
    kept = [finding for finding in findings if finding.level == "justify"]
    others = [finding for finding in findings if finding.level != "justify"]
    node = _kept(kept, plan, policy)
    if not others:
        return node
    terminal = speak(reading_of(plan), others, _WHY, _MEND, _ADVICE)
    if node.outcome == "pass":
        return terminal
    worst: Outcome = harsher(terminal.outcome, node.outcome)  # type: ignore[assignment, arg-type]  # never a pass
    message = f"{sentence([finding.what for finding in findings])} {_WHY}"
    remedy = "\n".join(text for text in (terminal.remedy, _asked(policy)) if text)
    return Judgement(worst, message, len(findings), 0, remedy, [finding.evidence for finding in findings])


def _kept(kept: Sequence[Finding], plan: PlannedRequest, policy: Policy) -> Judgement:
    """What the policy makes of a node that is kept."""
    level, what = policy.nodes_for_people, sentence([finding.what for finding in kept])
    evidence = [finding.evidence for finding in kept]
    if level == "off":
        return passed(f"{what} The policy lets it.", len(kept))
    reason = reason_for(plan, policy) if level == "justify" else None
    if reason is not None:
        return Judgement("pass", f"{what} Justified by: {reason}", len(kept), 0, None, evidence)
    return Judgement(level, f"{what} {_WHY_KEPT}", len(kept), 0, _remedy(reading_of(plan), kept, policy), evidence)


def _asked(policy: Policy) -> str:
    """What keeping a node needs; nothing where no word of anybody is enough."""
    if policy.nodes_for_people == "justify":
        return remedies.call_again("justification", remedies.WHY_NEEDED)
    return "Ask a person to agree to the script as it is." if policy.nodes_for_people == "approve" else ""


def _remedy(reading: ScriptReading, kept: Sequence[Finding], policy: Policy) -> str:
    """Wait for the workers where that is meant; else the reason: only the author knows what to run instead."""
    asked, advice = _asked(policy), remedies.note("a batch job runs its commands by itself and ends with them.")
    waits = [finding for finding in kept if "`wait`" in finding.what]
    if len(waits) < len(kept):
        return f"{asked}\n{advice}" if asked else advice
    steps = f"{script_mending.steps(reading, waits, _WAITING)}\n{advice}"
    reason = policy.nodes_for_people == "justify"
    return remedies.ways(steps, ("give your reason in the call" if reason else "ask", asked)) if asked else steps


def _waiting(place: Place) -> Change | None:
    """`wait` in the place of what only waits."""
    idle = [one for one in place.here if one.kind in _IDLING or script_mending.program(one) in _IDLING]
    return Change(puts=((idle[0].start, idle[0].end, "wait"),)) if idle else None


_WAITING = Mend(_waiting, lambda _: None, lambda _: "write `wait` in its place")

_WORKERS = (
    "it keeps the node and does nothing: `sleep infinity`, also when its workers in the background have ended "
    "(`wait` ends with them)"
)


_NOTEBOOK = "it keeps the node for a person: `jupyter lab`"


RULE = Rule(
    id=ID,
    what=(
        "A script opens no terminal (`srun --pty`, `salloc`). It keeps no node for a person (`sleep infinity`, "
        "Jupyter, code-server, tmux, screen, VNC, RStudio, `ssh -R`) without a written reason; `nodes_for_people` in "
        "the policy says what that needs."
    ),
    why=_WHY,
    levels=("warn", "justify", "approve", "deny"),
    tools=SCRIPTS,
    judge=judge_findings(
        ID,
        clean="The script opens no terminal and keeps no node for a person.",
        why=_WHY,
        mend=_MEND,
        advice=_ADVICE,
        justified=_with_kept,
    ),
    passing=(
        Example("a job step without a terminal", asks("srun python train.py"), "pass"),
        Example(
            "a notebook with a written reason",
            asks(
                "#SBATCH --gpus=1  # JUSTIFIED: a review of the runs with the group at two o'clock",
                "jupyter lab --no-browser",
                reason="a review of the runs with the group at two o'clock",
                findings=(Finding(ID, _NOTEBOOK, Evidence(FILE, 3, "jupyter lab --no-browser"), "justify"),),
                gpus=1,
            ),
            "pass",
        ),
    ),
    failing=(
        Example("a shell in a job", does(ID, "opens a terminal with srun --pty", "srun --pty bash"), "deny"),
        Example(
            "a notebook",
            does(ID, _NOTEBOOK, "jupyter lab --no-browser", level="justify"),
            "justify",
        ),
        Example(
            "a notebook where a person decides",
            does(ID, _NOTEBOOK, "jupyter lab --no-browser", level="justify"),
            "approve",
            fields={"nodes_for_people": "approve"},
        ),
        Example(
            "a job that only sleeps",
            does(ID, "it keeps the node and does nothing: `sleep infinity`", "sleep infinity", level="justify"),
            "justify",
        ),
        Example(
            "a job that goes on when its workers have ended",
            does(ID, _WORKERS, "sleep infinity", level="justify"),
            "justify",
        ),
        Example(
            "a notebook and a terminal",
            asks(
                "jupyter lab --no-browser",
                "srun --pty bash",
                findings=(
                    Finding(ID, _NOTEBOOK, Evidence(FILE, 2, "jupyter lab --no-browser"), "justify"),
                    Finding(ID, "opens a terminal with srun --pty", Evidence(FILE, 3, "srun --pty bash"), "deny"),
                ),
            ),
            "deny",
        ),
    ),
)
