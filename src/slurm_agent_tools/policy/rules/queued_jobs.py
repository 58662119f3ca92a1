"""concurrent-jobs, duplicate, smoke-first, status-first: what of this user's runs, waits, or was tried already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from math import inf

from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.job_resources import chain_widths, claims, waits_for
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    SUBMIT,
    WHY_TWICE,
    Example,
    Judgement,
    Rule,
    call_again,
    facts_of,
    not_evaluated,
    note,
    passed,
    proof,
    reason_for,
    replace,
    request_of,
    ways,
)
from slurm_agent_tools.units import UNLIMITED, ArraySpec, how_many

# --- concurrent-jobs: how many of a user's jobs may run or wait at once -----------------------------------------------

_NAMED = 20  # active jobs that a remedy names and tries; who has more calls again

_SEVERAL = "Runs of one script can be one array: --array=0-9%4 takes 4 slots, --array=0-9%1 takes 1."

_UNTOLD = (
    "Call get_status in some minutes: none of your jobs is in the queue, and what became of earlier submissions is not"
    " known yet, so they count."
)

_WHY = "The cluster is shared, and a runaway agent must stop here."


def _judge_slots(plan: PlannedRequest, policy: Policy) -> Judgement:
    request, most = request_of(plan), policy.limits.max_concurrent_jobs
    width = request.array.concurrency if request.array is not None else plan.resources.array_concurrency or 1
    if width > most:
        message = (
            f"This array alone may run {width} tasks at once, more than {how_many(most, 'concurrent job')}. {_WHY}"
        )
        remedy = replace(request.find("array"), *_throttled(request.array, most))
        return Judgement("deny", message, width, most, remedy, proof(request.find("array")))
    if plan.tool != "submit_job":
        return passed(f"The job takes {width} of {most} slots.", width, most)
    if plan.live is None:
        return not_evaluated(f"Needs the queue; by itself this job takes {width} of {most} slots.")
    after = plan.live.slots_after
    if after is None:
        after = plan.live.active_jobs + width - (1 if plan.live.takes_over is not None else 0)
    if after <= most:
        return passed(f"{after} of {most} slots are taken with this job.", after, most)
    free = most - (after - width)
    message = f"{how_many(after, 'concurrent job')} with this one, at most {most} are allowed. {_WHY}"
    return Judgement("deny", message, after, most, _remedy(plan, width, free, most), proof(request.find("array")))


def _throttled(array: ArraySpec | None, at_once: int) -> list[str]:
    if array is None:
        return []
    indices = array.text.replace("[", "").replace("]", "").split("%")[0]
    return [f"#SBATCH --array={indices}%{at_once}"]


def _remedy(plan: PlannedRequest, width: int, free: int, most: int) -> str:
    request = request_of(plan)
    active = plan.live.active if plan.live is not None else ()
    ids = list(dict.fromkeys(str(job.job_id.whole) for job in sorted(active, key=_ends)))
    over = max(1, width - free)
    until = "until it has ended, then submit again."
    wait = "\n".join(f'wait_for_job with job_id="{job_id}" {until}' for job_id in ids[:over])
    if not ids and plan.live is not None and plan.live.active_jobs:  # Slurm may have refused them
        wait = _UNTOLD
    elif not ids or over > _NAMED:
        wait = "Call get_status until enough of your jobs have ended, then submit again."
    others = [_listed(ids), *_followed(plan, ids, width, most), *([_SEVERAL] if width == 1 else [])]
    wait += f"\n{note(' '.join(others))}" if ids else ""
    if request.array is None or free < 1:
        return wait
    return ways(replace(request.find("array"), *_throttled(request.array, free)), ("wait for a job to end", wait))


def _ends(job: Job) -> tuple[bool, float, int]:
    """Sorts those that run first, by when their time is over at the latest; then those that wait, as they came."""
    limit = job.resources.time_limit_seconds
    if job.started is None or job.state == "PENDING":
        return True, 0.0, job.job_id.base
    over = job.started.timestamp() + limit if limit is not None and limit != UNLIMITED else inf
    return False, over, job.job_id.base


def _listed(ids: Sequence[str]) -> str:
    order = ", in the order in which their time limits end" if len(ids) > 1 else ""
    more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
    return f"your active jobs are {', '.join(ids[:_NAMED])}{more}{order}."


def _followed(plan: PlannedRequest, ids: Sequence[str], width: int, most: int) -> list[str]:
    """A sentence on the first job whose slot this one can take over, or why it takes over none."""
    stated = request_of(plan).dependency
    claimed = claims(() if plan.live is None else plan.live.active)
    if stated is not None and not waits_for(stated, {claim.base for claim in claimed if claim.parts == "tasks"}):
        return ["By its dependency it may run beside those that it names: only the end of a whole job frees a slot."]
    if plan.live is None or stated is not None:
        return []
    ends, split = chain_widths(claimed), {str(claim.base) for claim in claimed if claim.parts == "components"}
    for job_id in (one for one in ids[:_NAMED] if one not in split):
        taken = ends.get(int(job_id), 0)  # what follows already has no slot of its own to give
        if plan.live.active_jobs - taken + max(taken, width) <= most:
            return [f'With dependency="afterany:{job_id}" it takes over the slot of job {job_id}.']
    return []


CONCURRENT_JOBS = Rule(
    id="concurrent-jobs",
    what=(
        "Running plus pending jobs of one user stay below a limit. An array counts by the tasks that may run at once; "
        "a job that waits for another one's end takes over its place."
    ),
    why=_WHY,
    levels=("deny",),
    tools=SCRIPTS,
    judge=_judge_slots,
    passing=(
        Example("a fourth job", ("#SBATCH --gpus=1",), "pass", facts={"active_jobs": 3}),
        Example(
            "an array that runs four tasks at once", ("#SBATCH --array=0-99%4", "#SBATCH --time=4"), "pass", facts={}
        ),
        Example(
            "a job that follows one of four",
            ("#SBATCH --dependency=afterok:11",),
            "pass",
            facts={"active_jobs": 4, "takes_over": "11", "slots_after": 4, "known_jobs": frozenset({"11"})},
        ),
    ),
    failing=(
        Example("a fifth job", ("#SBATCH --gpus=1",), "deny", facts={"active_jobs": 4, "active": (11, 12, 13, 14)}),
        Example("an array without a throttle", ("#SBATCH --array=0-99",), "deny"),
        Example(
            "an array of four beside two jobs",
            ("#SBATCH --array=0-9%4",),
            "deny",
            facts={"active_jobs": 2, "active": (11, 12)},
        ),
    ),
)


# --- duplicate: the same request is not sent twice by accident --------------------------------------------------------

_WHY_ONCE = "The same work done twice is wasted, and both jobs may write the same files."

_SHA = "2" * 64


def _judge_duplicate(plan: PlannedRequest, policy: Policy) -> Judgement:
    if plan.request_sha256 is None:
        return not_evaluated("The request has no hash to compare.")
    same = [run for run in facts_of(plan).history if run.active and run.request_sha256 == plan.request_sha256]
    if not same:
        return passed("No active job runs the same request.")
    ids = ", ".join(run.job_id for run in same)
    reason = reason_for(plan, policy, directive=False)
    if reason is not None:
        return passed(f"The same request is already active as job {ids}, justified by: {reason}", ids)
    message = f"The same script with the same arguments is already active as job {ids}. {_WHY_ONCE}"
    remedy = ways(
        "\n".join(f'wait_for_job with job_id="{run.job_id}" until it has ended, then submit again.' for run in same),
        ("say why it runs twice", call_again("justification", WHY_TWICE)),
    )
    return Judgement("justify", message, ids, None, remedy)


_ACTIVE = {"active_jobs": 1, "history": ({"job_id": "51", "request_sha256": _SHA, "active": True},)}

DUPLICATE = Rule(
    id="duplicate",
    what="A request that is already queued or running (same script, arguments and options) needs a written reason.",
    why=_WHY_ONCE,
    levels=("justify",),
    tools=SUBMIT,
    judge=_judge_duplicate,
    passing=(
        Example("nothing like it is active", ("python train.py",), "pass", facts={}, call={"request_sha256": _SHA}),
        Example(
            "twice with a reason",
            ("python train.py",),
            "pass",
            facts=_ACTIVE,
            call={"request_sha256": _SHA, "justification": "measures the run to run noise"},
        ),
    ),
    failing=(Example("twice", ("python train.py",), "justify", facts=_ACTIVE, call={"request_sha256": _SHA}),),
    live=True,
)


# --- smoke-first: a configuration is tried by a short run before it is run at length ----------------------------------


def _judge_stage(plan: PlannedRequest, policy: Policy) -> Judgement:
    """A job that is small and names no stage passes without a look at what was tried before."""
    least, asked, facts = policy.smoke_first, plan.resources, facts_of(plan)
    endless = asked.time_limit_seconds in {None, UNLIMITED}
    hours = inf if endless else (asked.array_tasks or 1) * (asked.time_limit_seconds or 0) / 3600
    large = [
        (inf if count is None else count and count * hours + before, most, unit)
        for unit, most, count, before in (
            ("GPU", least.gpu_hours, asked.gpus, facts.gpu_hours_of_work),
            ("CPU", least.cpu_hours, asked.cpus, facts.cpu_hours_of_work),
        )
        if most is not None and (count is None or (count and count * hours + before > most))
    ]
    if plan.stage is None and not large:
        return passed("Small enough to need no smoke run.")
    if facts.ladder is None:
        return not_evaluated("Needs what the ledger knows of this configuration.")
    from slurm_agent_tools.policy.rules import stage_ladder  # noqa: PLC0415 - few jobs are that large or name a stage

    return stage_ladder.judge_ladder(plan, policy, facts.ladder, large)


_SHORT = ("#SBATCH --gpus=1", "#SBATCH --time=00:20:00", "python train.py")

_LONG = ("#SBATCH --gpus=4", "#SBATCH --time=12:00:00", "python train.py")


def _tried(*stages: tuple[str, str], **told: object) -> Mapping[str, object]:
    """This very configuration was tried: each stage, newest first, with what came of it."""
    return {"ladder": {"runs": stages, "smoke_partition": "gpu", **told}}


SMOKE_FIRST = Rule(
    id="smoke-first",
    what=(
        "A job above a size needs a smoke run of the same configuration that passed, or a written reason; a stage that "
        "failed closes every larger one until it has passed again. A smoke run is short, and one at a time."
    ),
    why="A mistake that a short run shows costs minutes; found in a long one it costs the hours of all its nodes.",
    levels=("warn", "justify", "deny"),
    tools=SUBMIT,
    judge=_judge_stage,
    passing=(
        Example("8 GPU hours", ("#SBATCH --gpus=4", "python train.py"), "pass", facts={}),
        Example("48 GPU hours behind a smoke run that passed", _LONG, "pass", facts=_tried(("smoke", "passed"))),
        Example("a smoke run of 20 minutes", _SHORT, "pass", facts=_tried(), call={"stage": "smoke"}),
        Example(
            "a pilot behind a smoke run", _LONG, "pass", facts=_tried(("smoke", "passed")), call={"stage": "pilot"}
        ),
        Example(
            "48 GPU hours with a reason",
            _LONG,
            "pass",
            facts=_tried(),
            call={"justification": "the same code ran to its end on the other cluster"},
        ),
    ),
    failing=(
        Example("48 GPU hours, never tried", _LONG, "justify", facts=_tried()),
        Example("a large pilot, never tried", _LONG, "justify", facts=_tried(), call={"stage": "pilot"}),
        Example("behind a smoke run that failed", _LONG, "deny", facts=_tried(("smoke", "failed"))),
        Example("behind a pilot that failed", _LONG, "deny", facts=_tried(("pilot", "failed"), ("smoke", "passed"))),
        Example("behind a smoke run that goes on", _LONG, "deny", facts=_tried(("smoke", "active"))),
        Example("behind a smoke run whose end nobody saw", _LONG, "deny", facts=_tried(("smoke", "unknown"))),
        Example(
            "a second smoke run at once", _SHORT, "deny", facts=_tried(("smoke", "active")), call={"stage": "smoke"}
        ),
        Example("a smoke run of 12 hours", _LONG, "deny", facts=_tried(), call={"stage": "smoke"}),
        Example(
            "a smoke run of a whole array",
            ("#SBATCH --array=0-99%4", *_SHORT),
            "deny",
            facts=_tried(),
            call={"stage": "smoke"},
        ),
        Example(
            "a smoke run away from the partition for tests",
            ("#SBATCH --partition=gpu", "#SBATCH --time=00:20:00", "python train.py"),
            "warn",
            facts=_tried(smoke_partition="cpu"),
            call={"stage": "smoke"},
        ),
        Example(
            "a declaration that calls its nodes a length",
            ("#SBATCH --gpus=4", "#SBATCH --time=12:00:00", "#SMOKE length: --nodes", "python train.py"),
            "deny",
            facts=_tried(problem="`--nodes` is no name of a length"),
        ),
        Example(
            "a file that it reads cannot be read",
            _LONG,
            "deny",
            facts=_tried(("smoke", "passed"), problem="data.csv cannot be read"),
        ),
    ),
    live=True,
)


# --- status-first: look at the cluster, then submit -------------------------------------------------------------------

_WHY_LOOK = "Who has not looked at the queue cannot know whether now is the time."

_LOOK = "Call get_status, follow its recommendation, then submit again."


def _judge_look(plan: PlannedRequest, policy: Policy) -> Judgement:
    facts, most = facts_of(plan), policy.status_max_age_seconds
    if facts.status_read is None:
        message = f"get_status was not called in the {most} s before this submission. {_WHY_LOOK}"
        return Judgement("deny", message, None, most, _LOOK)
    age = round((facts.now - facts.status_read).total_seconds())
    if age > most:
        message = f"get_status was last called {age} s ago, longer than {most} s. {_WHY_LOOK}"
        return Judgement("deny", message, age, most, _LOOK)
    return passed(f"get_status was called {max(age, 0)} s ago.", max(age, 0), most)


STATUS_FIRST = Rule(
    id="status-first",
    what="The same caller has called get_status shortly before it submits.",
    why=_WHY_LOOK,
    levels=("deny",),
    tools=SUBMIT,
    judge=_judge_look,
    passing=(Example("a look a minute ago", ("python train.py",), "pass", facts={}),),
    failing=(
        Example("no look", ("python train.py",), "deny", facts={"looked": None}),
        Example("a look an hour ago", ("python train.py",), "deny", facts={"looked": timedelta(hours=1)}),
    ),
    live=True,
)
