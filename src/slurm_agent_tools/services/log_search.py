"""Where in a large log something shows a failure: searched where the file is, so that only places come back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from slurm_agent_tools.diagnosis import log_signs
from slurm_agent_tools.diagnosis.log_signs import LogSearch, Reach, SearchResult, SignPosition
from slurm_agent_tools.errors import SlurmMissing
from slurm_agent_tools.transport.base import Runner

_ROUNDS = 8

_FILLS, _MIXED = 0.2, 0.05  # of the last lines that matched before it was called a flood; of one that goes on

_SLOWEST = 40 * 2**20  # bytes per second that a file system gives at least

_LEAST = 30.0  # seconds for any search


async def look(runner: Runner, path: str, size: int, span: tuple[int, int], search: LogSearch) -> SearchResult | None:
    """The lines of a range (offset, size) of a file. None where that cannot be done there. Raises TimeoutError.

    Where too much matches, it goes on from there without the words that fill the log.
    """
    start, end = span[0], span[0] + span[1]
    found = SearchResult((), 0)
    for turn in range(_ROUNDS):
        reach: Reach = "part" if end < size else "rest" if start else "all"
        more = await _once(runner, path, (start, end - start), search, reach)
        if more is None and search.plain and reach == "all":
            search = replace(search, plain=False)  # a line was too long for the memory
            continue
        if more is None:
            return None
        places = _numbered(more.places, found.places, start, plain=search.plain and span[0] == 0)
        found = SearchResult(found.places + places, found.lines + more.lines, search.ordinary)
        if not more.flood:
            return found
        most = _FILLS if turn < _ROUNDS // 2 else _MIXED
        search = search.narrowed([place.text.lower() for place in places[-log_signs.LAST :]], most)
        start = places[-1].offset + 1
    return replace(found, stopped=start)


def _numbered(
    new: Sequence[SignPosition], known: Sequence[SignPosition], start: int, *, plain: bool
) -> tuple[SignPosition, ...]:
    """Places as they are in the file; the first line of what was searched is the rest of the last one known."""
    base = known[-1].line - 1 if known else 0
    return tuple(replace(one, line=one.line + base if plain else 0, offset=one.offset + start) for one in new)


async def _once(
    runner: Runner, path: str, span: tuple[int, int], search: LogSearch, reach: Reach
) -> SearchResult | None:
    argv, env = log_signs.command(path, span, search, reach)
    seconds = min(_LEAST + span[1] / _SLOWEST, log_signs.LONGEST)  # a file with holes may be of any size
    try:
        done = await runner.run(argv, env=env, timeout=seconds)
    except SlurmMissing:
        return None
    if done.timed_out:
        raise TimeoutError
    return None if done.exit_code != 0 or done.stderr else log_signs.parsed(done.stdout)
