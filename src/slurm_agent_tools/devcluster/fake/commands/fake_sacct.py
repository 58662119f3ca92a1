"""sacct: jobs and their steps as the accounting was told of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from slurm_agent_tools.devcluster.fake.answering import Answer, Session, UnknownCommand, elapsed, seconds
from slurm_agent_tools.devcluster.fake.controller import Controller
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob, FakeStep
from slurm_agent_tools.devcluster.fake.tres_text import allocated, requested, step_tres
from slurm_agent_tools.units import format_duration

DISABLED = "Slurm accounting storage is disabled\n"

_AGO = re.compile(r"now-(\d+)(minutes|hours|days)")

_UNITS = {"minutes": 60, "hours": 3600, "days": 86400}

_COLUMNS = [
    "Account", "AdminComment", "AllocCPUS", "AllocNodes", "AllocTRES", "AveCPU", "Cluster", "Comment",
    "Constraints", "DerivedExitCode", "Elapsed", "ElapsedRaw", "Eligible", "End", "ExitCode", "JobID",
    "JobIDRaw", "JobName", "MaxRSS", "NCPUS", "NNodes", "NodeList", "NTasks", "Partition", "Priority", "QOS",
    "Reason", "ReqTRES", "Start", "State", "Submit", "SubmitLine", "Timelimit", "TotalCPU", "TRESUsageInAve",
    "TRESUsageInMax", "TRESUsageInMin", "TRESUsageInTot", "User", "WorkDir",
]  # fmt: skip

_LATER = ["StdErr", "StdIn", "StdOut"]


def run_sacct(session: Session, words: Sequence[str]) -> Answer:
    """sacct with --format and --parsable2, as the tools ask."""
    slurm = session.slurm
    if not slurm.accounting.enabled:
        return Answer(err=DISABLED, code=1)
    if words[1:] == ["--helpformat"]:
        names = [*_COLUMNS, *(_LATER if slurm.modern else ())]
        return Answer("".join(f"{name:<20}" for name in sorted(names)) + "\n")
    given, flags = _options(words)
    jobs = _chosen(session, given, words)
    columns, delimiter = given.get("format", "").split(","), given.get("delimiter", "|")
    if columns == [""]:
        return Answer("")  # `doctor` only looks whether it answers
    rows = []
    for job in jobs:
        rows.append(delimiter.join(_job_cell(slurm, job, name, words) for name in columns))
        if "allocations" not in flags:
            rows += [delimiter.join(_step_cell(slurm, job, step, name) for name in columns) for step in job.steps]
    return Answer("".join(f"{row}\n" for row in rows))


_FLAGS = {"--noheader": "", "-n": "", "--parsable2": "", "-P": "", "--allocations": "allocations", "-X": "allocations",
          "--allusers": "allusers", "-a": "allusers", "--duplicates": "duplicates"}  # fmt: skip

_VALUES = frozenset({"delimiter", "format", "jobs", "starttime", "endtime", "user", "name", "state"})

_SHORT = {"-o": "format", "-j": "jobs", "-S": "starttime", "-E": "endtime", "-u": "user"}


def _options(words: Sequence[str]) -> tuple[dict[str, str], set[str]]:
    given: dict[str, str] = {}
    flags: set[str] = set()
    rest = list(words[1:])
    while rest:
        word = rest.pop(0)
        name, sign, value = word.partition("=")
        if word in _FLAGS:
            flags.add(_FLAGS[word])
        elif word in _SHORT:
            given[_SHORT[word]] = rest.pop(0)
        elif sign and name.removeprefix("--") in _VALUES:
            given[name.removeprefix("--")] = value
        else:
            raise UnknownCommand(words, word)
    return given, flags


def _chosen(session: Session, given: Mapping[str, str], words: Sequence[str]) -> list[FakeJob]:
    now = session.slurm.now
    jobs = session.slurm.accounting.records(now)
    if "jobs" in given:
        wanted = {int(re.split(r"[_+.]", one)[0]) for one in given["jobs"].split(",")}
        jobs = [job for job in jobs if job.base in wanted or job.number in wanted]
    else:
        user = given.get("user", None if "--allusers" in words or "-a" in words else session.user)
        jobs = [job for job in jobs if user in {None, job.user}]
        since = _since(given.get("starttime", "now"), now, words)
        running = given.get("state") == "RUNNING"
        jobs = [job for job in jobs if _inside(job, since, running=running)]
    if "name" in given:
        jobs = [job for job in jobs if job.request.name in given["name"].split(",")]
    return sorted(jobs, key=lambda job: (job.base, job.offset, -1 if job.task is None else job.task))


def _since(text: str, now: float, words: Sequence[str]) -> float:
    if text == "now":
        return now
    found = _AGO.fullmatch(text)
    if found is None:
        raise UnknownCommand(words, text)
    return now - int(found[1]) * _UNITS[found[2]]


def _inside(job: FakeJob, since: float, *, running: bool) -> bool:
    """Whether a window shows it: jobs that were never eligible are in none."""
    if running:
        return job.start is not None and bool(job.shares) and (job.end is None or job.end >= since)
    return job.eligible is not None and (job.end is None or job.end >= since)


# --- cells -----------------------------------------------------------------------------------------------------------


def _id(job: FakeJob) -> str:
    return job.shown_id


def _state(job: FakeJob) -> str:
    return (
        f"CANCELLED by {job.cancelled_by}" if job.state == "CANCELLED" and job.cancelled_by is not None else job.state
    )


def _code(slurm: Controller, job: FakeJob) -> str:
    """The accounting keeps less than the controller: 7 bits until 26.05, and no signal sent from outside."""
    if job.active or job.state in {"CANCELLED", "TIMEOUT", "PREEMPTED", "REQUEUED"}:
        return "0:0"
    if job.signal == 1 and job.state in {"NODE_FAIL", "DEADLINE", "FAILED"} and job.code == 0:
        return "1:0"
    return f"{_kept(slurm, job.code)}:{job.signal}"


def _kept(slurm: Controller, code: int) -> int:
    return code if slurm.version >= (26, 5) else code & 127


def _started(slurm: Controller, job: FakeJob) -> str:
    if job.shares:
        return seconds(job.start, "Unknown")
    if job.active:
        return "Unknown"
    if not slurm.modern and job.eligible is not None and job.state == "FAILED":
        return seconds(job.end, "Unknown")
    return "None"


_JOB: Mapping[str, Callable[[Controller, FakeJob], str]] = {
    "JobID": lambda _, job: _id(job),
    "JobIDRaw": lambda _, job: str(job.number),
    "User": lambda _, job: job.user,
    "Account": lambda *_: "lab",
    "Reservation": lambda *_: "",
    "Partition": lambda _, job: job.partition,
    "State": lambda _, job: _state(job),
    "ExitCode": _code,
    "DerivedExitCode": lambda slurm, job: f"{_kept(slurm, job.derived[0])}:{job.derived[1]}",
    "Submit": lambda _, job: seconds(job.submitted, "Unknown"),
    "Eligible": lambda _, job: seconds(job.eligible, "Unknown"),
    "Start": _started,
    "End": lambda _, job: "Unknown" if job.active else seconds(job.end, "Unknown"),
    "ElapsedRaw": lambda slurm, job: str(int(elapsed(job, slurm.now))) if job.shares else "0",
    "Timelimit": lambda _, job: "UNLIMITED" if job.time_limit < 0 else format_duration(job.time_limit),
    "NodeList": lambda _, job: job.nodes or "None assigned",
    "ReqTRES": lambda slurm, job: ",".join(sorted(requested(slurm, job).split(","))),
    "AllocTRES": lambda slurm, job: ",".join(sorted(allocated(slurm, job).split(","))) if job.shares else "",
    "TotalCPU": lambda _, job: "00:00.008" if any(step.end is not None for step in job.steps) else "00:00:00",
    "QOS": lambda _, job: job.request.qos,
    "Reason": lambda _, job: job.told_reason,
    "Comment": lambda _, job: job.request.comment or "",
    "WorkDir": lambda _, job: job.work_dir,
    "JobName": lambda _, job: job.request.name.replace('"', "`"),
    "StdOut": lambda _, job: _pattern(job, job.request.output, default=True),
    "StdErr": lambda _, job: _pattern(job, job.request.error, default=False),
}

_USAGE = ("TRESUsageInTot", "TRESUsageInMax", "TRESUsageInMin", "TRESUsageInAve")

_EMPTY = frozenset({"NTasks", "MaxRSS", "AdminComment", *_USAGE})


def _pattern(job: FakeJob, text: str | None, *, default: bool) -> str:
    """The path as it was asked for, its signs left as they are."""
    if text is None:
        return ("slurm-%A_%a.out" if job.array is not None else "slurm-%j.out") if default else ""
    return text if text.startswith("/") else f"{job.work_dir}/{text}"


def _job_cell(slurm: Controller, job: FakeJob, name: str, words: Sequence[str]) -> str:
    if name in _EMPTY:
        return ""
    if name not in _JOB:
        raise UnknownCommand(words, f"column {name}")
    return _JOB[name](slurm, job)


def _step_cell(slurm: Controller, job: FakeJob, step: FakeStep, name: str) -> str:
    usage = _usage(slurm, step)
    cells = {
        "JobID": f"{_id(job)}.{step.step_id}",
        "JobIDRaw": f"{job.number}.{step.step_id}",
        "State": step.state,
        "ExitCode": "" if step.code is None else f"{_kept(slurm, step.code)}:{step.signal}",
        "Submit": seconds(step.start, "Unknown"),
        "Eligible": seconds(step.start, "Unknown"),
        "Start": seconds(step.start, "Unknown"),
        "End": seconds(step.end, "Unknown"),
        "ElapsedRaw": str(int((step.end or slurm.now) - step.start)),
        "NodeList": job.nodes,
        "AllocTRES": step_tres(slurm, job),
        "NTasks": "1",
        "MaxRSS": _peak(slurm, step) if usage else "",
        "TotalCPU": "00:00.008" if usage else "00:00:00",
        "JobName": step.name,
    }
    return cells.get(name, usage if name.startswith("TRESUsageIn") else "")


def _peak(slurm: Controller, step: FakeStep) -> str:
    """22.05 shows nothing of what ended before a sample, later versions the peak."""
    if step.memory is not None:
        return f"{step.memory // 1024}K"
    return "1000K" if slurm.modern else "0"


def _usage(slurm: Controller, step: FakeStep) -> str:
    if step.end is None or step.code is None:
        return ""
    peak = _peak(slurm, step)
    return f"cpu=00:00:00,energy=0,fs/disk=0,mem={peak},pages=0,vmem=0"
