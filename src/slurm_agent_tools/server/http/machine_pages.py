"""What monitoring reads beside /mcp: `/metrics` in Prometheus' format, and the state of the cluster and guard as JSON.

All readers share the looks at Slurm that the tools make: however often these pages are asked for, Slurm is asked once
in `slurm.cache_seconds`, and not at all while nobody asks. To read them is no look as the rule status-first means it:
nothing is noted down of it.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import JSONResponse, Response

from slurm_agent_tools.api import brief, campaign_tools
from slurm_agent_tools.errors import AgentToolsError, StorageError
from slurm_agent_tools.fleet import fleet_metrics
from slurm_agent_tools.fleet.fleet_metrics import GuardCounts, MetricFamily
from slurm_agent_tools.models.toolset_arguments import FleetSection, GetFleet
from slurm_agent_tools.server.http.refusals import RequestRefused
from slurm_agent_tools.server.http.scope_check import ScopedToolbox
from slurm_agent_tools.services import fleet_look
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.answer_cache import SharedAnswer
from slurm_agent_tools.store import decision_log
from slurm_agent_tools.text import log_events
from slurm_agent_tools.transport.base import BOUNDS

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

Kind = TypeVar("Kind", str, tuple[str, str])

METRICS, STATUS, QUEUE, DAEMONS = "/metrics", "/status", "/queue/status", "/daemons/health"

MACHINE_PATHS = frozenset({METRICS, STATUS, QUEUE, DAEMONS})

_SECTIONS: dict[str, list[FleetSection]] = {
    STATUS: ["inventory", "free", "idle", "shares", "alerts"],
    QUEUE: ["waits"],
}

_JUDGED = frozenset({"decided", "refused", "synced"})
"""Events of the decision log that a decision begins with."""

_REMEMBERED, _KINDS, _LONGEST = 10_000, 500, 100
"""Decisions that are known again; kinds that are counted one by one, and signs of a name: a job can write the log."""

_log = log_events.get_logger()


class DecisionCounts:
    """Decisions since monitoring first asked, of all processes that write into this log."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.verdicts: Counter[str] = Counter()
        self.rules: Counter[tuple[str, str]] = Counter()
        self._file, self._place = _place(path)
        self._seen: deque[str] = deque(maxlen=_REMEMBERED)

    def read(self) -> None:
        """Take in the lines that were added. Raises StorageError."""
        file, size = _place(self.path)
        if file != self._file or size < self._place:  # a person began the log anew
            self._file, self._place = file, 0
        seen = set(self._seen)
        for line in decision_log.read(self.path, self._place):
            self._place = line.end
            entry = line.entry or {}
            decision = str(entry.get("decision"))
            if entry.get("event") in _JUDGED and decision not in seen:
                self._seen.append(decision)
                seen.add(decision)
                self._count(entry)

    def _count(self, entry: decision_log.Entry) -> None:
        _add(self.verdicts, str(entry.get("verdict"))[:_LONGEST], fleet_metrics.OTHER)
        rules = entry.get("rules")
        for rule in rules if isinstance(rules, list) else ():
            if isinstance(rule, dict):
                name = (str(rule.get("id"))[:_LONGEST], str(rule.get("outcome"))[:_LONGEST])
                _add(self.rules, name, (fleet_metrics.OTHER, fleet_metrics.OTHER))


def _add(counts: Counter[Kind], kind: Kind, other: Kind) -> None:
    counts[kind if kind in counts or len(counts) < _KINDS else other] += 1


def _place(path: Path) -> tuple[int, int]:
    """Which file it is, and its size; zeros where there is none."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_ino, found.st_size


class ClusterPages:
    """The pages of one cluster; looks are shared by all who ask."""

    def __init__(self, context: ClusterContext) -> None:
        self.context = context
        self._decisions = DecisionCounts(context.store.decisions)
        self._campaigns: campaign_tools.Statuses | None = {}
        self._families = SharedAnswer(context.clock, self._look)

    async def metrics(self) -> Response:
        """All families as text."""
        families = await self._families.get(self.context.slurm.age_limit)
        return Response(rendered(families), headers={"Cache-Control": "no-store"}, media_type=TEXT)

    async def _look(self) -> list[MetricFamily]:
        facts, errors = await fleet_look.look(self.context, set(fleet_metrics.SOURCES), GetFleet())
        try:
            await self.context.db(self._decisions.read)
            self._campaigns = await campaign_tools.statuses(self.context, self._campaigns or {})
        except StorageError as error:  # what is known of the cluster is told all the same
            _log.warning("the ledger is not in the metrics", why=error.message)
            self._campaigns = None
        times, every = self.context.slurm.times, self._campaigns
        guard = GuardCounts(
            self._decisions.verdicts,
            self._decisions.rules,
            None if every is None else Counter(status for _, status in every.values()),
            BOUNDS,
            dict(times.steps),
            dict(times.seconds),
        )
        return fleet_metrics.metrics(facts, errors.keys(), guard)

    async def sections(self, names: list[FleetSection]) -> dict[str, Any]:
        """The document of get_fleet with these sections in full."""
        ask = GetFleet(sections=names, detail="full")
        return brief.answer(await fleet_look.get_fleet(self.context, ask), ask)

    async def daemons(self, since: datetime) -> dict[str, Any]:
        """What answers: this server, its ledger, slurmctld and slurmdbd."""
        slurm = self.context.slurm
        found = {"ledger": await _tried(partial(self.context.db, self.context.store.probe))}
        found["slurmctld"] = await _tried(partial(slurm.partitions, max_age=slurm.age_limit))
        found["slurmdbd"] = await _tried(slurm.accounting.week)
        if slurm.accounting.absent:
            found["slurmdbd"] = "absent: this cluster keeps no accounting"
        good = all(text == "ok" or text.startswith("absent") for text in found.values())
        verdict = slurm.verdict
        return {
            "status": "ok" if good else "unavailable",
            "as_of": self.context.clock.now().isoformat(),
            "daemons": {"server": "ok", **found},
            "since": since.isoformat(),
            "controller": {"answers": verdict.kind, "asked_less_by": verdict.factor},
            "looks_age_seconds": slurm.ages,
        }


async def _tried(ask: Callable[[], Awaitable[object]]) -> str:
    try:
        await ask()
    except AgentToolsError as error:
        return error.message
    return "ok"


class MachinePages:
    """The pages of one server. `toolbox` has its clusters; a server of several shows the usual one, else the first."""

    def __init__(self, toolbox: ScopedToolbox) -> None:
        self._toolbox, self._known = toolbox, dict[str, ClusterPages]()
        self._since = datetime.now(UTC)

    async def answer(self, path: str, *, known: bool) -> Response:
        """One page. Raises RequestRefused with 503 where the cluster or the ledger cannot be looked at at all.

        What exactly is wrong is told to the `known` alone.
        """
        try:
            context = await self._toolbox.registry.home()
            pages = self._known.get(context.cluster) or ClusterPages(context)
            self._known[context.cluster], pages.context = pages, context  # with the policy as it is now
            if path == METRICS:
                return await pages.metrics()
            body = await (pages.daemons(self._since) if path == DAEMONS else pages.sections(_SECTIONS[path]))
        except AgentToolsError as error:
            told = error.message if known else "The cluster cannot be looked at"
            hint = error.hint if known and error.hint else "Call again in a minute, with a token to hear why."
            raise RequestRefused(503, error.code, told, hint) from error
        return JSONResponse(body, 503 if body["status"] == "unavailable" else 200, {"Cache-Control": "no-store"})


# --- Prometheus' text format ------------------------------------------------------------------------------------------


TEXT = "text/plain; version=0.0.4; charset=utf-8"


def rendered(families: Sequence[MetricFamily]) -> bytes:
    """The families in Prometheus' text format, whatever their labels hold."""
    import prometheus_client  # noqa: PLC0415 - a server that nobody scrapes does without it

    return prometheus_client.generate_latest(_Collected(families))


@dataclass(frozen=True, slots=True)
class _Collected:
    """What prometheus-client calls a collector."""

    families: Sequence[MetricFamily]

    def collect(self) -> Iterator[Metric]:
        """Each family as prometheus-client knows it."""
        return map(_metric, self.families)


def _metric(family: MetricFamily) -> Metric:
    from prometheus_client import core  # noqa: PLC0415 - as above

    names = sorted({name for one in family.samples for name in one.labels})
    if family.kind == "histogram":
        made = core.HistogramMetricFamily(family.name, family.told, labels=names)
        for one in family.samples:
            steps = [("+Inf" if isinf(bound) else str(bound), float(count)) for bound, count in one.steps]
            made.add_metric([one.labels[name] for name in names], steps, one.value)
        return made
    kind = core.CounterMetricFamily if family.kind == "counter" else core.GaugeMetricFamily
    plain = kind(family.name, family.told, labels=names)
    for one in family.samples:
        plain.add_metric([one.labels[name] for name in names], one.value)
    return plain
