"""Where a job should run: seven questions in their order, and the first that matches answers. Pure.

1. A CPU job below half an hour runs on this machine. 2. A GPU job below an hour, or a configuration that was never
tried, goes to the cheapest partition that can run it, `testing` first. 3. Up to 8 hours: production, or rented where
that is urgent or production is busy, and a person sets the trade-off where none is given. 4. Up to 24 hours:
production. 5. Longer: a chain of jobs that restart; the long partition only where restarting is not possible. 6. From
50 jobs on: one array. 7. What would have been chosen cannot be used: the next best, which is written down.

The questions 3 and 4 are about GPU jobs; a CPU job that is too long for question 1 is answered as they are. A slow
queue is a sign of load: the long partition is never an answer to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from slurm_agent_tools.backends import places
from slurm_agent_tools.backends.places import HOUR, SHORTEST_SMOKE, BackendPlace, JobNeed
from slurm_agent_tools.units import format_duration

Question = Literal[1, 2, 3, 4, 5, 6, 7]

Stage = Literal["smoke", "pilot", "production"]

FAN_OUT = 50
"""Jobs: from here on they are one array, whatever each of them is."""

_FREE, _RENTED = "free of charge", "rented"

_TESTING_FIRST = {"testing": 0, "production": 1, "long": 2}


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another place, and why it is not the answer."""

    place: BackendPlace
    why_not: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer. `place` None: a person decides, or none fits. `links`: jobs of a chain. `fallback`: what is noted."""

    status: Literal["chosen", "ask_person", "none_fits"]
    question: Question
    need: JobNeed
    place: BackendPlace | None = None
    stage: Stage = "production"
    reasons: tuple[str, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    ask: str | None = None
    links: int = 1
    fallback: str | None = None


@dataclass(frozen=True, slots=True)
class _Found:
    """What one question finds among places: the best, or what to ask a person; and why others are not."""

    place: BackendPlace | None = None
    ask: str | None = None
    why: str = ""
    links: int = 1
    turned_down: tuple[Alternative, ...] = ()


def choose(need: JobNeed, known: Sequence[BackendPlace]) -> Choice:
    """The answer of the first question that matches.

    `need.run` is known unless a smoke run is wanted, or no place can run the job however short it is.
    """
    question, because = which_question(need)
    stage: Stage = "smoke" if question == 2 and need.new else "production"
    wanted = need.smoke() if stage == "smoke" else need
    suited, out = _parted(known, lambda place: places.misfit(place, wanted) or places.unsafe(place, wanted))
    usable, away = _parted(suited, lambda place: place.problem or None)
    found = _in_each_currency(wanted, usable, lambda some: _minded(question, wanted, some))
    choice = Choice(
        "chosen" if found.place else "ask_person" if found.ask else "none_fits",
        question, wanted, found.place, stage, ask=found.ask, links=found.links,
    )  # fmt: skip
    reachable = [replace(one, problem="") for one in suited]
    wished = _in_each_currency(wanted, reachable, lambda some: _answer(question, wanted, some))
    choice = _fallen_back(choice, wished, away)
    reasons = [f"{because[:1].upper()}{because[1:]}.", *_why(found, wanted)]
    reasons += [choice.fallback] if choice.fallback else []
    return replace(
        choice, reasons=tuple(reasons), alternatives=_others(choice, known, [*out, *away, *found.turned_down])
    )


def which_question(need: JobNeed) -> tuple[Question, str]:
    """The first that matches, and why."""
    seconds = need.run.median if need.run is not None else 0
    long = format_duration(seconds)
    known, what = need.run is not None, "a GPU job" if need.gpus else "a CPU job, too long for half an hour here,"
    table: list[tuple[bool, Question, str]] = [
        (need.jobs >= FAN_OUT and not need.new, 6, f"{need.jobs} independent jobs are one array"),
        (
            known and not need.gpus and seconds < HOUR // 2 and need.jobs < FAN_OUT,
            1,
            f"a CPU job of {long} is below half an hour: on this machine where it fits, else where it is cheapest",
        ),
        (need.new is True, 2, "this configuration was never tried: a smoke run of at most half an hour comes first"),
        (not known, 3, "how long it runs is not known"),
        (need.gpus > 0 and seconds < HOUR, 2, f"a GPU job of {long} is below an hour, and goes to the cheapest GPU"),
        (seconds <= 8 * HOUR, 3, f"{what} of {long}, up to 8 hours"),
        (seconds <= 24 * HOUR, 4, f"{what} of {long}, from 8 to 24 hours"),
    ]
    beyond: tuple[Question, str] = (5, f"a job of {long} is longer than a day")
    return next(((question, why) for matches, question, why in table if matches), beyond)


def _answer(question: Question, need: JobNeed, usable: Sequence[BackendPlace]) -> _Found:
    if question == 1:
        return _cheapest(need, usable, local_first=True)
    if question == 2:
        return _cheapest(need, usable)
    unpaid = [place for place in usable if not place.costs_money]
    rented = [place for place in usable if place.costs_money]
    found = _on_a_cluster(need, unpaid)
    if found.ask is not None or (question == 5 and found.place is not None):
        return found
    if question == 5:
        paid = _on_a_cluster(need, rented)
        return replace(paid, turned_down=found.turned_down + paid.turned_down)
    return _or_rented(question, need, found, _soonest(need, rented))


# --- questions 1 and 2: the cheapest ----------------------------------------------------------------------------------


def _cheapest(need: JobNeed, usable: Sequence[BackendPlace], *, local_first: bool = False) -> _Found:
    """By price, then testing first, then what has no GPU that nobody needs, then what starts soonest."""
    smoke = need.run == need.smoke().run
    seconds = SHORTEST_SMOKE if smoke else need.run.most if need.run is not None else 0

    def order(place: BackendPlace) -> tuple[object, ...]:
        return (
            not place.local if local_first else False,
            places.price_order(place, need),
            _TESTING_FIRST[place.purpose],
            *_sooner(place, need),
        )

    fitting, short = _parted(usable, lambda place: _too_short(place, seconds))
    best = min(fitting, key=order, default=None)
    return _Found(best, why="" if best is None else _cheap(best, need), turned_down=tuple(short))


def _cheap(place: BackendPlace, need: JobNeed) -> str:
    money = places.cost(place, need)
    price = f"{places.said(money, place)} for it" if money or place.costs_money else "nothing to pay"
    purpose = " for testing" if place.purpose == "testing" else ""
    where = "this machine" if place.local else f"the cheapest partition{purpose} that can run it"
    return f"{place.name} is {where}: {price}"


# --- questions 3 to 6: production, in one job or a chain, or rented ---------------------------------------------------


def _on_a_cluster(need: JobNeed, usable: Sequence[BackendPlace]) -> _Found:
    """In production where it fits into one job; else a chain, or the long partition where it cannot restart."""
    seconds = need.run.most if need.run is not None else 0
    production = [place for place in usable if place.purpose == "production"]
    whole, short = _parted(production, lambda place: _too_short(place, seconds))
    if whole:
        return replace(_soonest(need, whole), turned_down=tuple(short))
    long, shorter = _parted(
        [place for place in usable if place.purpose == "long"], lambda one: _too_short(one, seconds)
    )
    short += shorter
    if production and need.restartable:
        best = min(production, key=lambda place: (places.links(place, need), *_sooner(place, need)))
        number = places.links(best, need)
        limit = format_duration(best.time_limit or 0)
        why = f"a chain of {number} jobs of at most {limit}, each going on from the checkpoint of the one before"
        return _Found(best, why=f"{best.name}: {why}", links=number)
    if need.restartable is False:
        best_long = min(long, key=lambda place: _sooner(place, need), default=None)
        why = (
            "" if best_long is None else f"{best_long.name}: it cannot restart, and no production partition is so long"
        )
        return _Found(best_long, why=why, turned_down=tuple(short))
    if production or long:
        return _Found(ask=_can_it_restart(need, production, long), turned_down=tuple(short))
    return _Found(turned_down=tuple(short))


def _can_it_restart(need: JobNeed, production: Sequence[BackendPlace], long: Sequence[BackendPlace]) -> str:
    seconds = format_duration(need.run.most if need.run is not None else 0)
    chains = [f"as a chain of {places.links(place, need)} jobs on {place.name}" for place in production[:1]]
    whole = [f"as one job on {place.name}" for place in long[:1]]
    ways = [*chains, *whole]
    asked = f"No production partition runs {seconds} in one job. Can this job go on from a checkpoint?"
    return f"{asked} It would run {' or, where it cannot, '.join(ways)}."


def _soonest(need: JobNeed, usable: Sequence[BackendPlace]) -> _Found:
    """What would be done first; of rented places that hold it, the cheapest."""
    seconds = need.run.most if need.run is not None else 0
    fitting, short = _parted(
        [place for place in usable if place.purpose == "production"], lambda place: _too_short(place, seconds)
    )

    def order(place: BackendPlace) -> tuple[object, ...]:
        return (places.price_order(place, need), *_sooner(place, need))

    best = min(fitting, key=order, default=None)
    why = "" if best is None else f"{best.name}: {places.state(best, need)}"
    return _Found(best, why=why, turned_down=tuple(short))


def _or_rented(question: Question, need: JobNeed, free: _Found, paid: _Found) -> _Found:
    """Whether to pay for an earlier start. Question 4 and 6 ask it only where it is urgent."""
    if free.place is None or paid.place is None:
        return replace(free if paid.place is None else paid, turned_down=free.turned_down + paid.turned_down)
    waits = places.busy(free.place, need)
    throttled = question == 6 and places.rounds(free.place, need) > 1
    crowded = waits is True or (need.urgent and (waits is None or throttled))
    if not crowded or not (need.urgent or question == 3):
        why = "it is free of charge, and not busy" if not crowded else "it is free of charge, and nothing is urgent"
        return replace(free, why=f"{free.why}; {why}")
    money = places.cost(paid.place, need)
    if money is not None and ((need.urgent and question == 3) or need.budget is not None):
        why = "it is urgent" if need.urgent else "the budget holds it, and production is busy"
        return replace(
            paid, why=f"{paid.why}; {why}, and {free.place.name} is not free: {places.state(free.place, need)}"
        )
    ask = (
        f"Run it {_FREE} on {free.place.name} ({places.state(free.place, need)}), or {_RENTED} on {paid.place.name} for"
        f" {places.said(money, paid.place)} ({places.state(paid.place, need)})?"
    )
    return _Found(ask=ask, turned_down=free.turned_down + paid.turned_down)


# --- budgets, currencies, and what cannot be used ---------------------------------------------------------------------


def _minded(question: Question, need: JobNeed, usable: Sequence[BackendPlace]) -> _Found:
    """The answer among places inside the budget, or the question whether to pass it."""
    inside, over = _parted(usable, lambda place: places.over_budget(place, need))
    found = _mind_budget(question, need, _answer(question, need, inside), usable, over)
    return replace(found, turned_down=(*over, *found.turned_down))


def _in_each_currency(
    need: JobNeed, usable: Sequence[BackendPlace], answer: Callable[[Sequence[BackendPlace]], _Found]
) -> _Found:
    """The answer, found with the prices of one currency at a time; a person decides where they differ."""
    paid = {place: places.currency(place, need) for place in usable}
    currencies = sorted({one for one in paid.values() if one is not None})
    if len(currencies) < 2:
        return answer(usable)
    free = answer([place for place in usable if paid[place] is None])
    each = [answer([place for place in usable if paid[place] in {None, one}]) for one in currencies]
    found = [one for one in each if (one.place, one.ask) != (free.place, free.ask)]
    if not found or (len(found) == 1 and need.budget is None):
        return (found or each)[0]
    ways = [one for one in (free, *found) if one.place is not None]
    said = [f"Prices in {' and '.join(currencies)} are not compared."]
    said += [] if need.budget is None else [f"The budget of {need.budget:g} names no currency."]
    said += [one.ask for one in found if one.ask is not None]
    said += (
        [f"Should it run {' or '.join(f'on {_priced(one.place, need)}' for one in ways if one.place)}?"] if ways else []
    )
    return _Found(ask=" ".join(said), turned_down=free.turned_down)


def _priced(place: BackendPlace, need: JobNeed) -> str:
    money = places.said(places.cost(place, need), place) if place.costs_money else _FREE
    return f"{place.name} ({money}; {places.state(place, need)})"


def _mind_budget(
    question: Question, need: JobNeed, found: _Found, usable: Sequence[BackendPlace], over: Sequence[Alternative]
) -> _Found:
    """A person decides where only a passed budget, or money instead of an allocation, would let it run."""
    if not over or (found.place is not None and not found.place.costs_money and not _urgent_and_busy(need, found)):
        return found
    wished = _answer(question, need, usable)
    if wished.place is None or (found.place is not None and wished.place == found.place):
        return found
    passed = next((one for one in over if one.place == wished.place), None)
    if passed is None:
        return found
    instead = f" Instead: {found.why}." if found.place is not None else ""
    return _Found(ask=f"{passed.place.name}: {passed.why_not}. Should it run there?{instead}")


def _urgent_and_busy(need: JobNeed, found: _Found) -> bool:
    return need.urgent and found.place is not None and places.busy(found.place, need) is True


def _fallen_back(choice: Choice, wished: _Found, away: Sequence[Alternative]) -> Choice:
    """Question 7: what would have been chosen cannot be used."""
    missed = _missed(choice, wished, away)
    if missed is None or choice.place is None:
        return choice
    note = (
        f"{missed.place.name} would have been chosen and cannot be used ({missed.why_not}), so"
        f" {choice.place.name} is taken, the next best."
    )
    return replace(choice, question=7, fallback=note)


def _missed(choice: Choice, wished: _Found, away: Sequence[Alternative]) -> Alternative | None:
    """The place that was wished for. Of those alike the usual cluster counts: of what is away no wait is known.

    Where several are alike and none is the usual one, nothing was missed.
    """
    by_place = {one.place.name: one for one in away}
    place = wished.place
    if place is None or choice.place is None or place.name not in by_place:
        alike = [one for one in away if choice.place is not None and _class(one.place) == _class(choice.place)]
        return next((one for one in alike if one.place.usual), None)
    better = _class(place) < _class(choice.place) or place.usual
    return by_place[place.name] if better else None


def _class(place: BackendPlace) -> tuple[object, ...]:
    return (not place.local, place.costs_money, _TESTING_FIRST[place.purpose])


# --- words ------------------------------------------------------------------------------------------------------------


def _sooner(place: BackendPlace, need: JobNeed) -> tuple[object, ...]:
    """What starts sooner first, then what holds no GPU for nothing; what is not known last."""
    seconds = places.wait(place, need)
    wasted = bool(place.gpus_per_node) and not need.gpus
    return (
        wasted, places.rounds(place, need), seconds is None, seconds or 0,
        place.can_be_ended and not need.restartable, not place.usual, place.name,
    )  # fmt: skip


def _why(found: _Found, need: JobNeed) -> list[str]:
    reasons = [f"{found.why}."] if found.why else []
    if need.run is not None:
        most = f", up to {format_duration(need.run.p95)} at 95 %" if need.run.p95 is not None else ""
        reasons.append(f"Expected run time {format_duration(need.run.median)}{most}: {need.run.source}.")
    if found.place is None:
        return reasons
    money = places.cost(found.place, need)
    if found.place.costs_money:
        left = "" if need.budget is None else f" of a budget of {places.said(need.budget, found.place)}"
        when = f", by prices of {found.place.priced_on}" if found.place.priced_on and money is not None else ""
        reasons.append(f"Cost {places.said(money, found.place)}{left}{when}.")
    if found.place.hours_left is not None:
        hours = places.gpu_hours(need) if need.gpus else places.cpu_hours(need)
        reasons.append(f"Free with the allocation: {hours:.1f} of {found.place.hours_left:.1f} hours that are left.")
    return [*reasons, *found.place.facts]


def _others(choice: Choice, known: Sequence[BackendPlace], told: Sequence[Alternative]) -> tuple[Alternative, ...]:
    """Every other place, each once, with the first reason that is known against it."""
    reasons = {one.place.name: one.why_not for one in reversed(told)}
    others = [place for place in known if choice.place is None or place.name != choice.place.name]
    return tuple(Alternative(place, reasons.get(place.name) or _second_best(choice, place)) for place in others)


def _second_best(choice: Choice, place: BackendPlace) -> str:
    need, chosen = choice.need, choice.place
    if chosen is None:
        return "a person decides" if choice.status == "ask_person" else "it was not compared"
    if place.costs_money and places.costs_more(place, chosen, need):
        return f"it costs {places.said(places.cost(place, need), place)}"
    if place.purpose == "long":
        return "it is kept for jobs that cannot restart; a slow queue is no reason for it"
    if place.purpose == "testing" and choice.question not in {1, 2}:
        return "it is for testing"
    if chosen.purpose == "testing" and place.purpose != "testing":
        return "testing comes first for what is short or new"
    return f"{chosen.name} comes before it: {places.state(place, need)} here"


def _too_short(place: BackendPlace, seconds: int) -> str | None:
    if places.holds(place, seconds):
        return None
    return f"its time limit of {format_duration(place.time_limit or 0)} is less than {format_duration(seconds)}"


_Against = Callable[[BackendPlace], str | None]


def _parted(known: Sequence[BackendPlace], against: _Against) -> tuple[list[BackendPlace], list[Alternative]]:
    """Those that nothing speaks against, and the others with what does."""
    good, bad = [], []
    for place in known:
        why = against(place)
        if why is None:
            good.append(place)
        else:
            bad.append(Alternative(place, why))
    return good, bad
