"""auto-retry: nothing is sent again by itself, and a failure is looked at before the next try."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from slurm_agent_tools.models.request import Evidence, ScriptReading
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PastRun, PlannedRequest
from slurm_agent_tools.policy.rules import remedies
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

ID = "auto-retry"

_WHY = "A retry without a look repeats the failure at the cluster's cost."

_IN_A_ROW = 3

_ADVICE = "let the job end when its work fails; after analyze_log, submit the corrected script again."


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
    verdict = speak(ID, reading, found, _WHY, _ADVICE) if found else None
    if verdict is None and not told:
        return None
    if verdict is not None:
        told += [finding.what for finding in found]
        steps.append(verdict.remedy or "")
        lines += verdict.evidence
    outcome = "deny" if verdict is None or stated or after else verdict.outcome
    return Judgement(outcome, f"{sentence(told)} {_WHY}", len(lines), 0, "\n".join(steps), lines)


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
