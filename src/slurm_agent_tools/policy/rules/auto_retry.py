"""auto-retry: nothing is sent again by itself, and a failure is looked at before the next try."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from slurm_agent_tools.model import PastRun, Plan, ScriptReading
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.rules import findings
from slurm_agent_tools.policy.rules.base import SCRIPTS, Example, Rule, Verdict, passed, reading_of, reason_for, replace
from slurm_agent_tools.policy.rules.examples import FILE, asks, does, live, past

ID = "auto-retry"
_WHY = "A retry without a look repeats the failure at the cluster's cost."
_IN_A_ROW = 3


def _judge(plan: Plan, policy: Policy) -> Verdict:
    verdicts = [_requeue(plan), _after_failure(plan), _found(plan), *_history(plan, policy)]
    severity = ("deny", "approve", "justify", "warn")
    spoken = sorted((v for v in verdicts if v is not None), key=lambda v: severity.index(v.outcome))
    return spoken[0] if spoken else passed("Nothing in this request tries again by itself.")


def _found(plan: Plan) -> Verdict | None:
    found = [finding for finding in reading_of(plan).findings if finding.rule == ID]
    remedy = "let the job end when its work fails; after analyze_log, submit the corrected script again."
    return findings.speak(found, _WHY, remedy) if found else None


def _requeue(plan: Plan) -> Verdict | None:
    request = reading_of(plan).request
    stated = request.find("requeue")
    if not stated and not request.requeue:
        return None
    lines = [directive.evidence for directive in stated]
    return Verdict("deny", f"The script asks Slurm to requeue it. {_WHY}", "requeue", None, replace(stated), lines)


def _after_failure(plan: Plan) -> Verdict | None:
    request = reading_of(plan).request
    if "afternotok" not in (request.dependency or "").lower():
        return None
    stated = request.find("dependency")
    message = f"The job would start because another one failed (afternotok). {_WHY}"
    lines = [directive.evidence for directive in stated]
    return Verdict("deny", message, request.dependency, None, replace(stated), lines)


def _history(plan: Plan, policy: Policy) -> list[Verdict | None]:
    if plan.live is None or plan.tool != "submit_job":
        return []
    reading = reading_of(plan)
    same = (run for run in plan.live.history if reading.path == run.script_path or reading.sha256 == run.script_sha256)
    return [_failed_before(next(same, None), plan, policy), _in_a_row(plan.live.history, reading)]


def _failed_before(run: PastRun | None, plan: Plan, policy: Policy) -> Verdict | None:
    """What the newest run of the same script means for the next one."""
    if run is None or not run.failed:
        return None
    ended = run.outcome or "FAILED"
    if not run.analysed:
        message = f"The last run of this script, job {run.job_id}, ended {ended} and was not analysed. {_WHY}"
        remedy = f'Call analyze_log with job_id="{run.job_id}", correct the script, then submit it again.'
        return Verdict("deny", message, ended, None, remedy)
    if run.script_sha256 != reading_of(plan).sha256 or reason_for(plan, policy, directive=False) is not None:
        return None
    message = f"Job {run.job_id} ran this very script and ended {ended}. {_WHY}"
    remedy = (
        f"Correct the script as the diagnosis of job {run.job_id} says, or call again with justification="
        '"<what changed outside the script: a package, the data, a node>".'
    )
    return Verdict("justify", message, ended, None, remedy)


def _in_a_row(history: Sequence[PastRun], reading: ScriptReading) -> Verdict | None:
    """Three failures of one category, one after the other, under this job's name."""
    name = reading.request.name or reading.path.rsplit("/", 1)[-1]
    newest = list(islice((run for run in history if run.job_name == name and not run.active), _IN_A_ROW))
    kinds = {run.category or run.outcome for run in newest if run.failed}
    if len(newest) < _IN_A_ROW or len(kinds) != 1 or not all(run.failed for run in newest) or None in kinds:
        return None
    ids = ", ".join(run.job_id for run in newest)
    message = f"The last {_IN_A_ROW} runs of {name} ({ids}) all failed with {kinds.pop()}. {_WHY}"
    remedy = "Report the three diagnoses to a person, who decides whether it is tried again."
    return Verdict("approve", message, _IN_A_ROW, _IN_A_ROW - 1, remedy)


def _again(**facts: object) -> Plan:
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
