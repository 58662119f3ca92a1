"""What goes wrong on command: lost replies, silence, slowness, garbage, refusals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.slurm.fake.answering import Answer

_CONTROLLER = frozenset({"squeue", "scontrol", "sbatch", "scancel", "sinfo", "sdiag", "sstat"})

_TIMED_OUT = "Socket timed out on send/recv operation"

_DOWN = "Unable to contact slurm controller (connect failure)"

_HEADS = {
    "squeue": "slurm_load_jobs error: ", "scancel": "scancel: error: ", "sinfo": "slurm_load_partitions: ",
    "sbatch": "sbatch: error: Batch job submission failed: ", "sdiag": "slurm_get_statistics: ",
    "scontrol": "slurm_load_ctl_conf error: ", "sstat": "sstat: error: ",
}  # fmt: skip

ACCOUNTING_DOWN = Answer(
    err=(
        "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection to"
        " host:localhost:6819: Connection refused\n"
        "sacct: error: Sending PersistInit msg: Connection refused\n"
        "sacct: error: Problem talking to the database: Connection refused\n"
    ),
    code=1,
)


@dataclass(slots=True)
class Fault:
    """One thing that goes wrong. `carried_out`: the command does what it should before; `answer` None: it hangs."""

    command: str
    times: int | None = 1
    carried_out: bool = False
    answer: Answer | None = None
    before: Callable[[], None] | None = None
    error: Exception | None = None

    def meant(self, argv: Sequence[str]) -> bool:
        """Whether it is about this command: `sbatch`, or `scontrol release`."""
        words = self.command.split()
        return list(argv[: len(words)]) == words


@dataclass(slots=True)
class Faults:
    """What waits to go wrong, and what goes wrong until it is told to stop."""

    waiting: list[Fault] = field(default_factory=list)
    controller_down: bool = False
    accounting_down: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    per_second: int | None = None

    def add(self, fault: Fault) -> None:
        """Let it come."""
        self.waiting.append(fault)

    def take(self, argv: Sequence[str]) -> Fault | None:
        """The next fault that is about this command."""
        for fault in self.waiting:
            if fault.meant(argv):
                if fault.times is not None:
                    fault.times -= 1
                    if not fault.times:
                        self.waiting.remove(fault)
                return fault
        return None

    def standing(self, argv: Sequence[str]) -> Answer | None:
        """The answer while the controller or the accounting is away."""
        if argv[0] == "sacct" and self.accounting_down and "--helpformat" not in argv:
            return ACCOUNTING_DOWN
        if argv[0] in _CONTROLLER and self.controller_down and "--version" not in argv:
            return silent(argv[0], _DOWN)
        return None


def silent(command: str, words: str = _TIMED_OUT) -> Answer:
    """What a command prints that got no answer."""
    return Answer(err=f"{_HEADS.get(command, f'{command}: error: ')}{words}\n", code=1)
