"""What scripts of trials run with the values of each: a program, an option or a file may be named by a value.

A script takes its values from its arguments or a table, where no reader sees them. So each is read once more as if its
values stood in it, beside the settings that are written for its run.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from slurm_agent_tools.api.trial_scripts import FilesOnce
from slurm_agent_tools.campaigns.batch import Batch
from slurm_agent_tools.models.request import Finding, ScriptReading
from slurm_agent_tools.scripts.reader import ReadsScripts, read_script
from slurm_agent_tools.transport.base import Stat

if TYPE_CHECKING:
    from slurm_agent_tools.transport.base import Files

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?", re.ASCII)

_OWN = 3
"""Values of a row that are the campaign's: round, number, repeat."""

Row = tuple[str, ...]

_Alike = tuple[object, ...]


class TrialValues:
    """Reads the scripts of these batches with the values of their trials, for one call.

    Numbers of one sign differ in how much: of trials that differ in nothing else those with the least and the largest
    number of each parameter are read. Where these do not run the same files, or break other rules, all are.
    """

    def __init__(self, batches: Iterable[Batch], read: ReadsScripts = read_script) -> None:
        self._read = read
        self._groups: dict[_Alike, list[tuple[Batch, Row]]] = {}
        self._shared: dict[_Alike, tuple[Finding, ...] | None] = {}
        self._alone: dict[tuple[_Alike, Row], _Told] = {}
        self._once: dict[int, FilesOnce] = {}
        for batch in batches:
            for row in batch.rows:
                self._groups.setdefault(_alike(batch, row), []).append((batch, row))

    def reader(self, batch: Batch) -> ReadsScripts:
        """Reads the batch's script as read_script does, with what its trials' values add."""

        async def read(
            data: bytes,
            path: str,
            *,
            project: str,
            files: Files,
            arguments: Mapping[str, str] | None = None,
            args: Sequence[str] | None = None,
        ) -> ScriptReading:
            found = await self._read(data, path, project=project, files=files, arguments=arguments, args=args)
            known = {(one.rule, one.what) for one in found.findings}
            told = [one for row in batch.rows for one in await self._added(batch, row, path, project, files)]
            new = dict.fromkeys(one for one in told if (one.rule, one.what) not in known)
            return replace(found, findings=(*found.findings, *new)) if new else found

        return read

    async def added(self, batch: Batch, project: str, files: Files) -> frozenset[str]:
        """The rules of what is found in the batch's script only because of its trials' values."""
        data, path = batch.script_text.encode(), batch.script_path
        found = await self.reader(batch)(data, path, project=project, files=files)
        plain = await self._read(data, path, project=project, files=files)
        return frozenset(one.rule for one in found.findings[len(plain.findings) :])

    async def _added(self, batch: Batch, row: Row, path: str, project: str, files: Files) -> tuple[Finding, ...]:
        key = _alike(batch, row)
        if key not in self._shared:
            told = [await self._of(*one, path, project, files) for one in _outermost(self._groups[key])]
            alike = len({(one.rules, frozenset(one.asked)) for one in told}) == 1
            self._shared[key] = told[0].findings if alike else None
        shared = self._shared[key]
        return (await self._of(batch, row, path, project, files)).findings if shared is None else shared

    async def _of(self, batch: Batch, row: Row, path: str, project: str, files: Files) -> _Told:
        """One trial's script by itself."""
        key = (_alike(batch, row), row)
        if key not in self._alone:
            root = await files.real_path(project)
            once = self._once.setdefault(id(files), FilesOnce(files))
            told = _Told(
                cast("Files", once), {posixpath.join(root, name): text.encode() for name, text in batch.files.items()}
            )
            data = batch.with_values(row).encode("utf-8", "surrogateescape")
            found = await read_script(data, path, project=project, files=cast("Files", told))
            told.findings = found.findings
            self._alone[key] = told
        return self._alone[key]


def _alike(batch: Batch, row: Row) -> _Alike:
    """The same for trials whose scripts run the same, but for numbers of one sign and their own number."""
    head, _, body = batch.script_text.partition("\nset -euo pipefail\n")
    return head.count("\n"), body, row[0], row[2], *(_kind(value) for value in row[_OWN:])


def _kind(value: str) -> object:
    """A number's kind, whole or not, and its sign; any other value itself."""
    if _NUMBER.fullmatch(value) is None:
        return value
    number = float(value)
    return value.lstrip("+-").isdigit(), (number > 0) - (number < 0)


def _outermost(group: Sequence[tuple[Batch, Row]]) -> list[tuple[Batch, Row]]:
    """The first and the last trial, and those with the least and the largest number of each parameter."""
    found = {id(one): one for one in (group[0], group[-1])}
    for column, value in enumerate(group[0][1]):
        if column >= _OWN and _NUMBER.fullmatch(value):
            for pick in (min, max):
                one = pick(group, key=lambda it, at=column: float(it[1][at]))  # type: ignore[misc]
                found[id(one)] = one
    return list(found.values())


@dataclass(slots=True)
class _Told:
    """Files with those that a batch writes; all that were asked for beside them, and what was found in the end."""

    files: Files
    made: Mapping[str, bytes]
    asked: set[str] = field(default_factory=set)
    findings: tuple[Finding, ...] = ()

    @property
    def rules(self) -> frozenset[str]:
        """Those that something was found for."""
        return frozenset(one.rule for one in self.findings)

    async def real_path(self, path: str) -> str:
        """See Files."""
        if path in self.made:
            return path
        self.asked.add(path)
        return await self.files.real_path(path)

    async def stat(self, path: str) -> Stat | None:
        """See Files."""
        made = self.made.get(path)
        return await self.files.stat(path) if made is None else Stat(len(made), "file", datetime.now(UTC))

    async def read(self, path: str, *, size: int | None = None) -> bytes | None:
        """See Files."""
        made = self.made.get(path)
        return await self.files.read(path, size=size) if made is None else made[:size]
