"""The controller of the fake Slurm: its jobs, what may be done to them, and what becomes of them."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from slurm_agent_tools.devcluster.fake import scheduling
from slurm_agent_tools.devcluster.fake.endings import Ending, read_script
from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.devcluster.fake.fake_files import JobLogs, LogDisk
from slurm_agent_tools.devcluster.fake.fake_job import Accounting, FakeJob, FakeStep, Share
from slurm_agent_tools.devcluster.fake.hardware import FakeNode, FakePartition
from slurm_agent_tools.devcluster.fake.waiting_on import Conditions

_REQUEUE_PAUSE = 121  # seconds until a requeued job may start again

_NOT_SET_UP = 53

_OUT_OF_MEMORY = 125


class Controller:
    """Jobs by number, nodes and partitions by name. Everything happens on the clock's events."""

    def __init__(
        self,
        clock: FakeClock,
        nodes: Sequence[FakeNode],
        partitions: Sequence[FakePartition],
        version: tuple[int, int],
        *,
        disk: LogDisk,
        first_job_id: int = 1,
    ) -> None:
        self.clock, self.version = clock, version
        self.nodes = {node.name: node for node in nodes}
        self.partitions = {part.name: part for part in partitions}
        self.jobs: dict[int, FakeJob] = {}
        self.conditions: dict[int, Conditions] = {}
        self.accounting = Accounting()
        self.logs = JobLogs(disk, clock)
        self.next_number = first_job_id
        self.min_job_age = 300.0
        self.scheduling_delay = 1.0
        self.completing_seconds = 0.0
        self.ends: Callable[[FakeJob], Ending | None] = lambda _: None
        self._pass_due = False

    @property
    def now(self) -> float:
        """Seconds since 1970."""
        return self.clock.seconds

    @property
    def modern(self) -> bool:
        """Whether it is 24.11 or later."""
        return self.version >= (24, 11)

    def take_number(self) -> int:
        """The next number of a job."""
        number, self.next_number = self.next_number, self.next_number + 1
        return number

    # --- looking -----------------------------------------------------------------------------------------------------

    def known(self) -> list[FakeJob]:
        """Every record that it still holds; those that ended longer ago than MinJobAge are forgotten."""
        for number, job in list(self.jobs.items()):
            if not job.active and job.end is not None and self.now - job.end >= self.min_job_age:
                del self.jobs[number]
        return list(self.jobs.values())

    def parts(self, base: int) -> list[FakeJob]:
        """All records of a job: by its number, and by the own number of a part."""
        known = self.known()
        found = [job for job in known if job.base == base]
        return found or [job for job in known if job.number == base]

    # --- passes ------------------------------------------------------------------------------------------------------

    def soon(self, delay: float | None = None) -> None:
        """Look at what waits, in a moment."""
        if not self._pass_due or delay is not None:
            self._pass_due = self._pass_due or delay is None
            wait = self.scheduling_delay if delay is None else delay
            self.clock.call_at(self.now + wait, partial(self._pass, own=delay is None))

    def _pass(self, *, own: bool) -> None:
        if own:
            self._pass_due = False
        scheduling.look(self)

    # --- a job's life ------------------------------------------------------------------------------------------------

    def add(self, job: FakeJob) -> None:
        """Take a job."""
        self.jobs[job.number] = job
        self.accounting.note(job, self.now)
        self.soon()
        if job.begin is not None:
            self.soon(job.begin - self.now)

    def start(self, job: FakeJob, partition: str, shares: Sequence[Share]) -> None:
        """Give a job its nodes and let its script run."""
        for share in shares:
            node = self.nodes[share.node]
            node.cpus_used += share.cpus
            node.memory_used += share.memory
            node.gpus_used += share.gpus
            node.exclusive = node.exclusive or job.request.exclusive or self.partitions[partition].exclusive
        if job.reason != "None":
            job.told_reason = job.reason
        job.state, job.reason, job.partition, job.shares = "RUNNING", "None", partition, tuple(shares)
        job.start, job.end, job.expected = self.now, None, None
        job.run += 1
        job.code = job.signal = 0
        job.derived = (0, 0)
        job.steps = [FakeStep("batch", "batch", "RUNNING", self.now)] if job.offset == 0 else []
        self.accounting.note(job, self.now)
        if job.offset == 0:
            self._run(job)

    def _run(self, job: FakeJob) -> None:
        ending = self._ending(job)
        job.ending = ending
        if ending.fate == "not_set_up" or not self.logs.open(job, make=self.modern):
            self._later(job, 0.0, partial(self.finish, job, "FAILED", code=0, sign=_NOT_SET_UP))
            return
        self.logs.write(job, ending)
        for step in ending.steps:
            index = sum(one.step_id.isdecimal() for one in job.steps)
            job.steps.append(FakeStep(str(index), step.name, "RUNNING", self.now, memory=step.memory))
        limit = None if job.time_limit < 0 else float(job.time_limit)
        if ending.after is not None and (limit is None or ending.after <= limit):
            self._later(job, ending.after, partial(self._end_as, job, ending))
        elif limit is not None:
            self._later(job, limit, partial(self._time_is_up, job))

    def _ending(self, job: FakeJob) -> Ending:
        if job.run == 1 and job.ending is not None:
            return job.ending
        told = self.ends(job)
        return told or read_script(job.request.script, self.variables(job), job.request.args)

    def variables(self, job: FakeJob) -> dict[str, str]:
        """What the script finds in its environment of itself."""
        found = {"SLURM_JOB_ID": str(job.number), "SLURM_JOB_NAME": job.request.name}
        if job.array is not None:
            found |= {"SLURM_ARRAY_JOB_ID": str(job.array), "SLURM_ARRAY_TASK_ID": str(job.task)}
        return found

    def _later(self, job: FakeJob, seconds: float, action: Callable[[], None]) -> None:
        run = job.run

        def if_it_still_runs() -> None:
            if job.run == run and job.state in {"RUNNING", "SUSPENDED"}:
                action()

        self.clock.call_at(self.now + seconds, if_it_still_runs)

    def _end_as(self, job: FakeJob, ending: Ending) -> None:
        self._end_steps(job, ending)
        if ending.fate == "out_of_memory":
            self.logs.say(job, f"{_OOM} in StepId={job.number}.batch. {_OOM_TEXT}")
            self.finish(job, "OUT_OF_MEMORY", code=0, sign=_OUT_OF_MEMORY)
        elif ending.fate == "node_fail":
            self.fail_node(job.shares[0].node, "Not responding")
        elif ending.fate == "preempted":
            self.preempt(job)
        elif ending.exit_code or ending.signal:
            self.finish(job, "FAILED", code=0 if ending.signal else ending.exit_code, sign=ending.signal)
        else:
            self.finish(job, "COMPLETED")

    def _end_steps(self, job: FakeJob, ending: Ending) -> None:
        own = [step for step in job.steps if step.step_id.isdecimal()]
        for step, told in zip(own, ending.steps, strict=False):
            step.end = self.now
            step.code, step.signal = told.exit_code, told.signal
            if told.out_of_memory:
                step.state, step.code, step.signal = "OUT_OF_MEMORY", 0, _OUT_OF_MEMORY
            else:
                step.state = "FAILED" if told.exit_code else "CANCELLED" if told.signal else "COMPLETED"
            job.derived = max(job.derived, (step.code or 0, step.signal))

    def _time_is_up(self, job: FakeJob) -> None:
        self.logs.cancelled(job, " DUE TO TIME LIMIT")
        self.finish(job, "TIMEOUT", sign=signal.SIGTERM)

    def finish(self, job: FakeJob, state: str, *, code: int = 0, sign: int = 0) -> None:
        """End a running job, and with it the other components of its het job."""
        batch_state, batch_code, batch_sign = _batch_end(state, code, sign)
        for step in job.steps:
            if step.end is None:
                step.state, step.end, step.code, step.signal = batch_state, self.now, batch_code, batch_sign
        for part in self._components(job):
            self._give_back(part)
            part.state, part.end, part.code, part.signal = state, self.now, code, sign
            part.reason = self._end_reason(state, code, sign)
            self.accounting.note(part, self.now)
        self.soon()

    def _components(self, job: FakeJob) -> list[FakeJob]:
        if job.het is None:
            return [job]
        return [one for one in self.jobs.values() if one.het == job.het and one.active]

    def _end_reason(self, state: str, code: int, sign: int) -> str:
        if state == "FAILED" and sign:
            if self.version < (23, 2):
                return "JobLaunchFailure"
            return f"RaisedSignal:{sign}({_sign_words(sign)})"
        if state == "FAILED" and code:
            return "NonZeroExitCode"
        return {"TIMEOUT": "TimeLimit", "OUT_OF_MEMORY": "OutOfMemory", "NODE_FAIL": "NodeDown"}.get(state, "None")

    def _give_back(self, job: FakeJob) -> None:
        if job.state not in {"RUNNING", "SUSPENDED"}:
            return
        for share in job.shares:
            node = self.nodes[share.node]
            node.cpus_used -= share.cpus
            node.memory_used -= share.memory
            node.gpus_used = [index for index in node.gpus_used if index not in share.gpus]
            node.exclusive = node.exclusive and bool(node.cpus_used)

    # --- what is done to it ------------------------------------------------------------------------------------------

    def cancel(self, job: FakeJob, uid: int) -> None:
        """scancel. A job that is over is left as it is."""
        job.cancelled_by = uid
        if job.state == "PENDING":
            job.state, job.start, job.end = "CANCELLED", self.now, self.now
            self.accounting.note(job, self.now)
            self.soon()
        elif job.state in {"RUNNING", "SUSPENDED"}:
            for part in self._components(job):
                part.cancelled_by = uid
            self.logs.cancelled(job, "")
            self.finish(job, "CANCELLED", sign=signal.SIGTERM)

    def cancel_task(self, rest: FakeJob, task: int, uid: int) -> None:
        """scancel of a task that waits with others: it leaves no record."""
        if len(rest.waiting) == 1:
            self.cancel(rest, uid)
            return
        rest.waiting = tuple(one for one in rest.waiting if one != task)
        if rest.reason != "None":
            rest.told_reason = rest.reason
        self.accounting.note(rest, self.now)

    def hold(self, job: FakeJob, by: str = "user") -> None:
        """Keep it from starting."""
        job.held, job.priority = by, 0
        if job.state == "PENDING":
            job.reason = "JobHeldUser" if by == "user" else "JobHeldAdmin"
            job.eligible = None
        self.accounting.note(job, self.now)

    def release(self, job: FakeJob) -> None:
        """Let it start."""
        job.held, job.reason = None, "None"
        job.priority = scheduling.priority(job, self.partitions)
        self.accounting.note(job, self.now)
        self.soon()

    def requeue(self, job: FakeJob, *, hold: bool = False) -> None:
        """Begin it again, under the same number, in two minutes."""
        self.logs.cancelled(job, " DUE TO JOB REQUEUE")
        for step in job.steps:
            step.state, step.end, step.signal = "CANCELLED", self.now, signal.SIGTERM
        was = job.state
        self._give_back(job)
        job.state, job.end = "REQUEUED", self.now
        self.accounting.note(job, self.now)
        job.state, job.start, job.end, job.shares, job.steps = "PENDING", None, None, (), []
        job.submitted, job.begin, job.restarts = self.now, self.now + _REQUEUE_PAUSE, job.restarts + 1
        job.reason, job.eligible, job.ending = "BeginTime", None, None
        if hold:
            job.held, job.priority, job.reason = "user", 0, "job requeued in held state"
        if was != "PENDING":
            self.accounting.note(replace(job, told_reason="JobHeldUser") if hold else job, self.now)
        self.soon(_REQUEUE_PAUSE)

    def preempt(self, job: FakeJob) -> None:
        """End it, or begin it again where it may be requeued, for a job that goes before it."""
        job.preempted = self.now
        if job.request.requeue:
            self.requeue(job)
            return
        self.logs.cancelled(job, " DUE TO PREEMPTION")
        self.finish(job, "PREEMPTED", sign=signal.SIGTERM)

    def fail_node(self, name: str, why: str) -> None:
        """A node is gone: its jobs end with it, those that may be requeued begin again."""
        self.nodes[name].down = why
        for job in self._on(name):
            job.failed_node = name
            if job.request.requeue:
                self.requeue(job)
            else:
                self.finish(job, "NODE_FAIL", sign=1 if self.modern else 0)
        self.soon()

    def _on(self, name: str) -> Iterable[FakeJob]:
        running = [job for job in self.jobs.values() if job.state in {"RUNNING", "SUSPENDED"}]
        return [job for job in running if name in {share.node for share in job.shares}]


_OOM = "slurmstepd: error: Detected 1 oom-kill event(s)"

_OOM_TEXT = "Some of your processes may have been killed by the cgroup out-of-memory handler."


def _batch_end(state: str, code: int, sign: int) -> tuple[str, int | None, int]:
    if state == "NODE_FAIL":
        return "CANCELLED", None, 0
    if state == "FAILED" and not sign:
        return "FAILED", code, 0
    if state in {"OUT_OF_MEMORY", "COMPLETED"}:
        return state, code, sign
    return "CANCELLED", 0, sign


def _sign_words(number: int) -> str:
    first = 34
    if number >= first:
        return f"Real-time signal {number - first}"
    return signal.strsignal(number) or str(number)
