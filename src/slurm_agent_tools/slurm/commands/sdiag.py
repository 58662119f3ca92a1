"""sdiag: how busy the controller is by its own word. Any user may ask; it costs the controller next to nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.transport.base import Completed

_THREADS = 100  # of the 256 that serve requests (MAX_SERVER_THREADS of slurmctld)

_QUEUE = 500

_CYCLE = 5.0


@dataclass(frozen=True, slots=True)
class ControllerStatistics:
    """Requests under way, messages to nodes that wait, and the mean time of the main scheduler's cycle in seconds."""

    threads: int
    agent_queue: int
    mean_cycle: float | None  # None before the first cycle

    @property
    def busy(self) -> bool:
        """True where the controller has more to do than it gets done."""
        return self.threads >= _THREADS or self.agent_queue >= _QUEUE or (self.mean_cycle or 0) >= _CYCLE


def argv() -> list[str]:
    """The controller's figures."""
    return ["sdiag"]


def parse(done: Completed) -> ControllerStatistics:
    """Raises SlurmUnreachable and SlurmGarbled."""
    columns.check(done)
    text = columns.text(done.stdout)
    threads, queue = _figure(text, "Server thread count"), _figure(text, "Agent queue size")
    if threads is None or queue is None:
        raise columns.garbled(done, text[:300])
    cycle = _figure(text.partition("Backfilling stats")[0], "Mean cycle")
    return ControllerStatistics(threads, queue, None if cycle is None else cycle / 1e6)


def _figure(text: str, name: str) -> int | None:
    found = re.search(rf"^\s*{name}:\s*(\d+)\s*$", text, re.MULTILINE)
    return None if found is None else int(found[1])
