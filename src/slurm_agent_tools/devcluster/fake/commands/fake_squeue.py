"""squeue: rows of jobs in the form that was asked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.devcluster.fake.answering import (
    Answer,
    Session,
    UnknownCommand,
    elapsed,
    named_jobs,
    seconds,
    short_span,
)
from slurm_agent_tools.devcluster.fake.controller import Controller
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob
from slurm_agent_tools.devcluster.fake.placement import size_of

_SIGN = re.compile(r"%(\.?\d*)([A-Za-z])")

_DEFAULT = frozenset({"PENDING", "RUNNING", "SUSPENDED", "COMPLETING"})

_WORDS = {"PD": "PENDING", "R": "RUNNING", "S": "SUSPENDED", "CG": "COMPLETING", "CD": "COMPLETED"}


@dataclass(slots=True)
class _Asked:
    form: str = ""
    states: frozenset[str] = _DEFAULT
    ids: list[str] = field(default_factory=list)
    user: str | None = None
    start: bool = False
    by_id: bool = False


def run_squeue(session: Session, words: Sequence[str]) -> Answer:
    """squeue with --format (or -o) and the choices of jobs that the tools make."""
    slurm, asked = session.slurm, _options(session, words)
    jobs = slurm.known()
    if asked.ids:
        wanted = [named_jobs(slurm, one) for one in asked.ids]
        if len(wanted) == 1 and not wanted[0].found:
            return Answer(err="slurm_load_jobs error: Invalid job id specified\n", code=1)
        chosen = {job.number for one in wanted for job in (*one.jobs, *((one.rest,) if one.tasks and one.rest else ()))}
        jobs = [job for job in jobs if job.number in chosen]
    jobs = [job for job in jobs if not asked.states or job.state in asked.states]
    jobs = [job for job in jobs if asked.user in {None, job.user} and (not asked.start or job.state == "PENDING")]
    order = list(slurm.partitions)
    jobs.sort(key=lambda job: (order.index(job.partition.split(",")[0]), job.state, -job.priority, job.number))
    if asked.by_id:
        jobs.sort(key=lambda job: (job.array or job.number, job.task or 0))
    return Answer("".join(f"{_row(slurm, job, asked.form)}\n" for job in jobs))


def _options(session: Session, words: Sequence[str]) -> _Asked:
    asked, rest = _Asked(), list(words[1:])
    while rest:
        word = rest.pop(0)
        name, sign, value = word.partition("=")
        if word in {"--noheader", "-h"}:
            continue
        if word == "--sort=i":
            asked.by_id = True
            continue
        if word in {"--me", "--start"}:
            asked.user = session.user if word == "--me" else asked.user
            asked.start = asked.start or word == "--start"
        elif (name in _LONG and sign) or word in _LONG.values():
            _take(asked, _LONG.get(name, word), value if sign else rest.pop(0))
        else:
            raise UnknownCommand(words, word)
    if not asked.form:
        raise UnknownCommand(words, "squeue without --format")
    return asked


_LONG = {"--states": "-t", "--format": "-o", "--jobs": "-j", "--user": "-u"}


def _take(asked: _Asked, option: str, value: str) -> None:
    if option == "-t":
        asked.states = _states(value)
    elif option == "-o":
        asked.form = value
    elif option == "-j":
        asked.ids = value.split(",")
    else:
        asked.user = value


def _states(value: str) -> frozenset[str]:
    if value == "all":
        return frozenset()
    return frozenset(_WORDS.get(one.upper(), one.upper()) for one in value.split(","))


def _row(slurm: Controller, job: FakeJob, form: str) -> str:
    return _SIGN.sub(lambda sign: _cell(slurm, job, sign[2]), form)


def _cell(slurm: Controller, job: FakeJob, sign: str) -> str:
    if sign not in _CELLS:
        raise UnknownCommand(["squeue", "--format"], f"%{sign}")
    return _CELLS[sign](slurm, job)


def _start(slurm: Controller, job: FakeJob) -> str:
    if job.state != "PENDING":
        return seconds(job.start, "N/A")
    begin = job.begin if job.begin is not None and job.begin > slurm.now else None
    return seconds(begin or job.expected, "N/A")


def _end(slurm: Controller, job: FakeJob) -> str:
    if not job.active:
        return seconds(job.end, "N/A")
    begun = job.start if job.state != "PENDING" else None
    if begun is None:
        begun = job.begin if job.begin is not None and job.begin > slurm.now else job.expected
    return "N/A" if begun is None or job.time_limit < 0 else seconds(begun + job.time_limit, "N/A")


def _count(slurm: Controller, job: FakeJob, what: str) -> str:
    if job.shares:
        return str(len(job.shares) if what == "nodes" else sum(share.cpus for share in job.shares))
    part = slurm.partitions[job.partition.split(",")[0]]
    size = size_of(job.request, part, slurm.nodes, slurm.modern)
    return str(size.nodes if what == "nodes" else size.cpus)


_CELLS: Mapping[str, Callable[[Controller, FakeJob], str]] = {
    "i": lambda _, job: job.shown_id,
    "A": lambda _, job: str(job.number),
    "F": lambda _, job: str(job.base),
    "u": lambda _, job: job.user,
    "P": lambda _, job: job.partition,
    "T": lambda _, job: job.state,
    "r": lambda _, job: job.reason,
    "V": lambda _, job: seconds(job.submitted, "N/A"),
    "S": _start,
    "e": _end,
    "l": lambda _, job: "UNLIMITED" if job.time_limit < 0 else short_span(job.time_limit),
    "M": lambda slurm, job: short_span(elapsed(job, slurm.now)),
    "N": lambda _, job: job.nodes,
    "n": lambda _, job: ",".join(job.request.nodelist),
    "D": lambda slurm, job: _count(slurm, job, "nodes"),
    "C": lambda slurm, job: _count(slurm, job, "cpus"),
    "E": lambda _, job: job.dependency_text,
    "k": lambda _, job: job.request.comment or "(null)",
    "j": lambda _, job: job.request.name,
    "Q": lambda _, job: str(job.priority),
    "q": lambda _, job: job.request.qos,
    "a": lambda _, job: job.request.account,
}
