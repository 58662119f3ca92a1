"""What the optional extras are asked for, answered in memory: small, exact and slow. `make test-extras` has the real ones.

A solver that tries every start, models that expect the usual, a study that draws by chance: enough to see that what is
asked of each is meant, and what is made of its answers.
"""

from __future__ import annotations

import math
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from itertools import product
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest


def install(patch: pytest.MonkeyPatch, name: str, **parts: object) -> None:
    """A module of this name, for one test."""
    made = ModuleType(name)
    made.__spec__ = ModuleSpec(name, None)
    vars(made).update(parts)
    patch.setitem(sys.modules, name, made)


# --- OR-tools ---------------------------------------------------------------------------------------------------------


class Sum:
    """A sum of variables, each times a number."""

    def __init__(self, terms: dict[int, int], constant: int = 0) -> None:
        self.terms, self.constant = terms, constant

    def __add__(self, other: Any) -> Sum:
        other = other if isinstance(other, Sum) else Sum({}, other)
        keys = {*self.terms, *other.terms}
        terms = {key: self.terms.get(key, 0) + other.terms.get(key, 0) for key in keys}
        return Sum(terms, self.constant + other.constant)

    __radd__ = __add__

    def __mul__(self, factor: int) -> Sum:
        return Sum({key: value * factor for key, value in self.terms.items()}, self.constant * factor)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Sum:
        return self + (other * -1 if isinstance(other, Sum) else -other)

    def __ge__(self, other: Any) -> Rule:
        return Rule(self - other)

    def __le__(self, other: Any) -> Rule:
        return Rule((self - other) * -1)

    def negated(self) -> int:
        return next(iter(self.terms))

    def of(self, values: dict[int, int]) -> int:
        return self.constant + sum(factor * values[key] for key, factor in self.terms.items())


@dataclass
class Rule:
    """At least 0, or where the variable `unless` is 1 anything."""

    sum: Sum
    unless: int | None = None

    def only_enforce_if(self, unless: int) -> None:
        self.unless = unless


@dataclass
class Model:
    """The part of CP-SAT's model that is used."""

    most: list[int] = field(default_factory=list)
    hints: dict[int, int] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    largest: dict[int, list[Sum]] = field(default_factory=dict)
    held: list[tuple[list[tuple[Sum, int]], list[int], int]] = field(default_factory=list)
    goal: Sum = field(default_factory=lambda: Sum({}))

    def new_int_var(self, _low: int, high: int, _name: str) -> Sum:
        self.most.append(high)
        return Sum({len(self.most) - 1: 1})

    def new_bool_var(self, name: str) -> Sum:
        return self.new_int_var(0, 1, name)

    def new_fixed_size_interval_var(self, start: Sum, length: int, _name: str) -> tuple[Sum, int]:
        return start, length

    def add_hint(self, variable: Sum, value: int) -> None:
        self.hints[variable.negated()] = value

    def add_cumulative(self, spans: list[tuple[Sum, int]], held: list[int], capacity: int) -> None:
        self.held.append((spans, held, capacity))

    def add_max_equality(self, variable: Sum, values: list[Sum]) -> None:
        self.largest[variable.negated()] = values

    def add(self, rule: Rule) -> Rule:
        self.rules.append(rule)
        return rule

    def minimize(self, goal: Sum) -> None:
        self.goal = goal

    def completed(self, values: dict[int, int]) -> bool:
        """Give what is not a start the smallest value that holds; False where none does."""
        for key, sums in self.largest.items():
            values[key] = max(one.of(values) for one in sums)
        for rule in self.rules:
            lacking = -rule.sum.of(values)
            free = (
                rule.unless
                if rule.unless is not None
                else next((k for k in rule.sum.terms if k not in self.hints), None)
            )
            if lacking > 0 and (free is None or free in self.largest):
                return False
            if lacking > 0 and free is not None:
                values[free] = max(values[free], 1 if free == rule.unless else lacking)
        return all(values[key] <= most for key, most in enumerate(self.most)) and self.fits(values)

    def fits(self, values: dict[int, int]) -> bool:
        for spans, held, capacity in self.held:
            begins = [start.of(values) for start, _ in spans]
            for now in begins:
                running = zip(begins, spans, held, strict=True)
                if sum(much for begin, (_, length), much in running if begin <= now < begin + length) > capacity:
                    return False
        return True


class Solver:
    """Tries the hint first and then every start."""

    def __init__(self) -> None:
        self.parameters = SimpleNamespace()
        self.best_objective_bound = 0.0

    def solve(self, model: Model, printer: Any) -> str:
        best: float = math.inf
        ways = product(*(range(model.most[key] + 1) for key in model.hints))
        for starts in ([*model.hints.values()], *ways):
            values = dict.fromkeys(range(len(model.most)), 0) | dict(zip(model.hints, starts, strict=True))
            if model.completed(values) and model.goal.of(values) < best:
                best = model.goal.of(values)
                printer.value = lambda one, found=values: one.of(found)
                printer.on_solution_callback()
        self.best_objective_bound = best
        return "optimal"


def solver(patch: pytest.MonkeyPatch) -> None:
    """In the place of OR-tools."""
    cp_model = SimpleNamespace(
        CpModel=Model, CpSolver=Solver, CpSolverSolutionCallback=object, OPTIMAL="optimal", FEASIBLE="feasible"
    )
    install(patch, "ortools")
    install(patch, "ortools.sat")
    install(patch, "ortools.sat.python", cp_model=cp_model)


# --- LightGBM and NumPy -----------------------------------------------------------------------------------------------


class Column(list[Any]):
    """Numbers that are added one by one."""

    def __radd__(self, other: Any) -> Column:
        return (
            Column(other + one for one in self)
            if isinstance(other, int)
            else Column(map(sum, zip(self, other, strict=True)))
        )

    __add__ = __radd__

    def __truediv__(self, other: float) -> Column:
        return Column(one / other for one in self)


def boosting(patch: pytest.MonkeyPatch) -> list[Sequence[Sequence[float]]]:
    """In the place of LightGBM: it expects the usual of all. What it was fitted on is in the list that is returned."""
    fitted: list[Sequence[Sequence[float]]] = []

    def train(parameters: dict[str, Any], data: tuple[Any, Any], num_boost_round: int) -> Any:
        rows, waits = data
        fitted.append(rows)
        usual = statistics.fmean(waits) if parameters["objective"] == "regression" else statistics.median(waits)
        return SimpleNamespace(predict=lambda asked, **_: Column(usual for _ in asked))

    install(patch, "numpy", array=lambda rows, **_: Column(rows), float32=float)
    install(patch, "lightgbm", train=train, Dataset=lambda rows, waits: (rows, waits))
    return fitted


# --- Optuna -----------------------------------------------------------------------------------------------------------


@dataclass
class Ways:
    """A distribution: its kind, what it was made with, and how it draws."""

    kind: str
    made: tuple[object, ...]
    draw: Callable[[random.Random], object]


@dataclass
class Study:
    direction: str
    sampler: SimpleNamespace
    trials: list[SimpleNamespace] = field(default_factory=list)
    asked: int = 0

    def add_trials(self, trials: list[SimpleNamespace]) -> None:
        self.trials += trials

    def ask(self, ways: dict[str, Ways]) -> SimpleNamespace:
        self.asked += 1
        return SimpleNamespace(params={name: one.draw(self.sampler.chance) for name, one in ways.items()})


def studies(patch: pytest.MonkeyPatch) -> list[Study]:
    """In the place of Optuna; the studies that were made."""
    made: list[Study] = []

    def create_study(direction: str, sampler: SimpleNamespace) -> Study:
        made.append(Study(direction, sampler))
        return made[-1]

    def create_trial(params: object, distributions: object, value: float | None = None, state: str = "done") -> object:
        return SimpleNamespace(params=params, values=None if value is None else [value], state=state)

    def sampler(kind: str) -> Callable[..., SimpleNamespace]:
        return lambda seed, **more: SimpleNamespace(kind=kind, seed=seed, chance=random.Random(seed), **more)  # noqa: S311 - no secret

    def whole(low: int, high: int, *, log: bool) -> Ways:
        return Ways("whole", (low, high, log), lambda chance: chance.randint(low, high))

    def number(low: float, high: float, *, log: bool, step: float | None) -> Ways:
        return Ways("number", (low, high, log, step), lambda chance: chance.uniform(low, high))

    install(
        patch, "optuna",
        logging=SimpleNamespace(set_verbosity=lambda _: None, ERROR=40),
        create_study=create_study,
        trial=SimpleNamespace(create_trial=create_trial, TrialState=SimpleNamespace(FAIL="failed")),
        samplers=SimpleNamespace(RandomSampler=sampler("random"), CmaEsSampler=sampler("cmaes"), GPSampler=sampler("gp"), TPESampler=sampler("tpe")),
        distributions=SimpleNamespace(
            CategoricalDistribution=lambda values: Ways("choice", tuple(values), lambda chance: chance.choice(values)),
            IntDistribution=whole, FloatDistribution=number,
        ),
    )  # fmt: skip
    return made
