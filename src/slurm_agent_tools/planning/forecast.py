"""Waits by the state of the queue too, with LightGBM (the extra `forecast`); what is learned from is in memory alone.

The model is told all that `predict_wait` knows and says, the job's place in its own burst, and whatever figures of the
queue the questions carry. Two models are fitted on the logarithm of seconds, one to the mean and one to the median, and
what lies between them counts: each errs in its own way. Intervals are corrected as all are.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from slurm_agent_tools.planning.calibration import MOST_KEPT, Correction, Quantiles, too_few
from slurm_agent_tools.planning.predict_wait import DAY, WaitPrediction, WaitPredictor, WaitQuestion

LEAST = 500
"""Waits that had ended, below which nothing is fitted."""

MOST = 200_000
"""Waits that a fit rests on at most: the last ones."""

_ROUNDS = 150

_OBJECTIVES = ("regression", "regression_l1")  # the mean, the median

_FITTED: Mapping[str, Any] = {
    "learning_rate": 0.08, "num_leaves": 63, "min_data_in_leaf": 30, "max_bin": 127, "feature_fraction": 0.6,
    "bagging_fraction": 0.7, "bagging_freq": 1, "seed": 1, "deterministic": True, "num_threads": 1, "verbose": -1,
}  # fmt: skip


def available() -> bool:
    """Whether the extra is installed."""
    return importlib.util.find_spec("lightgbm") is not None


@dataclass(frozen=True, slots=True)
class PastQuestion:
    """A question whose wait has ended: what `predict_wait` said of it, the usual waits then, and what it waited."""

    job: WaitQuestion
    said: WaitPrediction
    usual: tuple[float | None, ...]
    waited: float


class WaitForecast:
    """Models of the waits so far. Fitted again from time to time, at most once a day is enough."""

    def __init__(self) -> None:
        self._models: list[Any] = []
        self._figures: tuple[str, ...] = ()
        self._partitions: dict[str, int] = {}

    @property
    def fitted(self) -> bool:
        """Whether there were waits enough."""
        return bool(self._models)

    def fit(self, past: Sequence[PastQuestion], now: float) -> None:
        """Learn from waits that have ended by `now`; with fewer than LEAST nothing changes."""
        import lightgbm  # noqa: PLC0415 - an optional extra of 183 MB
        import numpy as np  # noqa: PLC0415 - comes with it

        known = [one for one in past if one.job.asked + one.waited <= now][-MOST:]
        if len(known) < LEAST:
            return
        self._figures = tuple(sorted({name for one in known for name in one.job.queue}))
        self._partitions = {name: code for code, name in enumerate(sorted({one.job.partition for one in known}))}
        rows = np.array([self._row(one.job, one.said, one.usual) for one in known], dtype=np.float32)
        waits = np.array([_log(one.waited) for one in known])
        self._models = [
            lightgbm.train({**_FITTED, "objective": one}, lightgbm.Dataset(rows, waits), num_boost_round=_ROUNDS)
            for one in _OBJECTIVES
        ]

    def expected(self, asked: Sequence[tuple[WaitQuestion, WaitPrediction, tuple[float | None, ...]]]) -> list[float]:
        """Seconds of each question, with what `predict_wait` says of it and the usual waits."""
        import numpy as np  # noqa: PLC0415 - comes with the extra

        rows = np.array([self._row(*one) for one in asked], dtype=np.float32)
        logs = sum(model.predict(rows, num_threads=1) for model in self._models) / len(self._models)
        return [math.exp(float(one)) for one in logs]

    def _row(self, job: WaitQuestion, said: WaitPrediction, usual: tuple[float | None, ...]) -> list[float]:
        """All that is known of one question; NaN is not known."""
        raw = said.raw
        quantiles = (None, None, None) if raw is None else (raw.low, raw.median, raw.high)
        counts = (job.processors, job.own_ahead, job.alike_ahead, job.own_waiting, job.alike_waiting)
        seconds = (job.limit, job.waited, job.slurm, said.expected, *quantiles, *usual)
        return [
            *(math.log1p(one) for one in counts),
            *(math.nan if one is None else _log(one) for one in seconds),
            math.nan if job.memory is None else math.log1p(job.memory),
            (job.alike_ahead + 1) / max(job.alike_waiting, 1),
            float(self._partitions.get(job.partition, -1)),
            *(_figure(job.queue.get(name, math.nan)) for name in self._figures),
        ]


def _log(seconds: float) -> float:
    return math.log(max(seconds, 1.0))


def _figure(value: float) -> float:
    """Any figure on a scale on which large ones do not drown small ones."""
    return math.copysign(math.log1p(abs(value) * 1e6), value)


def forecasts_in_order(
    asked: Iterable[tuple[WaitQuestion, float]], every: float = DAY
) -> Iterator[tuple[WaitQuestion, float, WaitPrediction]]:
    """As `waits_in_order`, by the models where there are waits enough; fitted again after `every` seconds.

    Only waits that had ended before a question are known to its answer.
    """
    core, forecast = WaitPredictor(), WaitForecast()
    correction = Correction(MOST_KEPT)  # hardly two questions get the same answer here
    past: list[PastQuestion] = []
    waiting: list[tuple[PastQuestion, WaitPrediction]] = []
    due = -math.inf
    for now, look in groupby(asked, key=lambda one: one[0].asked):
        ended = [one for one in waiting if one[0].job.asked + one[0].waited <= now]
        waiting = [one for one in waiting if one[0].job.asked + one[0].waited > now]
        for one, answer in sorted(ended, key=lambda pair: pair[0].job.asked + pair[0].waited):
            core.observe(one.job, one.waited, one.said)
            past.append(one)
            if answer.raw is not None and answer is not one.said:
                correction.observe((one.job.account, one.job.partition), answer.raw, one.waited)
        if now >= due:
            forecast.fit(past, now)
            due = now + every
        listed = [(job, waited, core.estimate(job), core.usual(job)) for job, waited in look]
        answers = [said for _, _, said, _ in listed]
        if forecast.fitted:
            seconds = forecast.expected([(job, said, usual) for job, _, said, usual in listed])
            answers = [_answer(said, one, correction) for said, one in zip(answers, seconds, strict=True)]
        for (job, waited, said, usual), answer in zip(listed, answers, strict=True):
            yield job, waited, answer
            waiting.append((PastQuestion(job, said, usual, waited), answer))


def _answer(said: WaitPrediction, expected: float, correction: Correction) -> WaitPrediction:
    """The same with what the models expect, and with an interval by how far they were off."""
    raw = Quantiles(expected, expected, expected)
    shown, answers = correction.corrected(raw), correction.answers
    return replace(
        said,
        expected=expected,
        low=None if shown is None else shown.low,
        median=None if shown is None else shown.median,
        high=None if shown is None else shown.high,
        answers=answers,
        reason="" if shown is not None else too_few(answers),
        raw=raw,
    )
