"""What the caller's jobs cost: today, in seven days, by campaign and by result, and what runs will cost at most. Pure.

Hours are those that were held (allocated times elapsed), cut at the beginning of the day or week in UTC. A price of the
partition goes before that of the GPU's type; where one part has no price there is no sum, and `note` says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from slurm_agent_tools.diagnosis import completion
from slurm_agent_tools.diagnosis.phrases import flat, listed
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.insights.job_search import FAILURES
from slurm_agent_tools.insights.usage import GPUS, amount, ran, seconds
from slurm_agent_tools.models.fleet_answer import CostSection, NotMeasured, Spent
from slurm_agent_tools.models.job import Job, run_id_in
from slurm_agent_tools.settings import RateSettings

WEEK = timedelta(days=7)

_HOUR = 3600

_OTHER = "other"

_NO_GPUS = "this accounting does not count GPUs (AccountingStorageTRES)"


def section(facts: FleetFacts) -> CostSection:
    """What was spent, and a forecast."""
    parts = facts.ran or ()
    midnight = facts.now.replace(hour=0, minute=0, second=0, microsecond=0)
    week = within(parts, facts.now - WEEK, facts.now)
    campaigns: dict[str, list[Job]] = {}
    results: dict[str, list[Job]] = {}
    for part in week:
        name, path = campaign_of(part, facts), _result_of(part, facts)
        if name is not None:
            campaigns.setdefault(name, []).append(part)
        if path is not None:
            results.setdefault(path, []).append(part)
    made = CostSection(
        currency=facts.rates.currency,
        today=_spent(None, within(parts, midnight, facts.now), facts),
        week=_spent(None, week, facts),
        campaigns=_most(campaigns, facts),
        results=_most(results, facts),
        running_at_most=_at_most(facts),
        partition_gpu_hour={name: one for name, one in facts.partition_prices.items() if one is not None},
        gpu_hour=dict(facts.rates.gpu_hour),
        cpu_hour=facts.rates.cpu_hour,
    )
    return made if counts_gpus(facts) else _without_gpus(made)


def _without_gpus(made: CostSection) -> CostSection:
    """The same where GPU hours, and with them what they cost, are not known."""
    lists = {"campaigns": [*map(_blind, made.campaigns)], "results": [*map(_blind, made.results)]}
    return made.model_copy(update={"today": _blind(made.today), "week": _blind(made.week), **lists})


def _blind(spent: Spent) -> Spent:
    return spent.model_copy(update={"gpu_hours": None, "amount": None, "note": _NO_GPUS})


def by_tag(facts: FleetFacts) -> list[Spent]:
    """What was held in seven days by tag: partition, state, why it failed. A job counts under each of its tags."""
    groups: dict[str, list[Job]] = {}
    for part in within(facts.ran or (), facts.now - WEEK, facts.now):
        record = facts.runs.get(part.job_id.base)
        failed = "failed" if part.state in FAILURES else None
        told = (part.partition, part.state.lower(), failed, None if record is None else record.category)
        for tag in dict.fromkeys(name for name in told if name):
            groups.setdefault(flat(tag), []).append(part)
    made = _most(groups, facts)
    return made if counts_gpus(facts) else [*map(_blind, made)]


def sentence(made: CostSection) -> str:
    """Today and the week."""
    return f"You held {_words(made.today, made)} today, {_words(made.week, made)} in 7 days."


def _words(spent: Spent, made: CostSection) -> str:
    price = "" if spent.amount is None else f" ({spent.amount:g} {made.currency or ''})".replace(" )", ")")
    return f"{'an unknown number of' if spent.gpu_hours is None else format(spent.gpu_hours, 'g')} GPU hours{price}"


def unknown(facts: FleetFacts) -> list[NotMeasured]:
    """Why there is no price."""
    if not counts_gpus(facts):
        return [NotMeasured(what="GPU hours", why=_NO_GPUS)]
    foreign = [flat(name) for name, price in facts.partition_prices.items() if price is None]
    if foreign:
        why = "its page has it in another currency than the other prices"
        return [NotMeasured(what=f"price of partition {listed(foreign)}", why=why)]
    if facts.ran and not facts.partition_prices and facts.rates.cpu_hour is None and not facts.rates.gpu_hour:
        return [NotMeasured(what="prices", why="no rates are set (rates.gpu_hour, rates.cpu_hour, or a backend page)")]
    return []


def within(parts: Iterable[Job], start: datetime, end: datetime) -> list[Job]:
    """What of each part lies between two moments, as its elapsed time; suspended time is left out at the front."""
    found = []
    for part in ran_parts(parts):
        began, ended = part.started, part.ended or end
        if began is None or part.elapsed_seconds is None:
            continue
        cut = (min(ended, end) - max(began, start)).total_seconds()
        if cut > 0:
            found.append(replace(part, elapsed_seconds=min(part.elapsed_seconds, round(cut))))
    return found


def ran_parts(parts: Iterable[Job]) -> list[Job]:
    """Jobs and tasks that started; the row that stands for waiting tasks of an array has not."""
    return [part for one in parts for part in ran(one, ()) if part.job_id.tasks is None]


def gpu_hours(parts: Iterable[Job]) -> float | None:
    """GPU hours of all parts; None where one is not known."""
    known = [seconds(part, GPUS) for part in parts]
    return None if None in known else sum(value or 0.0 for value in known) / _HOUR


def campaign_of(part: Job, facts: FleetFacts) -> str | None:
    """The campaign of a job, by its run id `NAME/rROUND/tNUMBER`."""
    record = facts.runs.get(part.job_id.base)
    run_id = run_id_in(part.comment) or (record.run_id if record is not None else None)
    name, slash, _ = (run_id or "").partition("/")
    return flat(name) if slash and name else None


def _result_of(part: Job, facts: FleetFacts) -> str | None:
    record = facts.runs.get(part.job_id.base)
    return None if record is None else record.result_path


def _most(groups: dict[str, list[Job]], facts: FleetFacts) -> list[Spent]:
    made = [_spent(name, parts, facts) for name, parts in groups.items()]
    return sorted(made, key=lambda one: -(one.gpu_hours or 0.0))


def _ahead(facts: FleetFacts) -> list[Job]:
    """Running jobs with the time that their limit leaves them."""
    found = []
    for job in facts.mine:
        limit = job.resources.time_limit_seconds
        if job.state == "RUNNING" and job.started is not None and limit is not None and limit > 0:
            left = limit - (facts.now - job.started).total_seconds()
            found.append(replace(job, elapsed_seconds=max(0, round(left))))
    return found


def counts_gpus(facts: FleetFacts) -> bool:
    """False where a job that holds GPUs is in the accounting without any: AccountingStorageTRES leaves them out."""
    holding = {job.job_id for job in facts.mine if job.state == "RUNNING" and job.resources.gpus}
    told = [part for part in facts.ran or () if part.job_id in holding and part.allocated]
    return all(amount(part, GPUS) for part in told)


def _at_most(facts: FleetFacts) -> Spent:
    """What they will cost at most; not known where one has no limit, or not all were looked at."""
    running = [job for job in facts.mine if job.state == "RUNNING"]
    endless = sum((job.resources.time_limit_seconds or 0) <= 0 for job in running)
    gaps = [f"{endless} running jobs have no time limit"] if endless else []
    gaps += [f"{facts.mine_not_asked} more active jobs were not looked at"] if facts.mine_not_asked else []
    return Spent(note="; ".join(gaps)) if gaps else _spent(None, _ahead(facts), facts)


def _spent(what: str | None, parts: Sequence[Job], facts: FleetFacts) -> Spent:
    """Hours and price, partition by partition."""
    amounts: list[float | None] = []
    missing = beside = None
    for name in dict.fromkeys(part.partition for part in parts):
        here = [part for part in parts if part.partition == name]
        priced = completion.cost(here, _rates(name, facts.rates, facts))
        amounts.append(priced.amount)
        missing = missing or (priced.note if priced.amount is None else None)
        beside = beside or priced.note
    hours, cpus = gpu_hours(parts), [seconds(part, "cpu") for part in parts]
    return Spent(
        what=what,
        gpu_hours=None if hours is None else round(hours, 2),
        cpu_hours=None if None in cpus else round(sum(value or 0.0 for value in cpus) / _HOUR, 2),
        amount=None if None in amounts or not amounts else round(sum(value or 0.0 for value in amounts), 2),
        note=missing or beside,
    )


def _rates(partition: str | None, rates: RateSettings, facts: FleetFacts) -> RateSettings:
    """The rates with the price of a partition in place of those by type."""
    if partition is None or partition not in facts.partition_prices:
        return rates
    own = facts.partition_prices[partition]
    return rates.model_copy(update={"gpu_hour": {} if own is None else {_OTHER: own}})
