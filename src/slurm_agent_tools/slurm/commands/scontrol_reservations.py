"""scontrol show reservation: which nodes are kept for whom, and when."""

from __future__ import annotations

import re

from slurm_agent_tools.models.node import Reservation
from slurm_agent_tools.slurm import node_list
from slurm_agent_tools.slurm.commands import columns
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import parse_time

_NONE = "(null)"


def argv() -> list[str]:
    """Every reservation, one a line."""
    return ["scontrol", "show", "reservation", "--oneliner"]


def parse(done: Completed) -> tuple[Reservation, ...]:
    """One record each; those without a time are left out. Raises SlurmUnreachable and SlurmGarbled."""
    columns.check(done)
    lines = [line for line in columns.text(done.stdout).split("\n") if line.startswith("ReservationName=")]
    try:
        found = [_reservation(dict(reversed(re.findall(r"(\w+)=(\S*)", line)))) for line in lines]  # first ones count
    except (ValueError, KeyError) as error:
        raise columns.garbled(done, str(error)) from error
    return tuple(one for one in found if one is not None)


def _reservation(cell: dict[str, str]) -> Reservation | None:
    """One line; a comment, which may hold anything, stands behind the fields that are read."""
    start, end = parse_time(cell["StartTime"]), parse_time(cell["EndTime"])
    if start is None or end is None:
        return None
    return Reservation(
        name=cell["ReservationName"],
        start=start,
        end=end,
        nodes=frozenset() if cell["Nodes"] in {"", _NONE} else node_list.expand(cell["Nodes"]),
        partition=None if cell["PartitionName"] == _NONE else cell["PartitionName"],
        flags=frozenset(cell["Flags"].split(",")) - {""},
    )
