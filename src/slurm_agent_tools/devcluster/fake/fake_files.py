"""Files in memory behind the seam's Files, and the logs that jobs and Slurm itself write into files of either kind."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Protocol

from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.transport.base import Stat


class LogDisk(Protocol):
    """Where the fake Slurm writes the logs of its jobs."""

    def folder_exists(self, path: str) -> bool:
        """Whether a folder is there."""
        ...

    def add_folder(self, path: str) -> None:
        """Make a folder and those above it."""
        ...

    def put(self, path: str, data: bytes, *, more: bool) -> None:
        """Write a file, `more`: at its end."""
        ...


class LocalDisk:
    """Logs on this machine, for tests whose project is a real folder."""

    def folder_exists(self, path: str) -> bool:
        """See LogDisk."""
        return Path(path).is_dir()

    def add_folder(self, path: str) -> None:
        """See LogDisk."""
        Path(path).mkdir(parents=True, exist_ok=True)

    def put(self, path: str, data: bytes, *, more: bool) -> None:
        """See LogDisk."""
        with Path(path).open("ab" if more else "wb") as file:
            file.write(data)


class MemoryFiles:
    """Files, folders and no links; a folder has to be made before a file is written into it, as on a disk."""

    def __init__(self, clock: FakeClock | None = None) -> None:
        self._clock = clock
        self._files: dict[str, tuple[bytes, datetime, int]] = {}
        self._folders: set[str] = {"/"}

    def put(self, path: str, data: bytes, *, more: bool = False, mode: int = 0o644) -> None:
        """Write a file and make its folders: for tests, which need no `await` here."""
        self.add_folder(posixpath.dirname(path))
        before = self._files[path][0] if more and path in self._files else b""
        self._files[path] = (before + data, self._now(), mode)

    def add_folder(self, path: str) -> None:
        """Make a folder and those above it."""
        while path not in self._folders:
            self._folders.add(path)
            path = posixpath.dirname(path)

    def folder_exists(self, path: str) -> bool:
        """Whether a folder is there."""
        return posixpath.normpath(path) in self._folders

    def _now(self) -> datetime:
        return datetime.fromtimestamp(0, UTC) if self._clock is None else self._clock.now()

    async def stat(self, path: str) -> Stat | None:
        """See Files."""
        real = posixpath.normpath(path)
        if real in self._files:
            data, modified, mode = self._files[real]
            return Stat(len(data), "file", modified, 1001, 0o100000 | mode)
        return Stat(0, "dir", self._now(), 1001, 0o040755) if real in self._folders else None

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        """See Files."""
        found = self._files.get(posixpath.normpath(path))
        return None if found is None else found[0][offset : None if size is None else offset + size]

    async def read_parts(self, path: str, parts: Sequence[tuple[int, int]]) -> list[bytes] | None:
        """See Files."""
        found = self._files.get(posixpath.normpath(path))
        return None if found is None else [found[0][offset : offset + size] for offset, size in parts]

    async def write_new(self, path: str, data: bytes, *, mode: int = 0o600) -> bool:
        """See Files."""
        real = posixpath.normpath(path)
        if real in self._files or real in self._folders:
            return False
        self.put(real, data, mode=mode)
        return True

    async def append(self, path: str, data: bytes) -> bool:
        """See Files."""
        real = posixpath.normpath(path)
        if real not in self._files:
            return False
        self.put(real, data, more=True, mode=self._files[real][2])
        return True

    async def write_over(self, path: str, data: bytes, *, mode: int = 0o600) -> None:
        """See Files."""
        real = posixpath.normpath(path)
        if real in self._folders:
            raise StorageError(f"{path}: Is a directory")
        await self.make_folder(posixpath.dirname(real))
        self.put(real, data, mode=mode)

    async def move_over(self, path: str, target: str, *, mode: int = 0o600) -> None:
        """See Files."""
        real, name = posixpath.normpath(path), posixpath.normpath(target)
        if real not in self._files:
            raise StorageError(f"{path}: No such file or directory")
        if name in self._folders:
            raise StorageError(f"{target}: Is a directory")
        data, modified, _ = self._files.pop(real)
        self._files[name] = (data, modified, mode)

    async def link_over(self, path: str, leads: str) -> None:
        """There are no links here."""
        raise StorageError(f"{path}: no link to {leads} can be made here")

    async def remove(self, path: str) -> bool:
        """See Files."""
        real = posixpath.normpath(path)
        if real in self._folders:
            raise StorageError(f"{path}: Is a directory")
        return self._files.pop(real, None) is not None

    async def make_folder(self, path: str) -> None:
        """See Files."""
        real = posixpath.normpath(path)
        if real in self._files:
            raise StorageError(f"{path}: Not a directory")
        self.add_folder(real)

    async def list(self, folder: str) -> list[str] | None:
        """See Files."""
        real = posixpath.normpath(folder)
        if real not in self._folders:
            return None
        stem = real.rstrip("/") + "/"
        return sorted(
            {path[len(stem) :] for path in (*self._files, *self._folders)
             if path.startswith(stem) and len(path) > len(stem) and "/" not in path[len(stem) :]}
        )  # fmt: skip

    async def real_path(self, path: str) -> str:
        """See Files."""
        return posixpath.normpath(path)


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
