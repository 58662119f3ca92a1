"""Where in a large log something shows a failure: grep where the file is, so that only places come back.

Each script is one constant text; file, places and expression are its arguments. What grep prints serves to choose the
places; what is shown is read from the file afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from slurm_agent_tools.diagnosis.log_signs import LogSearch, SearchResult, SignPosition
from slurm_agent_tools.errors import SlurmMissing
from slurm_agent_tools.transport.base import Completed, Runner

FIRST, LAST = 300, 500  # lines that come back of all that match

_KINDS = 500

_FLOOD, _TEXT = 20_000, 8 * 2**20  # lines that match, and their bytes: so many are no signs any more

_ROUNDS = 8

_FILLS, _MIXED = 0.2, 0.05  # of the last lines that matched before it was called a flood; of one that goes on

_SHOWN = 600  # bytes of a line

_SLOWEST = 40 * 2**20  # bytes per second that a file system gives at least

_LEAST, _LONGEST = 30.0, 900.0  # seconds for any search

# A line that does not fit into that much memory (in KB) ends the search, not the login node.
# As much CPU time as a search may take ends one whose caller was killed.
_CAP = f"ulimit -v 400000 2>/dev/null; ulimit -t {_LONGEST:.0f} 2>/dev/null; "

_GREP = 'grep -a -b -i -E -m "$4" -e "$2"'

_LINES = _GREP + " -n"  # counting takes long where lines are short

_AWK = ' | awk "$3"'

_COUNTED = ' | awk -v counted=1 "$3"'

# What a progress bar or a hole leaves is taken for line ends, so that no line is longer than the memory.
_CUT = r'tr "\r\000" "\n\n"'

# Moves on in the file that is standard input: grep reads it twice as fast as a pipe.
_FROM = 'dd bs=1 skip="$5" count=0 2>/dev/null || echo "cannot begin there" >&2; '

_PART = 'head -c "$6" | '

_SCRIPTS = {  # (how much of the file, its lines as they are)
    ("all", True): _CAP + _LINES + ' < "$1"' + _COUNTED,
    ("all", False): _CAP + _CUT + ' < "$1" | ' + _GREP + _AWK,
    ("rest", True): _CAP + "{ " + _FROM + _LINES + '; } < "$1"' + _COUNTED,
    ("rest", False): _CAP + "{ " + _FROM + _CUT + '; } < "$1" | ' + _GREP + _AWK,
    ("part", True): _CAP + "{ " + _FROM + _PART + _LINES + '; } < "$1"' + _COUNTED,
    ("part", False): _CAP + "{ " + _FROM + _PART + _CUT + '; } < "$1" | ' + _GREP + _AWK,
}

# Prints "line:offset:skipped:text" of the first lines, of the first of each kind (alike but for numbers), of the last
# lines, then how many there were, and ends where they are a flood. In a line that is long the text begins shortly
# before the sign.
_CHOOSE = """{
  match($0, head); place = (counted ? "" : "0:") substr($0, 1, RLENGTH); text = substr($0, RLENGTH + 1); skip = 0
  if (length(text) > width && match(tolower(text), ENVIRON["SIGNS"]) && RSTART > 200) skip = RSTART - 200
  shown = place skip ":" substr(text, skip + 1, width)
  kind = substr(text, skip + 1, 120); gsub(/[0-9]+/, "", kind)
  if (!(kind in seen) && kinds < most) { kinds++; seen[kind] = 0 }
  fresh = (kind in seen) && seen[kind]++ < 3
  if (NR <= first || fresh) print shown; else ring[others++ % last] = shown
  bytes += length($0); if (NR == most_lines || (bytes > most_bytes && NR >= last)) { flood = 1; exit }
}
END {
  for (i = (others > last ? others - last : 0); i < others; i++) print ring[i % last]
  print (flood ? "flood:" : "lines:") NR
}"""

_PROGRAM = (
    f"BEGIN {{ width = {_SHOWN}; first = {FIRST}; most = {_KINDS}; last = {LAST};"
    f" most_lines = {_FLOOD}; most_bytes = {_TEXT};"
    ' head = counted ? "^[0-9]+:[0-9]+:" : "^[0-9]+:" } ' + _CHOOSE
)

_FOUND = re.compile(rb"(\d+):(\d+):(\d+):(.*)")

_END = re.compile(rb"(lines|flood):(\d+)")


async def look(runner: Runner, path: str, size: int, span: tuple[int, int], search: LogSearch) -> SearchResult | None:
    """The lines of a range (offset, size) of a file. None where that cannot be done there. Raises TimeoutError.

    Where too much matches, it goes on from there without the words that fill the log.
    """
    start, end = span[0], span[0] + span[1]
    found = SearchResult((), 0)
    for turn in range(_ROUNDS):
        reach = "part" if end < size else "rest" if start else "all"
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
        search = search.narrowed([place.text.lower() for place in places[-LAST:]], most)
        start = places[-1].offset + 1
    return replace(found, stopped=start)


def _numbered(
    new: Sequence[SignPosition], known: Sequence[SignPosition], start: int, *, plain: bool
) -> tuple[SignPosition, ...]:
    """Places as they are in the file; the first line of what was searched is the rest of the last one known."""
    base = known[-1].line - 1 if known else 0
    return tuple(replace(one, line=one.line + base if plain else 0, offset=one.offset + start) for one in new)


async def _once(runner: Runner, path: str, span: tuple[int, int], search: LogSearch, reach: str) -> SearchResult | None:
    script = _SCRIPTS[reach, search.plain]
    expression = search.expression
    words = [path, expression, _PROGRAM, str(_FLOOD), str(span[0]), str(span[1])]
    env = {"LC_ALL": "C", "SIGNS": expression}
    seconds = min(_LEAST + span[1] / _SLOWEST, _LONGEST)  # a file with holes may be of any size
    try:
        done = await runner.run(["sh", "-c", script, "sh", *words], env=env, timeout=seconds)
    except SlurmMissing:
        return None
    if done.timed_out:
        raise TimeoutError
    return _parsed(done)


def _parsed(done: Completed) -> SearchResult | None:
    lines = done.stdout.split(b"\n")
    end = _END.fullmatch(lines[-2]) if len(lines) > 1 else None
    if done.exit_code != 0 or done.stderr or end is None:
        return None
    found = (_FOUND.fullmatch(line) for line in lines[:-2])
    places = sorted((_place(match) for match in found if match is not None), key=lambda place: place.offset)
    return SearchResult(tuple(places), int(end[2]), flood=end[1] == b"flood")


def _place(match: re.Match[bytes]) -> SignPosition:
    return SignPosition(int(match[1]), int(match[2]) + int(match[3]), match[4].decode("utf-8", "replace"))
