"""auto-retry, dependency: what comes before a job, its own earlier runs and the jobs that it waits for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from slurm_agent_tools.models.job_resources import named_tasks
from slurm_agent_tools.models.request import Directive, Evidence, ScriptReading
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import LiveFacts, PastRun, PlannedRequest
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    WHAT_CHANGED,
    Example,
    Judgement,
    Rule,
    call_again,
    not_evaluated,
    note,
    passed,
    proof,
    reading_of,
    reason_for,
    replace,
    request_of,
    sentence,
    speak,
    ways,
)

# --- auto-retry: nothing is sent again by itself, and a failure is looked at before the next try ----------------------

ID = "auto-retry"

_WHY = "A retry without a look repeats the failure at the cluster's cost."

# What is kept of a run is how the job as a whole ended, so that no rule can pass an array by what it leaves out.
_ARRAY = " Nor is which of its tasks failed: an array that leaves them out is judged as the same run, until you say so."

_IN_A_ROW = 3

_ADVICE = "let the job end when its work fails; after analyze_log, submit the corrected script again."


def _judge_again(plan: PlannedRequest, policy: Policy) -> Judgement:
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
        return Judgement("deny", message, ended, None, _change(f"{look}\n", run, plan))
    if run.script_sha256 != reading_of(plan).sha256 or reason_for(plan, policy, directive=False) is not None:
        return None
    found = f" ({run.category})" if run.category else ""
    message = (
        f"Job {run.job_id} ran this very script, ended {ended} and was analysed{found}. The script's own text has"
        f" not changed since; what changed outside it is not known here.{_ARRAY if request_of(plan).array else ''}"
    )
    return Judgement("justify", message, ended, None, _change("", run, plan))


def _change(first: str, run: PastRun, plan: PlannedRequest) -> str:
    """After the steps of `first`: correct the script, or say what was corrected outside it."""
    script = reading_of(plan).path
    correct = f"{first}Change {script} itself, if the cause of job {run.job_id} lies in it, then submit it again."
    unchanged = f"{first}{call_again('justification', WHAT_CHANGED)}"
    elsewhere = "keep it, and say what was corrected elsewhere, for instance in the program that it runs"
    elsewhere += ", or which tasks that failed the array leaves out" if request_of(plan).array else ""
    return ways(correct, (elsewhere, unchanged))


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


_AGAIN = ("#SBATCH --gpus=1", "python train.py")


def _failed(**told: object) -> Mapping[str, object]:
    """Job 41 ran the example's script, and failed where nothing else is told."""
    return {"history": ({"job_id": "41", "outcome": "OUT_OF_MEMORY", "failed": True, **told},)}


_TIMEOUT = {"failed": True, "outcome": "TIMEOUT", "category": "timeout", "analysed": True, "script_sha256": "0" * 64}

_THRICE = {"history": tuple({"job_id": number, **_TIMEOUT} for number in ("43", "42", "41"))}

AUTO_RETRY = Rule(
    id=ID,
    what=(
        "No requeue, no self-resubmission, no retry loop, no start on another job's failure. A script whose last run "
        "failed needs analyze_log first, unchanged it needs a written reason too; three failures of one category in "
        "a row need a person."
    ),
    why=_WHY,
    levels=("warn", "justify", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge_again,
    passing=(
        Example("a first run", ("#SBATCH --gpus=1", "python train.py"), "pass", facts={}),
        Example(
            "a failed script, analysed and changed",
            _AGAIN,
            "pass",
            facts=_failed(analysed=True, script_sha256="f" * 64),
        ),
        Example("a script whose last run succeeded", _AGAIN, "pass", facts=_failed(failed=False, outcome="COMPLETED")),
    ),
    failing=(
        Example(
            "a script whose last run nobody saw end",
            _AGAIN,
            "warn",
            facts=_failed(failed=None, outcome=None, unseen="slurmdbd does not answer."),
        ),
        Example("requeue", ("#SBATCH --requeue", "python train.py"), "deny"),
        Example("resubmission of itself", ('python train.py || sbatch "$0"',), "deny"),
        Example("a start on failure", ("#SBATCH --dependency=afternotok:41", "python train.py"), "deny"),
        Example("a failed script that nobody looked at", _AGAIN, "deny", facts=_failed()),
        Example("a failed script, analysed but unchanged", _AGAIN, "justify", facts=_failed(analysed=True)),
        Example(
            "the third timeout in a row",
            ("#SBATCH --job-name=train", "# changed since", "python train.py"),
            "approve",
            facts=_THRICE,
        ),
    ),
)


# --- dependency: what a job waits for can be read and exists ----------------------------------------------------------

_WHY_KNOWN = "Slurm 22.05 runs a job at once when the job that it should wait for is unknown."

_WHY_LIFTED = "A job that waits for tasks that are not there starts at once, beside all others."

_GONE = "There is nothing left to wait for."

_HOPELESS = "Such a job waits for ever, or starts at once where Slurm has forgotten the other one."

_OTHER = "#SBATCH --dependency=afterok:<id of a job that get_status shows>"

_GOOD = "COMPLETED"

_WANTED = {"afterok": True, "aftercorr": True, "afternotok": False}  # whether the other job has to end well

_TYPES = ("after", "afterok", "afterany", "afternotok", "aftercorr", "afterburstbuffer")

MOST_NAMED = 20
"""Jobs that one dependency may name: some thousand keep the accounting busy for minutes, before anything is judged."""

_WHY_FEW = "Each of them is looked up before the job is sent."

_JOB = re.compile(r"([1-9]\d{0,9})(?:_(?:\d{1,9}|\*))?(\+\d{1,6})?")


def named_jobs(dependency: str) -> tuple[str, ...]:
    """Base ids of the jobs in an sbatch --dependency value; ValueError where it cannot be read (sbatch(1))."""
    text = dependency.strip()
    if "," in text and "?" in text:
        raise ValueError("`,` (all of them) and `?` (any of them) cannot be mixed")
    ids: list[str] = []
    for item in re.split(r"[,?]", text):
        kind, *jobs = item.strip().split(":")
        if kind.lower() == "singleton" and not jobs:
            continue
        if kind.lower() not in _TYPES:
            raise ValueError(f"{kind or 'nothing'!r} is no kind of dependency")
        if not jobs:
            raise ValueError(f"{kind} names no job")
        ids += [_base(kind, job) for job in jobs]
    return tuple(dict.fromkeys(ids))


def _base(kind: str, job: str) -> str:
    match = _JOB.fullmatch(job)
    if match is None:
        raise ValueError(f"{job!r} is no job id")
    if match[2] and kind.lower() != "after":
        raise ValueError(f"a delay in minutes ({match[2]}) belongs to `after` only")
    return match[1]


def _judge_dependency(plan: PlannedRequest, _: Policy) -> Judgement:
    request = request_of(plan)
    if request.dependency is None:
        return passed("The job waits for no other job.")
    stated = request.find("dependency")
    try:
        ids = named_jobs(request.dependency)
    except ValueError as error:
        message = (
            f"The dependency cannot be read: {error}. A job that waits for the wrong thing runs at the wrong time."
        )
        remedy = _remedy(stated)
        return Judgement("deny", message, request.dependency, None, remedy, proof(stated))
    if not ids:
        return passed("The job waits for jobs of its own name only.", request.dependency)
    if len(ids) > MOST_NAMED:
        message = f"--dependency names {len(ids)} jobs, and at most {MOST_NAMED} are allowed. {_WHY_FEW}"
        advice = note(f"submit a job that itself waits for up to {MOST_NAMED} of them, and name that one instead.")
        remedy = f"{_remedy(stated)}\n{advice}"
        return Judgement("deny", message, len(ids), MOST_NAMED, remedy, proof(stated))
    return _judged(request.dependency, ids, stated, plan.live)


def _judged(dependency: str, ids: Sequence[str], stated: Sequence[Directive], live: LiveFacts | None) -> Judgement:
    """What the queue and the accounting say of the jobs that are waited for."""
    if live is None:
        return not_evaluated(f"Needs the queue to tell whether job {', '.join(ids)} exists.")
    never = _never(dependency, live.ended_jobs)
    if never:
        return _hopeless(dependency, never, live.ended_jobs, stated)
    known, tasks = {job.partition("_")[0] for job in live.known_jobs}, named_tasks(dependency)
    unknown = [job for job in ids if job not in known]
    if not unknown:
        lifted = [word for base, task in sorted(tasks) if (word := f"{base}_{task}") not in live.known_jobs]
        if lifted:
            return _lifted(dependency, lifted, stated)
        return passed(f"The job waits for {', '.join(ids)}.", dependency)
    ended = {job: live.ended_jobs[job] for job in unknown if job in live.ended_jobs}
    message = f"{_forgotten(unknown, ended)}. {_GONE if len(ended) == len(unknown) else _WHY_KNOWN}"
    return Judgement("deny", message, dependency, None, _remedy(stated), proof(stated))


def _lifted(dependency: str, words: Sequence[str], stated: Sequence[Directive]) -> Judgement:
    """Tasks that Slurm does not hold, of jobs that it holds."""
    whole = re.sub(r"(?<!\d)(\d++)_(?:\*|\d+)", lambda found: found[1] if found[0] in words else found[0], dependency)
    message = f"Slurm knows no {' and no '.join(words)}: such tasks are over, or the job is no array. {_WHY_LIFTED}"
    remedy = ways(replace(stated, f"#SBATCH --dependency={whole}"), ("wait for nothing", replace(stated)))
    return Judgement("deny", message, dependency, None, remedy, proof(stated))


def _forgotten(unknown: Sequence[str], ended: Mapping[str, str]) -> str:
    told = [f"job {job} is over ({state}) and Slurm has forgotten it" for job, state in ended.items()]
    others = [job for job in unknown if job not in ended]
    told += [f"Slurm does not know job {', '.join(others)}"] if others else []
    text = "; ".join(told)
    return f"{text[:1].upper()}{text[1:]}"


def _never(dependency: str, ended: Mapping[str, str]) -> dict[str, str]:
    """Jobs whose end was not the one that is waited for, with what waits for them. Of `?` any one may do."""
    found: dict[str, str] = {}
    for item in [] if "?" in dependency else dependency.split(","):
        kind, *jobs = item.strip().split(":")
        wanted = _WANTED.get(kind.lower())
        for job in jobs:
            state = ended.get(job)
            if wanted is not None and state is not None and (state == _GOOD) is not wanted:
                found[job] = f"{kind}:{job}"
    return found


def _hopeless(
    dependency: str, never: Mapping[str, str], ended: Mapping[str, str], stated: Sequence[Directive]
) -> Judgement:
    what = "; ".join(f"job {job} ended {ended[job]}, so {item} can never be met" for job, item in never.items())
    failed = [job for job in never if ended[job] != _GOOD]
    looks = [f'Call analyze_log with job_id="{job}".' for job in failed]
    advice = [note("mend and submit what failed again, and wait for the new job.")] if failed else []
    other = "\n".join([*looks, replace(stated, _OTHER), *advice])
    ends = ", ".join(f"{job} {ended[job]}" for job in never)
    remedy = ways(other, (f"run it although job {ends}", replace(stated)))
    return Judgement("deny", f"{what[:1].upper()}{what[1:]}. {_HOPELESS}", dependency, None, remedy, proof(stated))


def _remedy(stated: Sequence[Directive]) -> str:
    """Wait for nothing, or for a job that is there."""
    return ways(replace(stated), ("wait for another job", replace(stated, _OTHER)))


def _over(state: str) -> Mapping[str, object]:
    """Job 18 is over and no longer in the queue."""
    return {"ended_jobs": {"18": state}, "history": ({"job_id": "18", "script_path": "scripts/prepare.sh"},)}


_MANY = ":".join(map(str, range(10, 11 + MOST_NAMED)))

DEPENDENCY = Rule(
    id="dependency",
    what="A dependency can be read, names only jobs and tasks that Slurm knows, and can still be met.",
    why=_WHY_KNOWN,
    levels=("deny",),
    tools=SCRIPTS,
    judge=_judge_dependency,
    passing=(
        Example(
            "after a job in the queue",
            ("#SBATCH --dependency=afterok:11",),
            "pass",
            facts={"known_jobs": frozenset({"11"})},
        ),
        Example("one at a time by name", ("#SBATCH --dependency=singleton",), "pass"),
    ),
    failing=(
        Example(
            "after the tasks of a job that is no array",
            ("#SBATCH --dependency=afterok:11_*",),
            "deny",
            facts={"known_jobs": frozenset({"11"})},
        ),
        Example("after a job that does not exist", ("#SBATCH --dependency=afterok:99",), "deny", facts={}),
        Example(
            "after the success of a job that failed",
            ("#SBATCH --dependency=afterok:18",),
            "deny",
            facts=_over("FAILED"),
        ),
        Example(
            "after a job that is over and forgotten",
            ("#SBATCH --dependency=afterany:18",),
            "deny",
            facts=_over("COMPLETED"),
        ),
        Example("after more jobs than are looked up", (f"#SBATCH --dependency=afterany:{_MANY}",), "deny"),
        Example("a kind that does not exist", ("#SBATCH --dependency=afterwards:11",), "deny"),
    ),
)
