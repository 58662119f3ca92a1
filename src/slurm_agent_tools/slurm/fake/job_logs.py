"""What the jobs of the fake Slurm and Slurm itself write into their logs."""

from __future__ import annotations

import posixpath
from functools import partial

from slurm_agent_tools.slurm.fake.endings import Ending
from slurm_agent_tools.slurm.fake.fake_clock import FakeClock
from slurm_agent_tools.slurm.fake.fake_files import LogDisk
from slurm_agent_tools.slurm.fake.fake_job import FakeJob


class JobLogs:
    """Writes to the disk that the jobs see."""

    def __init__(self, disk: LogDisk, clock: FakeClock) -> None:
        self._disk, self._clock = disk, clock

    def open(self, job: FakeJob, *, make: bool) -> bool:
        """Make its log files; False where a folder is missing, and so the job cannot be set up.

        `make`: folders below the working folder are made, as since 24.11.
        """
        paths = {job.stdout, job.stderr} - {"/dev/null"}
        for folder in {posixpath.dirname(path) for path in paths}:
            if self._disk.folder_exists(folder):
                continue
            if not (make and self._disk.folder_exists(job.work_dir) and folder.startswith(f"{job.work_dir}/")):
                return False
            self._disk.add_folder(folder)
        for path in paths:
            self._disk.put(path, b"", more=job.request.append or job.restarts > 0)
        return True

    def write(self, job: FakeJob, ending: Ending) -> None:
        """What the script prints, each piece at its time."""
        run = job.run
        for seconds, text in ending.pieces():
            if seconds <= 0:
                self._put(job.stdout, text)
            else:
                self._clock.call_at(self._clock.seconds + seconds, partial(self._piece, job, run, text))
        if ending.errors:
            self._put(job.stderr, ending.errors)

    def _piece(self, job: FakeJob, run: int, text: str) -> None:
        if job.run == run and job.state == "RUNNING":
            self._put(job.stdout, text)

    def say(self, job: FakeJob, line: str) -> None:
        """A line of slurmstepd's."""
        self._put(job.stderr, f"{line}\n")

    def cancelled(self, job: FakeJob, why: str) -> None:
        """The line that slurmstepd writes when a running job is ended from outside."""
        if job.state in {"RUNNING", "SUSPENDED"} and job.shares and job.offset == 0:
            when = self._clock.now().strftime("%Y-%m-%dT%H:%M:%S")
            node = job.shares[0].node
            self.say(job, f"slurmstepd-{node}: error: *** JOB {job.number} ON {node} CANCELLED AT {when}{why} ***")

    def _put(self, path: str, text: str) -> None:
        if path != "/dev/null" and self._disk.folder_exists(posixpath.dirname(path)):
            self._disk.put(path, text.encode(), more=True)
