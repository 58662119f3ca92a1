"""auto-retry: nothing is sent again by itself, and a failure is looked at before the next try."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from slurm_agent_tools.models.request import Evidence, ScriptLayout, ScriptReading, ShellCommand
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PastRun, PlannedRequest
from slurm_agent_tools.policy.rules import remedies, script_mending
from slurm_agent_tools.policy.rules.examples import FILE, asks, does, live, past
from slurm_agent_tools.policy.rules.remedies import replace
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    Example,
    Judgement,
    Rule,
    passed,
    proof,
    reading_of,
    reason_for,
    sentence,
    speak,
)
from slurm_agent_tools.policy.rules.script_mending import Change, Mend, Place, does_work

ID = "auto-retry"

_WHY = "A retry without a look repeats the failure at the cluster's cost."

_IN_A_ROW = 3

_ADVICE = "let the job end when its work fails; after analyze_log, submit the corrected script again."

_WORDS = (
    "run the work once, with all that stands around it, and let the job end when it fails; "
    "after analyze_log, submit the corrected script again"
)

_OPTIONS = re.compile(r"--(?:retries|restart-times|max[-_]restarts?)|-process\.(?:errorStrategy|maxRetries)")

_SETTINGS = (
    (r"\bauto_requeue\s*=\s*True", "auto_requeue=False"),
    (r"\b(max_(?:failures|restarts|retries))\s*=\s*-?\d+", r"\1=0"),
)

_AGAIN = frozenset({"sbatch", "scontrol"})

_ITSELF = re.compile(r"\$0|\$\{0\}|BASH_SOURCE")

# What a loop of tries does between them: it goes with the loop.
_BETWEEN = frozenset({"sleep", "echo", "printf", "break", "continue", "exit", "return", "true", "false", ":", "date",
                      "let", "[", "test"})  # fmt: skip

_LOOPS = frozenset({"while", "until", "for"})


def _judge(plan: PlannedRequest, policy: Policy) -> Judgement:
    verdicts = [_text(plan)]
    if plan.live is not None and plan.tool == "submit_job":
        reading, history = reading_of(plan), plan.live.history
        same = (run for run in history if reading.path == run.script_path or reading.sha256 == run.script_sha256)
        verdicts += [_failed_before(next(same, None), plan, policy), _in_a_row(history, reading)]
    severity = ("deny", "approve", "justify", "warn")
    spoken = sorted((v for v in verdicts if v is not None), key=lambda v: severity.index(v.outcome))
    return spoken[0] if spoken else passed("Nothing in this request tries again by itself.")


def _text(plan: PlannedRequest) -> Judgement | None:
    """What the script's own lines say about another try, all in one answer."""
    reading = reading_of(plan)
    request = reading.request
    found = [finding for finding in reading.findings if finding.rule == ID]
    told, steps = list[str](), list[str]()
    lines = list[Evidence]()
    stated = request.find("requeue")
    if stated:
        told.append("the script asks Slurm to requeue it")
    after = request.find("dependency") if "afternotok" in (request.dependency or "").lower() else ()
    if after:
        told.append(f"the job would start because another one failed ({request.dependency})")
    if stated or after:
        steps.append(replace([*stated, *after]))
        lines += proof([*stated, *after])
    verdict = speak(reading, found, _WHY, _MEND, _ADVICE) if found else None
    if verdict is None and not told:
        return None
    if verdict is not None:
        told += [finding.what for finding in found]
        steps.append(verdict.remedy or "")
        lines += verdict.evidence
    outcome = "deny" if verdict is None or stated or after else verdict.outcome
    return Judgement(outcome, f"{sentence(told)} {_WHY}", len(lines), 0, "\n".join(steps), lines)


def _once(place: Place) -> Change | None:
    """The work run once: without the loop, the second try, or the option that asks for one."""
    puts = [put for command in place.here for put in _options(place, command)]
    if puts:
        return Change(puts=tuple(puts))
    gone = frozenset(one.index for one in place.here if _sends_again(one))
    if gone:
        return Change(gone)
    loops = [one for one in place.here if one.kind in _LOOPS and _tries(place.layout, one)]
    chains = [one for one in place.here if one.kind == "or"]
    if len(loops) == 1:
        return _without_loop(place, loops[0])
    return _first_try(place.layout, chains[0]) if chains and not loops else None


def _tries(layout: ScriptLayout, loop: ShellCommand) -> bool:
    """Whether a loop can be the one that tries again: it leaves itself, asks for success, or has no end."""
    inner = list(layout.within(loop))
    asked = [one for one in inner if one.parent == loop.index and one.role == "condition"]
    if any(does_work(one) or one.negated or script_mending.program(one) in {"true", ":", "false"} for one in asked):
        return True
    own = [one for one in inner if next(out.index for out in layout.around(one) if out.kind in _LOOPS) == loop.index]
    return any(script_mending.program(one) in {"break", "exit", "return"} for one in own) or bool(asked)


def _sends_again(command: ShellCommand) -> bool:
    """Whether a command starts the job or its script again, and does nothing else."""
    words = script_mending.tail(command)
    if command.kind != "call" or not words:
        return False
    if script_mending.program(command) == "trap":
        return re.fullmatch(r"\s*(?:echo [^;&|]*[;&]+\s*)?(?:scontrol requeue|sbatch)\b[^;&|\n]*", words[1]) is not None
    again = any(_ITSELF.search(word.text) for word in command.words)
    return script_mending.program(command) in _AGAIN or (
        again and command.words[0].text in {"exec", "bash", "sh", "$0"}
    )


def _options(place: Place, command: ShellCommand) -> Iterator[tuple[int, int, str]]:
    """Options and settings that ask for another try, in the words of a command."""
    for number, word in enumerate(command.words):
        name, sign, _ = word.text.partition("=")
        if _OPTIONS.fullmatch(name) and sign:
            yield script_mending.without_word(place, word)
        elif _OPTIONS.fullmatch(word.text) and number + 1 < len(command.words):
            yield script_mending.without_words(place, word, command.words[number + 1])
        else:
            source = place.reading.text[word.start : word.end]
            new = _set_once(source)
            if new is not None:
                yield (word.start, word.end, new)


def _set_once(text: str) -> str | None:
    """A line, or a word, whose setting asks for another try, with one that does not."""
    new = text
    for pattern, plain in _SETTINGS:
        new = re.sub(pattern, plain, new)
    return None if new == text else new


def _first_try(layout: ScriptLayout, command: ShellCommand) -> Change | None:
    """`A || A again`: the first alone, where nothing stands in the second but the try."""
    second = layout.children(command)[-1]
    leaves = [one for one in (second, *layout.within(second)) if one.kind in {"call", "declaration"}]
    first = script_mending.program(layout.children(command)[0])
    tried = [one for one in leaves if one.words and script_mending.program(one) not in _BETWEEN]
    if any(script_mending.program(one) != first and not _sends_again(one) for one in tried):
        return None
    return Change(frozenset(one.index for one in leaves))


def _without_loop(place: Place, loop: ShellCommand) -> Change | None:
    """The work of a loop, run once, where the loop does nothing else and the work does not ask for its number."""
    inner = list(place.layout.within(loop))
    work = [one for one in inner if one.kind in {"call", "declaration"} and not _between(one)]
    units = list(dict.fromkeys(_unit(place.layout, one, loop) for one in work if one.role != "inside"))
    behind = _behind(place.layout, loop)
    if loop.redirected or not units or None in units or behind is None:
        return None
    sources = [place.source(unit).removeprefix("!").lstrip() for unit in units if unit is not None]
    set_here = {one.name for one in (loop, *inner)} | {
        word.text.partition("=")[0].rstrip("+") for one in inner for word in one.assigns
    }
    used = set(re.findall(r"\$\{?(\w+)", "\n".join(sources)))
    if used & set_here or any(unit.heredocs for unit in units if unit is not None):
        return None
    return Change(behind, ((loop.start, loop.end, _in_turn(place, loop, sources)),))


def _in_turn(place: Place, loop: ShellCommand, sources: Sequence[str]) -> str:
    """Several commands in the place of one: each in its line, or held together where something hangs on the whole."""
    if len(sources) == 1:
        return sources[0]
    if loop.role != "body" or loop.background or loop.negated:
        return "{ " + "; ".join(sources) + "; }"
    begin = place.reading.text.rfind("\n", 0, loop.start) + 1
    blank = re.match(r"[ \t]*", place.reading.text[begin:])
    return f"\n{blank[0] if blank else ''}".join(sources)


def _behind(layout: ScriptLayout, loop: ShellCommand) -> frozenset[int] | None:
    """What stands behind a loop that a try's success leaves for good: the end for when all failed, which goes with it.

    None where it is more than that.
    """
    ends = [one for one in layout.within(loop) if script_mending.program(one) in {"exit", "return"}]
    if not ends:
        return frozenset()
    after = [one for one in layout.commands if one.parent == loop.parent and one.branch == loop.branch]
    after = [one for one in after if one.index > loop.index]
    plain = all(one.kind == "call" and script_mending.program(one) in _BETWEEN for one in after)
    return frozenset(one.index for one in after) if plain else None


def _between(command: ShellCommand) -> bool:
    return not command.words or script_mending.program(command) in _BETWEEN


def _unit(layout: ScriptLayout, command: ShellCommand, loop: ShellCommand) -> ShellCommand | None:
    """The command with the pipe that it stands in; None where it runs under a condition of the loop's own."""
    unit = command
    for outer in layout.around(command):
        if outer.index == loop.index:
            return None if unit.background else unit
        if outer.kind in {"pipe", "timed"}:
            unit = outer
        elif unit.role in {"right", "body"} and outer.kind != "group":
            return None
    return None


_MEND = Mend(_once, _set_once, lambda _: _WORDS)


def _failed_before(run: PastRun | None, plan: PlannedRequest, policy: Policy) -> Judgement | None:
    """What the newest run of the same script means for the next one."""
    if run is not None and run.unseen is not None and not run.analysed:
        message = f"How the last run of this script, job {run.job_id}, ended is not known. Nobody saw it: {run.unseen}"
        return Judgement("warn", message, None, None, f'Call analyze_log with job_id="{run.job_id}".')
    if run is None or not run.failed:
        return None
    ended = run.outcome or "FAILED"
    if not run.analysed:
        message = f"The last run of this script, job {run.job_id}, ended {ended} and was not analysed. {_WHY}"
        look = f'Call analyze_log with job_id="{run.job_id}".'
        return Judgement("deny", message, ended, None, _change(f"{look}\n", run, reading_of(plan).path))
    if run.script_sha256 != reading_of(plan).sha256 or reason_for(plan, policy, directive=False) is not None:
        return None
    found = f" ({run.category})" if run.category else ""
    message = (
        f"Job {run.job_id} ran this very script, ended {ended} and was analysed{found}. The script's own text has"
        " not changed since; what changed outside it is not known here."
    )
    return Judgement("justify", message, ended, None, _change("", run, reading_of(plan).path))


def _change(first: str, run: PastRun, script: str) -> str:
    """After the steps of `first`: correct the script, or say what else is different now."""
    correct = f"{first}Change {script} as the diagnosis of job {run.job_id} says, then submit it again."
    unchanged = f"{first}{remedies.call_again('justification', remedies.WHAT_CHANGED)}"
    return remedies.ways(correct, ("keep the script, where the cause lay outside it", unchanged))


def _in_a_row(history: Sequence[PastRun], reading: ScriptReading) -> Judgement | None:
    """Three failures of one category, one after the other, under this job's name."""
    name = reading.request.name or reading.path.rsplit("/", 1)[-1]
    newest = list(islice((run for run in history if run.job_name == name and not run.active), _IN_A_ROW))
    kinds = {run.category or run.outcome for run in newest if run.failed}
    if len(newest) < _IN_A_ROW or len(kinds) != 1 or not all(run.failed for run in newest) or None in kinds:
        return None
    ids = ", ".join(run.job_id for run in newest)
    message = f"The last {_IN_A_ROW} runs of {name} ({ids}) all failed with {kinds.pop()}. {_WHY}"
    remedy = "Ask a person: report the three diagnoses, and submit again only with that person's approval."
    return Judgement("approve", message, _IN_A_ROW, _IN_A_ROW - 1, remedy)


def _again(**facts: object) -> PlannedRequest:
    """The example script, sent again after job 41."""
    plan = asks("#SBATCH --gpus=1", "python train.py", gpus=1, live=live())
    reading = reading_of(plan)
    run = past("41", **{"script_sha256": reading.sha256, "outcome": "OUT_OF_MEMORY", "failed": True, **facts})
    return asks("#SBATCH --gpus=1", "python train.py", gpus=1, live=live(history=(run,)))


_THRICE = tuple(
    past(str(number), failed=True, outcome="TIMEOUT", category="timeout", analysed=True) for number in (43, 42, 41)
)

RULE = Rule(
    id=ID,
    what=(
        "No requeue, no self-resubmission, no retry loop, no start on another job's failure. A script whose last run "
        "failed needs analyze_log first, unchanged it needs a written reason too; three failures of one category in "
        "a row need a person."
    ),
    why=_WHY,
    levels=("warn", "justify", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge,
    passing=(
        Example("a first run", asks("#SBATCH --gpus=1", "python train.py", gpus=1, live=live()), "pass"),
        Example("a failed script, analysed and changed", _again(analysed=True, script_sha256="f" * 64), "pass"),
        Example("a script whose last run succeeded", _again(failed=False, outcome="COMPLETED"), "pass"),
    ),
    failing=(
        Example(
            "a script whose last run nobody saw end",
            _again(failed=None, outcome=None, unseen="slurmdbd does not answer."),
            "warn",
        ),
        Example("requeue", asks("#SBATCH --requeue", "python train.py", requeue=True), "deny"),
        Example(
            "resubmission of itself",
            does(ID, "submits itself again", 'python train.py || sbatch "$0"'),
            "deny",
        ),
        Example(
            "a start on failure",
            asks("#SBATCH --dependency=afternotok:41", "python train.py", dependency="afternotok:41"),
            "deny",
        ),
        Example("a failed script that nobody looked at", _again(), "deny"),
        Example("a failed script, analysed but unchanged", _again(analysed=True), "justify"),
        Example(
            "the third timeout in a row",
            asks(
                "#SBATCH --job-name=train",
                f"# changed since, like {FILE}",
                "python train.py",
                name="train",
                live=live(history=_THRICE),
            ),
            "approve",
        ),
    ),
)
