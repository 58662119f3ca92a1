"""Which parts of a log are read: all of a small one, else its ends and what lies around the signs of a failure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import anyio

from slurm_agent_tools.diagnosis import excerpt
from slurm_agent_tools.diagnosis.excerpt import FilePiece
from slurm_agent_tools.diagnosis.log_signs import LogSearch, SearchResult, SignPosition, around, plan
from slurm_agent_tools.services.log_search import look
from slurm_agent_tools.transport.base import Files, Runner
from slurm_agent_tools.units import how_many, human_memory

SMALL = 256 * 1024  # bytes of a file that is read as a whole

_BLIND_HEAD, _BLIND_TAIL = 256 * 1024, 1024 * 1024  # where nothing can be searched

REACH = 8 * 2**20  # of each end, searched whatever the mode

_SLACK = 64 * 1024  # what matters may begin a little before what is found

_BUDGET, _WHOLE_BUDGET = 256 * 1024, 768 * 1024  # bytes around the signs

_SPOTS, _SPOT = 8, 16 * 1024

_NOT_WHOLE = "it could not be searched from end to end: that took too long, or a line of it is too long"


@dataclass(frozen=True, slots=True)
class LogFileSource:
    """A regular file, and what runs commands where it is."""

    runner: Runner
    files: Files
    path: str
    size: int


@dataclass(frozen=True, slots=True)
class LogParts:
    """What was read, what the gaps between are, and what to tell about it."""

    pieces: tuple[FilePiece, ...]
    left: str = "are not shown"
    notes: tuple[str, ...] = ()


async def read(source: LogFileSource, *, whole: bool) -> LogParts | None:
    """The parts that matter; None where the file is gone."""
    if source.size <= SMALL:
        data = await source.files.read(source.path, size=SMALL)
        return None if data is None else LogParts((FilePiece(0, len(data), data[: source.size], 1),))
    head = await source.files.read(source.path, size=_SPOT)
    if head is None:
        return None
    if excerpt.codec(head) is not None:
        return await _ends(source, "it is in UTF-16, in which nothing can be searched")
    found = await _large(source, whole=whole)
    return found or await _ends(source, "it could not be searched there (grep and awk are needed, and enough time)")


async def last(source: LogFileSource, size: int) -> LogParts | None:
    """The last bytes alone; None where the file is gone."""
    start = max(0, source.size - size)
    data = await source.files.read(source.path, offset=start, size=source.size - start)
    return (
        None
        if data is None
        else LogParts((FilePiece(start, start + len(data), data, 0 if start else 1),), "were not read")
    )


async def _large(source: LogFileSource, *, whole: bool) -> LogParts | None:
    """From end to end where that is asked for or not much, else both ends; None where nothing can be searched."""
    end = REACH + _SLACK
    found = None
    if whole or source.size <= 2 * end:
        found = await _looked(source, [(0, source.size)], _WHOLE_BUDGET if whole else _BUDGET)
    if found is not None or source.size <= 2 * end:
        return found
    found = await _looked(source, [(0, end), (source.size - end, end)], _BUDGET)
    if found is None or not whole:
        return found
    return replace(found, notes=(_NOT_WHOLE, *found.notes[:1]))


async def _looked(source: LogFileSource, spans: Sequence[tuple[int, int]], budget: int) -> LogParts | None:
    """The ends, and what lies around the signs that a search of these ranges (offset, size) finds."""
    samples = await source.files.read_parts(source.path, _spots(spans))
    if samples is None:
        return None
    search = plan(samples)
    results = await _searched(source, spans, search)
    if results is None:
        return None
    places = [place for result in results for place in result.places]
    chosen = around(places, source.size, budget)
    texts = await source.files.read_parts(source.path, chosen)
    if texts is None:
        return None
    pieces = [_piece(offset, text, places) for (offset, _), text in zip(chosen, texts, strict=True)]
    return LogParts(tuple(pieces), notes=tuple(_told(source.size, spans, results)))


def _spots(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Samples, evenly spread over what is searched."""
    each = _SPOTS // len(spans)
    return [(offset + (size - _SPOT) * index // (each - 1), _SPOT) for offset, size in spans for index in range(each)]


async def _ends(source: LogFileSource, why: str) -> LogParts | None:
    """Head and tail alone."""
    tail = max(_BLIND_HEAD, source.size - _BLIND_TAIL)
    tail -= tail % 2
    spans = [(0, min(_BLIND_HEAD, source.size)), (tail, source.size - tail)]
    data = await source.files.read_parts(source.path, [span for span in spans if span[1] > 0])
    if data is None:
        return None
    pieces = [FilePiece(0, len(data[0]), data[0], 1)]
    pieces += [FilePiece(tail, source.size, text) for text in data[1:]]
    note = f"only its first {human_memory(_BLIND_HEAD)} and its last {human_memory(_BLIND_TAIL)} were read: {why}"
    return LogParts(tuple(pieces), "were not read", (note,))


async def _searched(
    source: LogFileSource, spans: Sequence[tuple[int, int]], search: LogSearch
) -> list[SearchResult] | None:
    """One result for each range, or None where one could not be had."""
    found: list[SearchResult | None] = [None] * len(spans)

    async def at(index: int) -> None:
        with suppress(TimeoutError):
            found[index] = await look(source.runner, source.path, source.size, spans[index], search)

    async with anyio.create_task_group() as group:
        for index in range(len(spans)):
            group.start_soon(at, index)
    known = [result for result in found if result is not None]
    return known if len(known) == len(spans) else None


def _piece(offset: int, data: bytes, places: Sequence[SignPosition]) -> FilePiece:
    """With the number of its first line, where a place in it tells one."""
    known = next((p for p in places if p.line and offset <= p.offset < offset + len(data)), None)
    number = 1 if offset == 0 else known.line - data.count(b"\n", 0, known.offset - offset) if known is not None else 0
    return FilePiece(offset, offset + len(data), data, number)


def _told(size: int, spans: Sequence[tuple[int, int]], results: Sequence[SearchResult]) -> Iterator[str]:
    lines = sum(result.lines for result in results)
    holds = "hold" if lines != 1 else "holds"
    what = f"{how_many(lines, 'line')} {holds} a word of a failure; its ends and what tells most are shown"
    if len(spans) == 1:
        yield f"all {human_memory(size)} of it were searched: {what}"
    else:
        reach = human_memory(REACH)
        yield f"of its {human_memory(size)} the first and the last {reach} were searched: {what}"
        yield "what lies between was not read; mode full searches all of it"
    ordinary = dict.fromkeys(word for result in results for word in result.ordinary)
    if ordinary:
        yield f"not looked for where the log is full of them: {', '.join(list(ordinary)[:10])}"
    for result in results:
        if result.stopped is not None:
            yield f"too much matches, so that the search ended {human_memory(result.stopped)} behind its start"
