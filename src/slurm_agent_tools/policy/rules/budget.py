"""time-limit, budget: how long one job may run, and how much a job and a day may take.

Hours of one job and of one day, pending jobs, submissions a day, and the switch that stops them all.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import LiveFacts, PlannedRequest
from slurm_agent_tools.policy.rules.gpus import GPU_OPTIONS
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    Example,
    Judgement,
    Measure,
    Rule,
    judge_measure,
    passed,
    proof,
    replace,
    request_of,
    uncountable,
    ways,
)
from slurm_agent_tools.units import HUNDRED_YEARS, UNLIMITED, format_duration, how_many

# --- time-limit: how long one job may run -----------------------------------------------------------------------------

_WHY_SHORT = "A long job blocks its nodes for everybody, and a mistake in it is found late."


def _judge_time(plan: PlannedRequest, policy: Policy) -> Judgement:
    request = request_of(plan)
    directives = request.find("time", "time-min")
    limit = request.time_limit if plan.resources.time_limit_seconds is None else plan.resources.time_limit_seconds
    if limit is None:
        line = _line(policy.defaults.time_limit)
        return uncountable("Time limit", format_duration(policy.limits.time_limit.free), directives, line)
    value, show = (HUNDRED_YEARS, _endless) if limit == UNLIMITED else (limit, format_duration)
    measure = Measure("Time limit", value, policy.limits.time_limit, directives, _line, show, _WHY_SHORT)
    return judge_measure(measure, plan, policy)


def _line(seconds: int) -> str:
    return f"#SBATCH --time={format_duration(seconds)}"


def _endless(seconds: int) -> str:
    return format_duration(UNLIMITED if seconds == HUNDRED_YEARS else seconds)


TIME_LIMIT = Rule(
    id="time-limit",
    what="A time limit is free up to a length, needs a written reason above it, and a person beyond a second one.",
    why=_WHY_SHORT,
    levels=("justify", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge_time,
    passing=(
        Example("one day", ("#SBATCH --time=24:00:00",), "pass"),
        Example(
            "two days with a reason", ("#SBATCH --time=2-00:00:00  # JUSTIFIED: 40 epochs at 65 minutes each",), "pass"
        ),
    ),
    failing=(
        Example("two days without a reason", ("#SBATCH --time=2-00:00:00",), "justify"),
        Example("seven days", ("#SBATCH --time=7-00",), "approve"),
        Example("no limit at all", ("#SBATCH --time=UNLIMITED",), "approve"),
        Example("a time that nobody stated", ("python train.py",), "deny", counted=False),
    ),
)


# --- budget: hours, pending jobs, submissions a day, and the switch that stops them all -------------------------------

_WHY = "The group's share of the cluster is counted in hours."

_RENTED = "Rented machines are paid for, whatever comes of them."

_STOP = "Only a person can tell when the reason for that is gone."

_COUNT = "What cannot be counted is not submitted."

_STARTED = "Call get_status until one of your pending jobs has started, then submit again."

_CROWD = "A full queue delays everybody's next job."


def _judge_budget(plan: PlannedRequest, policy: Policy) -> Judgement:
    if policy.submissions == "off":
        return _switched_off(plan)
    told = []
    for verdict in (*_hours(plan, policy), *_price(plan, policy), *_counts(plan, policy)):
        if verdict.outcome != "pass":
            return verdict
        told.append(verdict.message)
    return passed(" ".join(told) or "This policy sets no budget.")


def _switched_off(plan: PlannedRequest) -> Judgement:
    if plan.tool != "submit_job":
        return passed("Submissions are switched off at the moment; this one submits nothing.")
    message = f"A person has switched all submissions off (`submissions: off` in the policy). {_STOP}"
    return Judgement("deny", message, "off", "on", "Ask a person to switch them on again, and wait for that.")


def _hours(plan: PlannedRequest, policy: Policy) -> Iterator[Judgement]:
    """GPU and CPU hours of this job alone, and together with those of the last 24 hours."""
    limits = policy.limits
    for unit, count, of_job, of_day in (
        ("GPU", plan.resources.gpus, limits.gpu_hours_per_job, limits.gpu_hours_per_day),
        ("CPU", plan.resources.cpus, limits.cpu_hours_per_job, limits.cpu_hours_per_day),
    ):
        if of_job is None and (of_day is None or plan.live is None):
            continue
        hours = _product(plan, count)
        if hours is None:
            yield _uncountable(plan, policy, unit, of_job or of_day)
            continue
        if of_job is not None:
            yield _within(plan, unit, hours, 0.0, of_job, "this job", _fits(plan, policy))
        if of_day is not None and plan.live is not None:
            span, before = "the last 24 hours with this job", _today(plan.live, unit)
            yield _within(plan, unit, hours, before, of_day, span, _fits(plan, policy))


def _price(plan: PlannedRequest, policy: Policy) -> Iterator[Judgement]:
    """What the job costs, where machines are rented for it. One that Slurm runs has no price."""
    limit, hourly = policy.limits.price_per_job, plan.hourly_price
    if limit is None or hourly is None:
        return
    hours = _product(plan, 1)
    if hours is None:
        message = f"The price of this job cannot be told, and {limit:g} US dollars are free. {_COUNT}"
        step = replace(request_of(plan).find("time"), f"#SBATCH --time={format_duration(policy.defaults.time_limit)}")
        yield Judgement("deny", message, "unknown", limit, step)
        return
    price = round(hourly * hours, 2)
    if price <= limit:
        yield passed(f"This job: at most {price:g} of {limit:g} US dollars.")
        return
    seconds = int((plan.resources.time_limit_seconds or 0) * limit / price // 60 * 60)
    step = replace(request_of(plan).find("time"), f"#SBATCH --time={format_duration(seconds)}") if seconds > 0 else ""
    message = f"{price:g} US dollars in this job, and beyond {limit:g} a person decides. {_RENTED}"
    yield Judgement("approve", message, price, limit, step or "Ask a person: no time limit is short enough.")


def _today(facts: LiveFacts, unit: str) -> float:
    return facts.gpu_hours_today if unit == "GPU" else facts.cpu_hours_today


def _product(plan: PlannedRequest, count: int | None) -> float | None:
    limit = plan.resources.time_limit_seconds
    if count == 0:
        return 0.0
    if count is None or limit is None or limit == UNLIMITED:
        return None
    array = request_of(plan).array
    return round(count * limit / 3600 * (array.count if array is not None else 1), 2)


def _fits(plan: PlannedRequest, policy: Policy) -> int:
    """The longest time limit, in whole minutes as seconds, with which this job keeps to every budget of hours."""
    limits, facts = policy.limits, plan.live
    array = request_of(plan).array
    tasks = array.count if array is not None else 1
    left = [(plan.resources.gpus, limits.gpu_hours_per_job), (plan.resources.cpus, limits.cpu_hours_per_job)]
    if facts is not None:
        for unit, count, of_day in (
            ("GPU", plan.resources.gpus, limits.gpu_hours_per_day),
            ("CPU", plan.resources.cpus, limits.cpu_hours_per_day),
        ):
            left += [(count, of_day - _today(facts, unit))] if of_day is not None else []
    seconds = [hours * 3600 / (count * tasks) for count, hours in left if count and hours is not None]
    return max(0, int(min([*seconds, policy.limits.time_limit.free]) // 60 * 60))


def _uncountable(plan: PlannedRequest, policy: Policy, unit: str, limit: float | None) -> Judgement:
    message = f"The {unit} hours of this job cannot be told, and {limit:g} are allowed without a person. {_COUNT}"
    request = request_of(plan)
    steps = [replace(request.find("time", "time-min"), f"#SBATCH --time={format_duration(policy.defaults.time_limit)}")]
    if unit == "GPU" and plan.resources.gpus is None:
        steps.append(replace(request.find(*GPU_OPTIONS), "#SBATCH --gpus=1"))
    if unit == "CPU" and plan.resources.cpus is None:
        found = request.find("ntasks", "cpus-per-task", "nodes", "exclusive")
        steps.append(replace(found, "#SBATCH --nodes=1", "#SBATCH --ntasks=1", "#SBATCH --cpus-per-task=1"))
    return Judgement("deny", message, "unknown", limit, "\n".join(steps), proof(request.find("time")))


def _within(
    plan: PlannedRequest, unit: str, hours: float, before: float, limit: float, span: str, fits: int
) -> Judgement:
    total = round(hours + before, 2)
    if total <= limit or hours == 0:
        return passed(f"{span[:1].upper()}{span[1:]}: {total:g} of {limit:g} {unit} hours.")
    endless = " One of the jobs before it has no time limit." if before * 3600 >= HUNDRED_YEARS else ""
    message = f"{total:g} {unit} hours in {span}, and beyond {limit:g} a person decides.{endless} {_WHY}"
    evidence = proof(request_of(plan).find("time", "array", "gpus", "ntasks", "cpus-per-task"))
    later = "Call get_status until less was asked for in the last 24 hours, then submit again."
    shorter = replace(request_of(plan).find("time", "time-min"), f"#SBATCH --time={format_duration(fits)}")
    if fits:
        remedy = ways(shorter, ("wait", later)) if before and hours <= limit else shorter
    else:
        remedy = later if before and hours <= limit else "Ask a person: no time limit is short enough."
    return Judgement("approve", message, total, limit, remedy, evidence)


def _counts(plan: PlannedRequest, policy: Policy) -> Iterator[Judgement]:
    """Limits on what waits and on how often something is submitted; they need the moment's facts."""
    if plan.tool != "submit_job" or plan.live is None:
        return
    most, pending = policy.limits.max_pending_jobs, plan.live.pending_after
    if most is not None and pending is None:
        message = f"The pending jobs could not be counted, and at most {most} are allowed. {_CROWD}"
        yield Judgement("deny", message, "unknown", most, "Call get_status, then submit again.")
    elif most is not None and pending is not None and pending > most:
        message = f"{how_many(pending, 'pending job')} with this one, at most {most} are allowed. {_CROWD}"
        yield Judgement("deny", message, pending, most, _STARTED)
    elif most is not None:
        yield passed(f"{pending} of {most} pending jobs.")
    daily, sent = policy.limits.max_daily_submissions, plan.live.submissions_today
    if daily is not None and sent >= daily:
        jobs = f"{how_many(sent, 'job')} {'was' if sent == 1 else 'were'} submitted"
        message = f"{jobs} in the last 24 hours, at most {daily} are allowed. {_CROWD}"
        remedy = "Call get_status until the oldest of them is 24 hours old, then submit again."
        yield Judgement("deny", message, sent, daily, remedy)
    elif daily is not None:
        yield passed(f"{sent + 1} of {daily} submissions in 24 hours.")


BUDGET = Rule(
    id="budget",
    what=(
        "Optional limits: GPU hours and CPU hours of one job and of a day, the price of a job on rented machines "
        "(beyond them a person decides), pending jobs, submissions a day. `submissions: off` stops them all."
    ),
    why=_WHY,
    levels=("approve", "deny"),
    tools=SCRIPTS,
    judge=_judge_budget,
    passing=(
        Example("8 GPU hours, budget 100", ("#SBATCH --gpus=4",), "pass", limits={"gpu_hours_per_job": 100.0}),
        Example(
            "8 GPU hours after 80, budget of the day 100",
            ("#SBATCH --gpus=4",),
            "pass",
            facts={"gpu_hours_today": 80.0},
            limits={"gpu_hours_per_day": 100.0},
        ),
    ),
    failing=(
        Example(
            "288 GPU hours, budget 100",
            ("#SBATCH --gpus=4", "#SBATCH --time=3-00:00:00"),
            "approve",
            limits={"gpu_hours_per_job": 100.0},
        ),
        Example(
            "8 GPU hours after 96, budget of the day 100",
            ("#SBATCH --gpus=4",),
            "approve",
            facts={"gpu_hours_today": 96.0},
            limits={"gpu_hours_per_day": 100.0},
        ),
        Example(
            "a rented machine for 30 US dollars, budget 20",
            ("#SBATCH --gpus=4", "#SBATCH --time=03:00:00"),
            "approve",
            call={"hourly_price": 10.0},
            limits={"price_per_job": 20.0},
        ),
        Example(
            "a rented machine without an end, budget 20",
            ("#SBATCH --gpus=4", "#SBATCH --time=UNLIMITED"),
            "deny",
            call={"hourly_price": 10.0},
            limits={"price_per_job": 20.0},
        ),
        Example(
            "a third pending job, two allowed",
            ("#SBATCH --gpus=1",),
            "deny",
            facts={"active_jobs": 2, "pending_after": 3},
            limits={"max_pending_jobs": 2},
        ),
        Example(
            "the eleventh submission of a day, ten allowed",
            ("#SBATCH --gpus=1",),
            "deny",
            facts={"submissions_today": 10},
            limits={"max_daily_submissions": 10},
        ),
        Example(
            "no pending job can be counted", ("#SBATCH --gpus=1",), "deny", facts={}, limits={"max_pending_jobs": 2}
        ),
        Example(
            "a job without an end, budget 100",
            ("#SBATCH --gpus=1", "#SBATCH --time=UNLIMITED"),
            "deny",
            limits={"gpu_hours_per_job": 100.0},
        ),
        Example("submissions are switched off", ("python train.py",), "deny", fields={"submissions": "off"}),
    ),
)
