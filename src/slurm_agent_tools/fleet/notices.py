"""Which alerts are due to whom: each once to each target, over quiet hours, failures and restarts. Pure.

An alert is known by its code, its severity and its job. It is told anew once it was away for an hour, or became graver.
What could not be sent is sent later, also when it is over by then. Times are seconds since 1970.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import time
from typing import Any

from slurm_agent_tools.models.shapes import Alert
from slurm_agent_tools.text import sanitize

AWAY, KEPT = 3600.0, 24 * 3600.0
"""An alert is forgotten when it was not seen for so long: one that all were told of, and any."""

REMEMBERED = 1000
"""Alerts in the book, the gravest before others: the file of a book that is too large would be read by nobody."""

MOST, LONGEST = 20, 400
"""Alerts in one message, and signs of each."""

_FIRST, _LAST = 60.0, 3600.0
"""Seconds until a target that failed is tried again: at first, and at most."""

_ORDER = ("critical", "high", "medium")

_FORMAT = 1

_SPELLED = str.maketrans({"@": "(at)", "<": "(", ">": ")"})


@dataclass(frozen=True, slots=True)
class Notice:
    """One alert. `sent`: the targets that were told, by their ids."""

    severity: str
    text: str
    first: float
    last: float
    sent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetFailure:
    """How often a target failed in a row, and when it is tried again."""

    times: int
    again: float


@dataclass(frozen=True, slots=True)
class NoticeMessage:
    """What a target is sent."""

    title: str
    text: str


@dataclass(slots=True)
class NoticeBook:
    """What is remembered of alerts by their keys, and of targets by their ids."""

    notices: dict[str, Notice] = field(default_factory=dict)
    failing: dict[str, TargetFailure] = field(default_factory=dict)

    @classmethod
    def read(cls, told: Any) -> NoticeBook:
        """What `document` wrote. Raises ValueError for anything else."""
        try:
            if told["format"] != _FORMAT:
                raise ValueError(f"format {told['format']!r} is not known")
            notices = {key: Notice(**{**one, "sent": tuple(one["sent"])}) for key, one in told["notices"].items()}
            return cls(notices, {key: TargetFailure(**one) for key, one in told["failing"].items()})
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError("it is no file of watch") from error

    def document(self) -> str:
        """As JSON."""
        notices = {key: asdict(one) for key, one in self.notices.items()}
        failing = {key: asdict(one) for key, one in self.failing.items()}
        return json.dumps({"format": _FORMAT, "notices": notices, "failing": failing})

    def see(self, alerts: Iterable[Alert], targets: Sequence[str], now: float, *, whole: bool = True) -> None:
        """Take in a look. `whole` False: something could not be looked at, so that nothing counts as away."""
        for alert in alerts:
            key = "\0".join((alert.code, alert.severity, alert.job_id or ""))
            text = sanitize.shown(sanitize.line(alert.message))[:LONGEST]
            known = self.notices.get(key)
            if known is None:
                self.notices[key] = Notice(alert.severity, text, now, now)
            else:
                self.notices[key] = Notice(known.severity, text, known.first, now, known.sent)
        if whole:
            for key, one in list(self.notices.items()):
                limit = AWAY if set(targets) <= set(one.sent) else KEPT
                if now - one.last > limit:
                    del self.notices[key]
        if len(self.notices) > REMEMBERED:
            ranked = sorted(self.notices.items(), key=lambda pair: _rank(pair[1], now))
            self.notices = dict(ranked[:REMEMBERED])

    def due(self, target: str, now: float, *, least: str, quiet: bool) -> dict[str, Notice]:
        """What a target is to be told now, the gravest first; nothing while it is not yet tried again."""
        failing = self.failing.get(target)
        if failing is not None and now < failing.again:
            return {}
        grave = _ORDER[: 1 if quiet else _ORDER.index(least) + 1]
        found = [(key, one) for key, one in self.notices.items() if target not in one.sent and one.severity in grave]
        return dict(sorted(found, key=lambda pair: (_ORDER.index(pair[1].severity), pair[1].first))[:MOST])

    def sent(self, target: str, keys: Iterable[str]) -> None:
        """A target took these."""
        self.failing.pop(target, None)
        for key in keys:
            one = self.notices[key]
            self.notices[key] = Notice(one.severity, one.text, one.first, one.last, (*one.sent, target))

    def failed(self, target: str, now: float) -> float:
        """A target took nothing: when it is tried again."""
        times = self.failing[target].times + 1 if target in self.failing else 1
        again = now + min(_LAST, _FIRST * float(2 ** min(times - 1, 10)))
        self.failing[target] = TargetFailure(times, again)
        return again


def is_quiet(hours: str | None, at: time) -> bool:
    """Whether a time of day lies in `22:00-07:00`, its end not included; without hours never."""
    if hours is None:
        return False
    begin, end = (time.fromisoformat(one) for one in hours.split("-"))
    return begin <= at < end if begin <= end else at >= begin or at < end


def message(notices: Mapping[str, Notice], cluster: str, now: float) -> NoticeMessage:
    """One message of all these."""
    worst = next(iter(notices.values())).severity
    number = "1 alert" if len(notices) == 1 else f"{len(notices)} alerts"
    lines = [f"{one.severity}: {_inert(one.text)}{_over(one, now)}" for one in notices.values()]
    return NoticeMessage(f"{_inert(cluster)}: {number}, {worst}", "\n".join(lines))


def _rank(one: Notice, now: float) -> tuple[int, bool, float]:
    """The gravest first, then those that are there now, then the oldest: so the same stay, and are told once."""
    return _ORDER.index(one.severity), one.last < now, one.first


def _inert(text: str) -> str:
    """A text without what chats act on: names of jobs could call everybody there, or hide where a link leads."""
    return text.translate(_SPELLED).replace("](", "] (")


def _over(one: Notice, now: float) -> str:
    """What was seen last some looks ago is told as such."""
    return "" if now - one.last <= _LAST / 2 else f" (not seen any more for {round((now - one.last) / 60)} minutes)"
