"""A cluster in memory behind a campaign's ports, a process that can be killed at any call, and time that is moved.

The cluster keeps what submit_job promises: a key that was sent answers with its job, and never makes a second one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_agent_tools.campaigns.batch import Batch
from slurm_agent_tools.campaigns.campaign_budget import cpu_seconds
from slurm_agent_tools.campaigns.driver import Advanced, advance
from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.ports import (
    BatchHasToWait,
    BatchIsSent,
    BatchIsUnconfirmed,
    BatchWasNeverSent,
    FoundBatch,
    SendOutcome,
    SentTrial,
    TrialLook,
)
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.models.campaign import CampaignEvent, Stamped, Trial, TrialEnd, TrialId
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage

START = datetime(2026, 11, 23, 8, tzinfo=UTC)
PATH = "campaigns/lr.json"

STAGE: dict[str, Any] = {
    "name": "training", "kind": "cpu", "command": ["python3", "train.py"],
    "parameters": {
        "lr": {"default": 0.1, "argument": "--lr"}, "batch": {"default": 64, "argument": "--batch"},
        "epochs": {"default": 9, "argument": "--epochs", "length": True},
    },
    "resources": {"cpus": 2, "memory": "4G", "time_limit": "30min"},
    "smoke": {"change": {"epochs": 1}, "time_limit": "2min"},
}  # fmt: skip


def document(*rounds: Mapping[str, Any], stages: Sequence[Mapping[str, Any]] = (STAGE,), **parts: Any) -> bytes:
    """A campaign's file of these rounds."""
    said = [{"hypothesis": "one is better", **one} if one["kind"] != "smoke" else one for one in rounds]
    whole = {
        "campaign": 1, "objective": {"metric": "loss", "direction": "minimize"},
        "limits": {"cpu_hours": 100, "at_once": 3}, "stages": list(stages), "rounds": said,
    }  # fmt: skip
    return json.dumps({**whole, **parts}, indent=1).encode()


class Killed(BaseException):
    """The process is gone: nothing may catch it."""


@dataclass
class Kill:
    """Kills the process at a call outward, before or after its effect; counts them all. `at` None: never."""

    at: int | None = None
    after: bool = False
    calls: int = 0

    @contextmanager
    def around(self) -> Iterator[None]:
        number, self.calls = self.calls, self.calls + 1
        if number == self.at and not self.after:
            raise Killed
        yield
        if number == self.at:
            raise Killed


@dataclass
class Now:
    """The time."""

    at: datetime = START

    def now(self) -> datetime:
        return self.at

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("a campaign never sleeps")


@dataclass
class Task:
    """One run in Slurm."""

    job_id: str
    trial: Trial
    sent: datetime
    start: datetime
    stop: datetime
    end: TrialEnd
    cancelled: bool = False


Outcome = Callable[[Trial], TrialEnd]


def well(trial: Trial) -> TrialEnd:
    """A run that passes, better the nearer lr is to 0.03; it takes a minute for an epoch."""
    epochs = int(trial.settings.get("epochs", 1))
    loss = abs(float(trial.settings.get("lr", 0.1)) - 0.03) + 1.0 / epochs
    return TrialEnd("", "COMPLETED", passed=True, run_seconds=60.0 * epochs, metrics={"loss": loss})


def badly(cause: str, category: str = "traceback", seconds: float = 20.0, **more: Any) -> TrialEnd:
    """A run that fails."""
    return TrialEnd(
        "", "FAILED", passed=False, problem=cause, cause=f"{category}: {cause}", category=category,
        run_seconds=seconds, **more,
    )  # fmt: skip


@dataclass
class Cluster:
    """What outlives every process: jobs by their keys, files, the events of the campaign, and the time."""

    outcome: Outcome = well
    queue_seconds: float = 10.0
    clock: Now = field(default_factory=Now)
    jobs: dict[str, tuple[int, list[Task]]] = field(default_factory=dict)
    widths: dict[int, int] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    log: list[Stamped] = field(default_factory=list)
    folded: CampaignState = field(default_factory=CampaignState)
    code: dict[str, int] = field(default_factory=dict)
    results: Counter[TrialId] = field(default_factory=Counter)
    lessons: set[str] = field(default_factory=set)
    away: bool = False
    full: bool = False
    slots: int = 10000
    """Runs that the guard lets in."""
    others: int = 0
    """Of these, those that other jobs of the user have."""
    lost: set[str] = field(default_factory=set)
    """Keys of batches whose next answer is lost, sent or not."""
    lose: Callable[[int], str | None] = lambda _: None
    """Of each send by its number: "sent", "unsent" where the answer is lost, else None."""
    refuse: Callable[[Batch], SendOutcome | None] = lambda _: None
    sends: int = 0
    locked: bool = False
    most_asked: float = 0.0

    @property
    def tasks(self) -> list[Task]:
        return [task for _, tasks in self.jobs.values() for task in tasks]

    @property
    def state(self) -> CampaignState:
        before = self.folded if self.folded.events <= len(self.log) else CampaignState()
        self.folded = fold(self.log[before.events :], before)
        return self.folded

    def submit(self, batch: Batch, trials: Sequence[Trial]) -> int:
        if batch.key not in self.jobs:
            number = 100 + len(self.jobs)
            lanes = [self.clock.at + timedelta(seconds=self.queue_seconds)] * (batch.at_once or 1)
            tasks = []
            for index, trial in enumerate(trials):
                start = min(lanes)
                end = self.outcome(trial)
                stop = start + timedelta(seconds=end.run_seconds or 0)
                lanes[lanes.index(start)] = stop
                job = str(number) if batch.task_ids is None else f"{number}_{batch.task_ids[index]}"
                hours = cpu_seconds(trial.request) / trial.request.time_limit_seconds * (end.run_seconds or 0) / 3600
                end = replace(
                    end, job_id=job, queue_seconds=(start - self.clock.at).total_seconds(), cpu_hours=hours,
                    gpu_hours=0.0, started=start, ended=stop,
                )  # fmt: skip
                tasks.append(Task(job, trial, self.clock.at, start, stop, end))
            self.jobs[batch.key] = (number, tasks)
            self.widths[number] = batch.width
            self.most_asked = max(self.most_asked, self.asked())
        return self.jobs[batch.key][0]

    def asked(self) -> float:
        """CPU hours: of ended runs those taken, of all others those asked for."""
        return sum(
            (task.end.cpu_hours or 0.0) if task.stop <= self.clock.at else cpu_seconds(task.trial.request) / 3600
            for task in self.tasks
        )

    def taken(self) -> int:
        """Slots that the jobs have, as the guard counts them: of an array as many as may run together."""
        left = ((number, sum(task.stop > self.clock.at for task in tasks)) for number, tasks in self.jobs.values())
        return sum(min(self.widths[number], count) for number, count in left)

    def most_at_once(self) -> int:
        """How many runs were ever running together."""
        moments = sorted(
            [(task.start, 1) for task in self.tasks if not task.cancelled]
            + [(task.stop, -1) for task in self.tasks if not task.cancelled]
        )
        running = most = 0
        for _, change in sorted(moments, key=lambda one: (one[0], one[1])):
            running += change
            most = max(most, running)
        return most


class Process:
    """One process that advances the campaign: its ports and its log. `kill`: where it dies."""

    def __init__(self, cluster: Cluster, kill: Kill | None = None) -> None:
        self.cluster, self.kill = cluster, kill or Kill()
        self.known: CampaignState | None = None

    # --- the log -------------------------------------------------------------------------------------------------

    async def events(self, *, after: int = 0) -> Sequence[Stamped]:
        with self.kill.around():
            return self.cluster.log[after:]

    async def append(self, events: Sequence[CampaignEvent], *, expected: int) -> Sequence[Stamped] | None:
        with self.kill.around():
            if len(self.cluster.log) != expected:
                return None
            now = self.cluster.clock.now()
            added = [Stamped(number, now, event) for number, event in enumerate(events, expected + 1)]
            self.cluster.log += added
            return added

    @contextmanager
    def lock(self) -> Iterator[bool]:
        if self.cluster.locked:
            yield False
            return
        self.cluster.locked = True
        try:
            yield True
        finally:
            self.cluster.locked = False

    # --- the ports ---------------------------------------------------------------------------------------------------

    def _reach(self) -> None:
        if self.cluster.away:
            raise SlurmUnreachable("the controller does not answer")

    async def code_hash(self, stage: CampaignStage) -> str:
        with self.kill.around():
            return f"code {self.cluster.code.get(stage.name, 0)} of {stage.name}"

    async def texts(self, paths: Sequence[str]) -> Mapping[str, str]:
        with self.kill.around():
            return dict.fromkeys(paths, "")

    async def write(self, batch: Batch) -> None:
        with self.kill.around():
            self.cluster.files.update({batch.script_path: batch.script_text, **batch.files})

    @property
    def most_slots(self) -> int:
        return self.cluster.slots

    async def free_slots(self) -> int:
        with self.kill.around():
            self._reach()
            return max(0, self.cluster.slots - self.cluster.others - self.cluster.taken())

    async def send(self, batch: Batch, stage: CampaignStage) -> SendOutcome:
        with self.kill.around():
            self._reach()
            assert self.cluster.files[batch.script_path] == batch.script_text
            state = self.cluster.state
            trials = [state.trials[trial].trial for trial in batch.trials]
            assert {trial.stage for trial in trials} == {stage.name}
            self.cluster.sends += 1
            lost = self.cluster.lose(self.cluster.sends)
            refused = self.cluster.refuse(batch)
            if batch.key not in self.cluster.jobs:
                if refused is not None:
                    return refused
                if self.cluster.full:
                    return BatchHasToWait(120.0, "four jobs are active")
                if lost == "unsent":
                    return BatchIsUnconfirmed("sbatch did not answer")
            number = self.cluster.submit(batch, trials)
            return BatchIsUnconfirmed("sbatch did not answer") if lost == "sent" else BatchIsSent(number)

    async def find(self, key: str) -> FoundBatch:
        with self.kill.around():
            self._reach()
            return BatchIsSent(self.cluster.jobs[key][0]) if key in self.cluster.jobs else BatchWasNeverSent()

    async def look(self, sent: Sequence[SentTrial]) -> Sequence[TrialLook]:
        with self.kill.around():
            self._reach()
            assert all(one.stage is not None and one.stage.name == one.trial.stage for one in sent)
            by_id = {task.job_id: task for task in self.cluster.tasks}
            return [self._seen(one.trial.id, by_id[one.job_id]) for one in sent]

    def _seen(self, trial: TrialId, task: Task) -> TrialLook:
        assert task.trial.id == trial
        now = self.cluster.clock.now()
        if task.stop <= now:
            return TrialLook(trial, "ended", task.start, task.end)
        return TrialLook(trial, "running" if task.start <= now else "pending", task.start)

    async def cancel(self, sent: Sequence[SentTrial], reason: str) -> Mapping[TrialId, str]:
        with self.kill.around():
            self._reach()
            now = self.cluster.clock.now()
            for task in self.cluster.tasks:
                if task.job_id in {one.job_id for one in sent} and task.start > now:
                    task.start = task.stop = now
                    task.cancelled = True
                    task.end = replace(
                        task.end, state="CANCELLED", passed=False, problem="cancelled", category="cancelled",
                        cause="cancelled", run_seconds=0.0, cpu_hours=0.0, metrics={},
                    )  # fmt: skip
        return {}

    async def save_results(self, ended: Sequence[tuple[Trial, TrialEnd]]) -> Mapping[TrialId, str]:
        for trial, _ in ended:
            with self.kill.around():
                self.cluster.results[trial.id] = 1
        return {trial.id: f"results/{trial.id}.json" for trial, _ in ended}

    async def write_lesson(self, failed: TrialEnd, mended: Trial, end: TrialEnd) -> str | None:
        with self.kill.around():
            line = f"{failed.category}: {mended.mended}"
            known = line in self.cluster.lessons
            self.cluster.lessons.add(line)
            return None if known else line

    async def write_report(self, file: CampaignFile, state: CampaignState) -> str | None:
        with self.kill.around():
            self.cluster.files["campaigns/lr.md"] = f"{state.status} after {len(state.judged)} rounds"
            return "campaigns/lr.md"

    async def advance(self, data: bytes, **said: Any) -> Advanced:
        """One pass, which begins with what the last one of this process knew."""
        done = await advance(data, PATH, "lr", self, self, self.cluster.clock, known=self.known, **said)
        self.known = done.state
        return done


async def run(
    cluster: Cluster, data: bytes, *, kill: Kill | None = None, passes: int = 500, least: float = 120.0
) -> Advanced:
    """Pass after pass, `least` seconds apart, until nothing is awaited; a killed process is followed by another."""
    process = Process(cluster, kill)
    for _ in range(passes):
        try:
            done = await process.advance(data)
        except Killed:
            process = Process(cluster)
            continue
        if done.wait_seconds is None:
            return done
        cluster.clock.at += timedelta(seconds=max(least, done.wait_seconds))
    raise AssertionError(f"not over after {passes} passes: {cluster.state.status}")


def outline(state: CampaignState) -> list[tuple[object, ...]]:
    """What must be the same however often the process was killed: trials, their numbers, and how they ended."""
    return [
        (str(one.trial.id), one.trial.purpose, one.trial.identity, one.phase, one.end.state if one.end else None)
        for one in state.trials.values()
    ]
