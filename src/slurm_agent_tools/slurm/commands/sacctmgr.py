"""sacctmgr: reservations that were, nodes that were down or drained, and who may submit under which account."""

from __future__ import annotations

from slurm_agent_tools.models.accounted import Association, NodeSpan
from slurm_agent_tools.slurm import node_list
from slurm_agent_tools.slurm.commands import columns, sacct
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.units import parse_time

_RESERVATIONS = "Start,End,Flags,NodeNames,Name"  # the name last: an administrator may write any sign in it

_EVENTS = "TimeStart,TimeEnd,State,NodeName"

_GONE = ("DOWN", "DRAIN", "FAIL", "INVAL", "MAINT", "POWERED_DOWN", "REBOOT", "UNKNOWN")


def reservations_argv(hours: int) -> list[str]:
    """Reservations of the last hours, those that are over included."""
    return _argv("reservations", hours, _RESERVATIONS)


def events_argv(hours: int) -> list[str]:
    """What happened to nodes in the last hours."""
    return _argv("events", hours, _EVENTS)


def _argv(what: str, hours: int, wanted: str) -> list[str]:
    return ["sacctmgr", "--noheader", "--parsable2", "show", what, f"start=now-{hours}hours", f"format={wanted}"]


def parse_reservations(done: Completed, now: float) -> tuple[NodeSpan, ...]:
    """One record each; those without nodes are left out. Raises AccountingUnreachable and SlurmGarbled."""
    found = []
    for start, end, flags, nodes, name in _rows(done, 5):
        span = _span(done, name, nodes, (start, end), now)
        if span is not None:
            maintenance = "MAINT" in flags.upper().split(",")
            found.append(NodeSpan(span.name, span.nodes, span.start, span.end, maintenance))
    return tuple(found)


def parse_events(done: Completed, now: float) -> tuple[NodeSpan, ...]:
    """Times in which a node ran nothing new. Raises AccountingUnreachable and SlurmGarbled."""
    found = []
    for start, end, state, node in _rows(done, 4):
        gone = any(word in state.upper() for word in _GONE)
        span = _span(done, state, node, (start, end), now) if gone else None
        if span is not None:
            found.append(span)
    return tuple(found)


def associations_argv(user: str, cluster: str) -> list[str]:
    """The accounts of one user on one cluster."""
    whose = [f"user={user}", f"cluster={cluster}", "format=Account,Partition,QOS"]
    return ["sacctmgr", "--noheader", "--parsable2", "show", "associations", *whose]


def parse_associations(done: Completed) -> tuple[Association, ...]:
    """One record each. Raises AccountingUnreachable and SlurmGarbled."""
    return tuple(
        Association(account, frozenset(filter(None, qos.split(","))), partition or None)
        for account, partition, qos in _rows(done, 3)
    )


def all_associations_argv(cluster: str) -> list[str]:
    """The accounts of one cluster, and those of each user."""
    whose = [f"cluster={cluster}", "format=Account,Partition,User,ParentName,DefaultQOS,QOS"]
    return ["sacctmgr", "--noheader", "--parsable2", "show", "associations", *whose]


def parse_all_associations(done: Completed) -> tuple[Association, ...]:
    """One record each. Raises AccountingUnreachable and SlurmGarbled."""
    return tuple(
        Association(account, frozenset(filter(None, qos.split(","))), partition or None, user, parent, default)
        for account, partition, user, parent, default, qos in _rows(done, 6)
    )


def coordinators_argv() -> list[str]:
    """Who may change an account, its users and their jobs."""
    return ["sacctmgr", "--noheader", "--parsable2", "show", "account", "withcoord", "format=Account,Coordinators"]


def parse_coordinators(done: Completed) -> dict[str, tuple[str, ...]]:
    """Users by their accounts, of which some have none. Raises AccountingUnreachable and SlurmGarbled."""
    return {account: tuple(filter(None, users.split(","))) for account, users in _rows(done, 2)}


def _rows(done: Completed, width: int) -> list[list[str]]:
    """Cells of each row; whatever the last one holds is one cell."""
    sacct.check(done)
    if done.truncated:
        raise columns.garbled(done, "the answer is longer than can be read")
    rows = [line.split("|", width - 1) for line in columns.text(done.stdout).split("\n") if line]
    for row in rows:
        if len(row) != width:
            raise columns.garbled(done, "|".join(row))
    return rows


def _span(done: Completed, name: str, nodes: str, times: tuple[str, str], now: float) -> NodeSpan | None:
    """None for one without nodes or a beginning: a change of the cluster as a whole."""
    try:
        start, end, names = *map(parse_time, times), node_list.expand(nodes) if nodes else frozenset[str]()
    except ValueError as error:
        raise columns.garbled(done, f"{nodes}|{times} ({error})") from error
    if start is None or not names:
        return None
    return NodeSpan(name, names, start.timestamp(), now if end is None else end.timestamp())
