"""What is planned and on what: one kind of job, and a pool. Times in seconds, memory in bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """One kind of job, `count` times. Times in seconds from now; all that it asks for is held while it runs (a gang).

    `after`: names of jobs of which every copy has ended before. `share`: the part of one GPU that it takes, instead of
    `gpus`. `priority`: its weight in means. `running`: it starts at 0. `restart`: seconds lost, None: no checkpoints.
    `numbers`: of an array's tasks, where they are not 0 to `count` - 1. `sent`: ids, joined by a colon, of the jobs in
    which it runs or waits in the queue already. `slices_done`: of a job in slices those before it.
    """

    name: str
    seconds: float
    gpus: int = 0
    cpus: int = 0
    memory_bytes: int = 0
    count: int = 1
    after: tuple[str, ...] = ()
    deadline: float | None = None
    priority: float = 1.0
    share: float | None = None
    running: bool = False
    restart: float | None = None
    numbers: tuple[int, ...] = ()
    sent: str | None = None
    slices_done: int = 0

    @property
    def array(self) -> bool:
        """Whether it is submitted as an array."""
        return self.count > 1 or bool(self.numbers)

    @property
    def tasks(self) -> Sequence[int]:
        """The numbers of its copies, in their order."""
        return self.numbers or range(self.count)


@dataclass(frozen=True, slots=True)
class JobPool:
    """What jobs may hold at once; None: not limited. `jobs`: how many may run at once. Prices are of one hour."""

    name: str = "pool"
    gpus: int | None = None
    cpus: int | None = None
    memory_bytes: int | None = None
    jobs: int | None = None
    gpu_hour: float = 0.0
    cpu_hour: float = 0.0
