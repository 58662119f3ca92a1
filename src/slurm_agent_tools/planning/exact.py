"""A better schedule by OR-tools' CP-SAT, beginning with the best list: a question, a process that answers, its answer.

The process prints each better schedule as it is found, so that one that is ended has told the best so far. OR-tools is
the optional extra `plan`; 188 MB that only this process loads.
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from slurm_agent_tools.planning.lists import worth
from slurm_agent_tools.planning.placing import Placement, serial
from slurm_agent_tools.planning.schedule import Objective, PlanProblem

MEMORY = 4 * 2**30
"""Bytes that the process may hold."""

WORKERS = 2

GRACE = 1.0
"""Seconds beyond those of the question after which the process is ended; what it has printed counts."""

_TICKS = 200_000
"""Steps into which the time of a schedule is divided, where seconds would be more."""

_MOST = 3000
"""Copies up to which a model is made."""

_UNLIMITED = 2**62


@dataclass(frozen=True, slots=True)
class Improvement:
    """The best schedule of the solver, where it is better; `bound`: seconds of the makespan that it proved."""

    placement: Placement | None
    bound: float | None = None


def available() -> bool:
    """Whether OR-tools is installed."""
    return importlib.util.find_spec("ortools") is not None


def question(problem: PlanProblem, best: Placement, objective: Objective, seconds: float) -> bytes | None:
    """What the process is asked: one JSON document. None where it is not for it: several pools, shares, too many."""
    if len(problem.pools) > 1 or problem.shared or problem.size > _MOST or seconds <= 0:
        return None
    step = max(1.0, sum(problem.seconds) / _TICKS)
    if any(value != int(value) for value in problem.seconds) and step == 1.0:
        step = min(1.0, max(problem.seconds) / 1000)
    ticks = tuple(float(math.ceil(value / step)) for value in problem.seconds)
    hint = serial(replace(problem, seconds=ticks), best.starts)
    kinds = problem.jobs
    document = {
        "seconds": seconds,
        "objective": objective,
        "owner": problem.owner,
        "ticks": [int(value) for value in ticks],
        "hint": [int(value) for value in hint.starts],
        "step": step,
        "demands": problem.demands,
        "capacity": problem.capacities[0],
        "needs": problem.needs,
        "weights": [max(1, round(100 * job.priority)) for job in kinds],
        "deadlines": [None if job.deadline is None else int(job.deadline / step) for job in kinds],
    }
    return json.dumps(document).encode()


def answer(problem: PlanProblem, best: Placement, objective: Objective, output: bytes) -> Improvement:
    """The best of what the process printed, placed again with the true times; a last line that was cut off is left."""
    bound: float | None = None
    starts: list[float] | None = None  # of the last one, as each is better than those before
    for line in output.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if "bound" in told:
            bound = float(told["bound"])
        elif len(told.get("starts", ())) == problem.size:
            starts = told["starts"]
    placement = None if starts is None else serial(problem, starts)
    if placement is None or worth(problem, placement, objective) >= worth(problem, best, objective):
        return Improvement(None, bound)
    return Improvement(placement, bound)


# --- the process ------------------------------------------------------------------------------------------------------


def main() -> None:
    """Answer the one question on standard input, in the seconds that it names."""
    begun = time.monotonic()
    asked = json.loads(sys.stdin.buffer.read())
    solve(asked, begun + asked["seconds"])


def solve(asked: Mapping[str, Any], until: float) -> None:
    """Print each better schedule as a line `{"starts": [...]}` in ticks, at last `{"bound": seconds}`."""
    from ortools.sat.python import cp_model  # noqa: PLC0415 - an optional extra of 188 MB

    model: Any = cp_model.CpModel()
    ticks, hint = asked["ticks"], asked["hint"]
    horizon = max(start + length for start, length in zip(hint, ticks, strict=True))
    latest = horizon if asked["objective"] == "makespan" else 2 * horizon
    starts = [model.new_int_var(0, latest - length, "") for length in ticks]
    for start, value in zip(starts, hint, strict=True):
        model.add_hint(start, value)
    _resources(model, asked, starts)
    _order(model, asked, starts)
    _objective(model, asked, starts, horizon)
    solver: Any = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(0.05, until - time.monotonic())
    solver.parameters.num_workers = WORKERS
    printer = type("_Printer", (cp_model.CpSolverSolutionCallback,), {"on_solution_callback": _told(starts)})()
    status = solver.solve(model, printer)
    if asked["objective"] == "makespan" and status in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
        # Times were rounded up, each by less than a step: of true times the bound holds for as many steps less.
        _print({"bound": max(0.0, (solver.best_objective_bound - len(ticks)) * asked["step"])})


def _print(body: Mapping[str, object]) -> None:
    sys.stdout.write(json.dumps(body) + "\n")
    sys.stdout.flush()


def _told(starts: Sequence[Any]) -> Any:
    """What the solver calls with each better schedule."""

    def on_solution_callback(self: Any) -> None:
        _print({"starts": [self.value(start) for start in starts]})

    return on_solution_callback


def _resources(model: Any, asked: Mapping[str, Any], starts: Sequence[Any]) -> None:
    """Never more than there is of anything."""
    spans = [
        model.new_fixed_size_interval_var(start, length, "")
        for start, length in zip(starts, asked["ticks"], strict=True)
    ]
    for what, capacity in enumerate(asked["capacity"]):
        held = [demand[what] for demand in asked["demands"]]
        if capacity < _UNLIMITED and any(held):
            model.add_cumulative(spans, held, capacity)


def _order(model: Any, asked: Mapping[str, Any], starts: Sequence[Any]) -> None:
    """Dependencies; copies of one kind in the order of their numbers, as they are all the same."""
    copies: list[list[int]] = [[] for _ in asked["needs"]]
    for index, kind in enumerate(asked["owner"]):
        copies[kind].append(index)
    for kind, needed in enumerate(asked["needs"]):
        for before in (index for one in needed for index in copies[one]):
            for index in copies[kind]:
                model.add(starts[index] >= starts[before] + asked["ticks"][before])
    same: dict[tuple[object, ...], int] = {}
    if asked["objective"] != "deadlines":
        for index, kind in enumerate(asked["owner"]):
            if index and asked["owner"][index - 1] == kind and asked["hint"][index - 1] <= asked["hint"][index]:
                same[kind, index] = index
    for index in same.values():
        model.add(starts[index - 1] <= starts[index])


def _objective(model: Any, asked: Mapping[str, Any], starts: Sequence[Any], horizon: int) -> None:
    ends = [start + length for start, length in zip(starts, asked["ticks"], strict=True)]
    if asked["objective"] == "makespan":
        last = model.new_int_var(0, horizon, "")
        model.add_max_equality(last, ends)
        model.minimize(last)
        return
    weights = [asked["weights"][kind] for kind in asked["owner"]]
    if asked["objective"] == "mean_completion":
        model.minimize(sum(weight * end for weight, end in zip(weights, ends, strict=True)))
        return
    lost = []
    for end, kind in zip(ends, asked["owner"], strict=True):
        due = asked["deadlines"][kind]
        if due is not None:
            late, beyond = model.new_bool_var(""), model.new_int_var(0, 2 * horizon, "")
            model.add(end <= due).only_enforce_if(late.negated())
            model.add(beyond >= end - due)
            lost.append(late * 4 * horizon + beyond)
    model.minimize(sum(lost))


if __name__ == "__main__":
    main()
