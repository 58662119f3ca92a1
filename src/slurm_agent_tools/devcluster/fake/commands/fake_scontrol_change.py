"""What scontrol changes: release, hold, requeue, suspend, update."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slurm_agent_tools.devcluster.fake import scheduling
from slurm_agent_tools.devcluster.fake.answering import DENIED, Answer, NamedJobs, Session, UnknownCommand, named_jobs
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob
from slurm_agent_tools.units import parse_memory, parse_time_limit

_UNKNOWN = "Invalid job id specified"

_OVER = "Job has already finished"

Change = Callable[[Session, FakeJob], str | None]


def run_change(session: Session, words: Sequence[str]) -> Answer:
    """scontrol release|hold|requeue|requeuehold|suspend|resume IDS."""
    change = _CHANGES[words[1]]
    errors, code = "", 0
    for word in [one for text in words[2:] for one in text.split(",")]:
        said = _changed(session, change, named_jobs(session.slurm, word))
        if said is not None:
            errors += f"{said} for job {word}\n"
            errors += "" if words[1].startswith("requeue") else f"slurm_suspend error:{_gap(session)}{said}\n"
            code = 1
    return Answer(err=errors, code=code)


def _gap(session: Session) -> str:
    return "" if session.slurm.version >= (26, 5) else " "


def _changed(session: Session, change: Change, wanted: NamedJobs) -> str | None:
    if not wanted.found:
        return _UNKNOWN
    jobs = list(wanted.jobs)
    if wanted.rest is not None:
        jobs += [_own_record(session, wanted.rest, task) for task in wanted.tasks]
    if any(not session.may_change(job) for job in jobs):
        return DENIED
    parts = [job for job in jobs if job.active] or jobs
    answers = [change(session, job) for job in parts]
    return next((said for said in answers if said is not None), None)


def _own_record(session: Session, rest: FakeJob, task: int) -> FakeJob:
    slurm = session.slurm
    if rest.reason != "None":
        rest.told_reason = rest.reason
    if len(rest.waiting) == 1:
        rest.become(task)
        return rest
    one = rest.split(task, slurm.take_number())
    slurm.jobs[one.number] = one
    slurm.conditions[one.number] = slurm.conditions[rest.number]
    slurm.accounting.note(rest, slurm.now)
    return one


def _release(session: Session, job: FakeJob) -> str | None:
    if not job.active:
        return _OVER
    if job.held == "admin" and not session.admin:
        return DENIED
    if job.state == "PENDING":
        session.slurm.release(job)
    job.held = None
    return None


def _hold(session: Session, job: FakeJob) -> str | None:
    if not job.active:
        return _OVER
    session.slurm.hold(job, "admin" if session.admin and job.user != session.user else "user")
    return None


def _requeue(session: Session, job: FakeJob) -> str | None:
    if job.state == "PENDING":
        return "Job is pending execution"
    if not job.request.requeue:
        return "Requested operation is presently disabled"
    session.slurm.requeue(job)
    return None


def _requeue_held(session: Session, job: FakeJob) -> str | None:
    session.slurm.requeue(job, hold=True)
    return None


def _suspend(session: Session, job: FakeJob) -> str | None:
    if not session.admin:
        return DENIED
    if job.state != "RUNNING":
        return "Requested operation not supported"
    job.state, job.suspended, job.priority = "SUSPENDED", session.slurm.now, 0
    for step in job.steps:
        step.state = "SUSPENDED"
    session.slurm.accounting.note(job, session.slurm.now)
    return None


def _resume(session: Session, job: FakeJob) -> str | None:
    if not session.admin:
        return DENIED
    job.state, job.suspended = "RUNNING", None
    for step in job.steps:
        step.state = "RUNNING"
    session.slurm.accounting.note(job, session.slurm.now)
    return None


_CHANGES: dict[str, Change] = {
    "release": _release, "hold": _hold, "requeue": _requeue, "requeuehold": _requeue_held, "suspend": _suspend,
    "resume": _resume,
}  # fmt: skip

CHANGES = frozenset(_CHANGES)


def run_update(session: Session, words: Sequence[str]) -> Answer:
    """scontrol update jobid=ID key=value..., or nodename=NAME state=STATE reason=TEXT."""
    given = {}
    for word in words[2:]:
        key, sign, value = word.partition("=")
        if not sign or key.lower() not in {*_UPDATES, *_NAMING}:
            raise UnknownCommand(words, word)
        given[key.lower()] = value
    if "nodename" in given:
        return _node(session, words, given)
    return _job(session, given)


_NAMING = frozenset({"jobid", "nodename", "state", "reason"})


def _job(session: Session, given: dict[str, str]) -> Answer:
    wanted = named_jobs(session.slurm, given.pop("jobid"))
    if not wanted.found:
        return Answer(err=f"{_UNKNOWN} for job {wanted.text}\n", code=1)
    for job in wanted.jobs:
        said = _refusal(session, job, given)
        if said is not None:
            return Answer(err=f"{said} for job {wanted.text}\n", code=1)
    for job in wanted.jobs:
        for key, value in given.items():
            _UPDATES[key](session, job, value)
        session.slurm.accounting.note(job, session.slurm.now)
    session.slurm.soon()
    return Answer()


_PENDING_ONLY = frozenset({"partition", "minmemorynode", "numnodes", "numcpus"})


def _refusal(session: Session, job: FakeJob, given: dict[str, str]) -> str | None:
    if not session.may_change(job):
        return DENIED
    if not job.active:
        return _OVER
    running = job.state != "PENDING"
    if running and _PENDING_ONLY & set(given):
        return "Job is no longer pending execution"
    longer = "timelimit" in given and parse_time_limit(given["timelimit"]) > job.time_limit
    return DENIED if running and longer and not session.admin else None


def _set_time(session: Session, job: FakeJob, value: str) -> None:
    job.time_limit = parse_time_limit(value)
    session.slurm.soon()


def _set_partition(session: Session, job: FakeJob, value: str) -> None:
    job.partition = value
    job.priority = 0 if job.held else scheduling.priority(job, session.slurm.partitions)


def _set_memory(_: Session, job: FakeJob, value: str) -> None:
    job.request.memory_per_node = parse_memory(value) // 2**20
    job.request.memory_per_cpu = None


def _set_nodes(_: Session, job: FakeJob, value: str) -> None:
    least, _sign, most = value.partition("-")
    job.request.nodes_min, job.request.nodes_max = int(least), int(most or least)


def _set_nice(session: Session, job: FakeJob, value: str) -> None:
    job.request.nice = int(value or 100)
    job.priority = 0 if job.held else scheduling.priority(job, session.slurm.partitions)


def _set(name: str) -> Callable[[Session, FakeJob, str], None]:
    def put(_: Session, job: FakeJob, value: str) -> None:
        setattr(job.request, name, value)

    return put


def _set_cpus(_: Session, job: FakeJob, value: str) -> None:
    job.request.tasks = int(value.partition("-")[0])


def _set_throttle(session: Session, job: FakeJob, value: str) -> None:
    job.request.throttle = int(value) or None
    session.slurm.soon()


def _set_requeue(_: Session, job: FakeJob, value: str) -> None:
    job.request.requeue = value == "1"


_UPDATES: dict[str, Callable[[Session, FakeJob, str], None]] = {
    "timelimit": _set_time, "partition": _set_partition, "minmemorynode": _set_memory, "numnodes": _set_nodes,
    "nice": _set_nice, "name": _set("name"), "jobname": _set("name"), "comment": _set("comment"),
    "qos": _set("qos"), "numcpus": _set_cpus, "arraytaskthrottle": _set_throttle, "requeue": _set_requeue,
}  # fmt: skip


def _node(session: Session, words: Sequence[str], given: dict[str, str]) -> Answer:
    if not session.admin:
        return Answer(err=f"slurm_update error: {DENIED}\n", code=1)
    node, state = session.slurm.nodes[given["nodename"]], given.get("state", "").lower()
    why = given.get("reason", "none")
    if state == "down":
        session.slurm.fail_node(node.name, why)
    elif state == "drain":
        node.drained = why
    elif state in {"resume", "idle"}:
        node.down = node.drained = None
    else:
        raise UnknownCommand(words, state)
    session.slurm.soon()
    return Answer()
