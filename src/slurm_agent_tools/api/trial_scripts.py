"""Scripts of trials, which run the same and ask for more or less: what they run is read once, each request alone."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from slurm_agent_tools.models.request import ScriptLayout, ScriptReading, ShellCommand, ShellWord
from slurm_agent_tools.programs.program import cost
from slurm_agent_tools.scripts.analyse import requested
from slurm_agent_tools.scripts.directive_lines import AMOUNTS
from slurm_agent_tools.scripts.reader import leads, read_script
from slurm_agent_tools.scripts.reading_state import as_shown

if TYPE_CHECKING:
    from slurm_agent_tools.transport.base import Files, Stat

_LARGEST = 2**16
"""Bytes of a script of which this is told; beyond, limits of what is read at all may lie between two that are alike."""

_HEAD = re.compile(rb"#!/bin/bash\n(?:#[^\n]*\n|\n)*")
_AMOUNT = re.compile(rb"^#SBATCH --([a-z-]+)=[\w:%,-]+$", re.MULTILINE)


class TrialScripts:
    """Reads scripts for one call, during which files count as they were when they were first asked for."""

    def __init__(self) -> None:
        self._files: dict[int, FilesOnce] = {}
        self._read: dict[Hashable, ScriptReading] = {}

    async def read(
        self,
        data: bytes,
        path: str,
        *,
        project: str,
        files: Files,
        arguments: Mapping[str, str] | None = None,
        args: Sequence[str] | None = None,
    ) -> ScriptReading:
        """As reader.read_script reads it, to the letter."""
        once = cast("Files", self._files.setdefault(id(files), FilesOnce(files)))
        head = _HEAD.match(data)
        if head is None or len(data) > _LARGEST:
            return await read_script(data, path, project=project, files=once, arguments=arguments, args=args)
        request = requested(data, path, arguments)
        stated = tuple((one.option, one.value) for one in request.directives if one.option not in AMOUNTS)
        told = None if args is None else tuple(args)
        bare = _AMOUNT.sub(_blank, head[0])
        key = (id(files), project, path, told, stated, cost(data, "shell"), bare, data[head.end() :])
        found = self._read.get(key)
        if found is None:
            found = await read_script(data, path, project=project, files=once, arguments=arguments, args=args)
            self._read[key] = found
            return found
        text = as_shown(data.decode("utf-8", "surrogateescape"))
        script = replace(
            found, sha256=hashlib.sha256(data).hexdigest(), text=text, request=request,
            layout=_moved(found.layout, len(text) - len(found.text)),
        )  # fmt: skip
        return replace(script, leads=await leads(script, await once.real_path(project), once))


def _blank(line: re.Match[bytes]) -> bytes:
    return b"#" if line[1].decode() in AMOUNTS else line[0]


def _moved(layout: ScriptLayout | None, by: int) -> ScriptLayout | None:
    """The same commands so many characters further on: a longer head stands before all of them."""
    if layout is None or not by:
        return layout

    def words(those: Sequence[ShellWord]) -> tuple[ShellWord, ...]:
        return tuple(replace(one, start=one.start + by, end=one.end + by) for one in those)

    def command(one: ShellCommand) -> ShellCommand:
        return replace(
            one, start=one.start + by, end=one.end + by, stop=one.stop + by, words=words(one.words),
            assigns=words(one.assigns), heredocs=tuple((start + by, end + by) for start, end in one.heredocs),
        )  # fmt: skip

    return ScriptLayout(tuple(command(one) for one in layout.commands))


class FilesOnce:
    """Files of which each is asked for once. Of Files only what a reading asks."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._paths: dict[str, str] = {}
        self._stats: dict[str, Stat | None] = {}
        self._data: dict[tuple[str, int | None], bytes | None] = {}

    async def real_path(self, path: str) -> str:
        """See Files."""
        if path not in self._paths:
            self._paths[path] = await self._files.real_path(path)
        return self._paths[path]

    async def stat(self, path: str) -> Stat | None:
        """See Files."""
        if path not in self._stats:
            self._stats[path] = await self._files.stat(path)
        return self._stats[path]

    async def read(self, path: str, *, size: int | None = None) -> bytes | None:
        """See Files."""
        if (path, size) not in self._data:
            self._data[path, size] = await self._files.read(path, size=size)
        return self._data[path, size]
