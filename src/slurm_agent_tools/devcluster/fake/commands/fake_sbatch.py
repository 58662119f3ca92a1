"""sbatch: a request becomes a job, or is refused in Slurm's words."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from slurm_agent_tools.devcluster.fake import scheduling, waiting_on
from slurm_agent_tools.devcluster.fake.answering import Answer, Session
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob
from slurm_agent_tools.devcluster.fake.hardware import FakePartition, host_list
from slurm_agent_tools.devcluster.fake.job_request import Asked, FakeRequest, SbatchRefused, read_sbatch, shown_options
from slurm_agent_tools.devcluster.fake.placement import place, possible, size_of

_ACCOUNTS = frozenset({"lab", "guest"})

_PLUGINS = """\
sbatch: select/cons_tres: common_init: select/cons_tres loaded
sbatch: select/cray_aries: init: Cray/Aries node selection plugin loaded
sbatch: select/linear: init: Linear node selection plugin loaded with argument 20
sbatch: select/cons_res: common_init: select/cons_res loaded
"""


class _Refused(Exception):
    """The controller says no; `before`: lines that sbatch prints first."""

    def __init__(self, text: str, before: str = "") -> None:
        super().__init__(text)
        self.text, self.before = text, before


def run_sbatch(session: Session, words: Sequence[str]) -> Answer:
    """The whole command."""
    try:
        asked = read_sbatch(words[1:], session.stdin, session.slurm.version, session.scripts)
    except SbatchRefused as refused:
        return Answer(err=refused.text, code=refused.exit_code)
    said = ""
    if asked.verbose:
        said = "".join(shown_options(part, session.cwd) for part in asked.parts)
        said += "" if session.slurm.modern else _PLUGINS
    try:
        if asked.test_only:
            return Answer(err=said + _trial(session, asked))
        number = _take(session, asked)
    except _Refused as refused:
        head = "allocation failure: " if asked.test_only else "sbatch: error: Batch job submission failed: "
        return Answer(err=f"{said}{refused.before}{head}{refused.text}\n", code=1)
    return Answer(f"{number}\n" if asked.parsable else f"Submitted batch job {number}\n", said)


def _trial(session: Session, asked: Asked) -> str:
    slurm = session.slurm
    cpus, used = 0, []
    for request in asked.parts:
        part = _checked(session, request)[0]
        _dependency(session, request)
        number = slurm.take_number()
        if not _feasible(session, request, [part]) or (
            scheduling.over_limit(_draft(session, request, part), part) == _NODES
        ):
            raise _Refused(_UNAVAILABLE)
        empty = place(_draft(session, request, part), part, slurm.nodes, modern=slurm.modern)
        size = size_of(request, part, slurm.nodes, slurm.modern)
        cpus += size.cpus
        used += [share.node for share in empty] if empty else list(part.nodes[: size.nodes])
    start = int(slurm.now + (asked.parts[0].begin or 0))
    odd = " a" if slurm.version >= (26, 5) and len(asked.parts) == 1 else ""
    head = f"sbatch: Job {number} to start at {start}{odd} using {cpus} processors on"
    if len(asked.parts) > 1:
        return f"{head} {host_list(used)}\n"
    return f"{head} nodes {host_list(used)} in partition {part.name}\n"


_UNAVAILABLE = "Requested node configuration is not available"

_NODES = "PartitionNodeLimit"


def _checked(session: Session, request: FakeRequest) -> list[FakePartition]:
    """Its partitions; raises for what the controller refuses at once."""
    slurm = session.slurm
    names = request.partitions or tuple(part.name for part in slurm.partitions.values() if part.default)[:1]
    for name in names:
        if name not in slurm.partitions:
            said = f"sbatch: error: invalid partition specified: {','.join(names)}\n"
            raise _Refused("Invalid partition name specified", said)
    if not names:
        raise _Refused("No partition specified or system default partition")
    if request.nice < 0 and not session.admin:
        raise _Refused("Invalid --nice value")
    if request.account not in _ACCOUNTS:
        raise _Refused("Invalid account or account/partition combination specified")
    if request.qos not in scheduling.QOS:
        raise _Refused("Invalid qos specification")
    if set(request.nodelist) - set(slurm.nodes):
        raise _Refused("Invalid node name specified")
    features = {feature for node in slurm.nodes.values() for feature in node.features}
    wanted = request.given.get("constraint")
    if wanted is not None and wanted not in features:
        raise _Refused("Invalid feature specification")
    if "licenses" in request.given:
        raise _Refused("Invalid license specification")
    return [slurm.partitions[name] for name in names]


def _limit(request: FakeRequest, part: FakePartition) -> int:
    if request.time_limit is not None:
        return request.time_limit
    limit = part.default_time if part.default_time is not None else part.max_time
    return -1 if limit is None else limit


def _draft(session: Session, request: FakeRequest, part: FakePartition) -> FakeJob:
    chdir = request.chdir or ""
    where = chdir if chdir.startswith("/") else posixpath.join(session.cwd, chdir).rstrip("/") or "/"
    return FakeJob(
        number=0, request=request, user=session.user, uid=session.uid, work_dir=where,
        submitted=session.slurm.now, partition=",".join(request.partitions) or part.name,
        time_limit=_limit(request, part), priority=0,
    )  # fmt: skip


def _dependency(session: Session, request: FakeRequest) -> waiting_on.Conditions:
    slurm = session.slurm
    try:
        return waiting_on.read_conditions(request.dependency, slurm.parts, strict=slurm.modern)
    except waiting_on.BadDependency:
        raise _Refused("Job dependency problem") from None


def _feasible(session: Session, request: FakeRequest, parts: Sequence[FakePartition]) -> bool:
    slurm = session.slurm
    return any(possible(request, part, slurm.nodes, modern=slurm.modern) for part in parts)


def _take(session: Session, asked: Asked) -> int:
    slurm = session.slurm
    jobs: list[FakeJob] = []
    for offset, request in enumerate(asked.parts):
        parts = _checked(session, request)
        conditions = _dependency(session, request)
        job = _draft(session, request, parts[0])
        if request.deadline is not None and slurm.modern and request.deadline < job.time_limit + (request.begin or 0):
            raise _Refused("Requested time limit is invalid (missing or exceeds some limit)")
        job.number = slurm.take_number()
        job.begin = None if not request.begin else slurm.now + request.begin
        job.priority = scheduling.priority(job, slurm.partitions)
        job.dependency = conditions.text
        if request.hold:
            job.held, job.priority, job.reason = "user", 0, "JobHeldUser"
            job.told_reason = "None" if slurm.modern else "JobHeldUser"
        elif conditions.items or job.begin:
            job.reason = "Dependency" if conditions.items else "BeginTime"
            job.told_reason = "None" if slurm.modern else job.reason
        if request.tasks_of_array:
            job.array, job.waiting = job.number, request.tasks_of_array
        if len(asked.parts) > 1:
            job.het, job.offset, job.het_size = (jobs[0].number if jobs else job.number), offset, len(asked.parts)
        if not request.hold:
            _must_fit(session, job, parts)
        slurm.conditions[job.number] = conditions
        if not (request.hold or conditions.items or job.begin):
            job.eligible = None if request.tasks_of_array else slurm.now
        jobs.append(job)
    for job in jobs:
        slurm.add(job)
    return jobs[0].number


def _must_fit(session: Session, job: FakeJob, parts: Sequence[FakePartition]) -> None:
    """A job that can never run leaves a record that failed at once."""
    slurm, request = session.slurm, job.request
    over = scheduling.over_limit(job, parts[0]) == _NODES
    if over and not (parts[0].max_nodes is None and (24, 11) <= slurm.version < (26, 5)):
        return
    if _feasible(session, request, parts):
        return
    job.state, job.reason, job.start, job.end, job.eligible = (
        "FAILED",
        "BadConstraints",
        slurm.now,
        slurm.now,
        slurm.now,
    )
    job.signal = 1
    slurm.add(job)
    raise _Refused(_UNAVAILABLE, _hint(session, request, parts[0]))


def _hint(session: Session, request: FakeRequest, part: FakePartition) -> str:
    nodes = [session.slurm.nodes[name] for name in part.nodes]
    if request.memory_per_node and request.memory_per_node > max(node.memory for node in nodes):
        return "sbatch: error: Memory specification can not be satisfied\n"
    if request.cpus_per_task > max(node.cpus for node in nodes):
        return "sbatch: error: CPU count per node can not be satisfied\n"
    return ""
