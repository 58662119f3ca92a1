"""Where in a large log something shows a failure: grep where the file is, so that only places come back.

Each script is one constant text; file, places and expression are its arguments. What grep prints serves to choose the
places; what is shown is read from the file afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from slurm_agent_tools.diagnosis.signatures import escaped, signatures
from slurm_agent_tools.errors import SlurmMissing
from slurm_agent_tools.slurm.runner import Completed, Runner

FIRST, LAST = 300, 500  # lines that come back of all that match
_KINDS = 500
_FLOOD = 20_000  # lines that match: so many are no signs any more
_ROUNDS = 8
_FILLS = 0.2  # of the last lines that matched before it was called a flood
_SHOWN = 600  # bytes of a line
_SLOWEST = 40 * 2**20  # bytes per second that a file system gives at least
_LEAST, _LONGEST = 30.0, 900.0  # seconds for any search
_ALSO = ("error", "exception", "fatal", "abort", "panic")  # of failures that no signature knows
_SPREAD = 0.7  # of the samples
_FEW = 3  # of fewer samples nothing can be said
# A line that does not fit into that much memory (in KB) ends the search, not the login node.
# As much CPU time as a search may take ends one whose caller was killed.
_CAP = f"ulimit -v 400000 2>/dev/null; ulimit -t {_LONGEST:.0f} 2>/dev/null; "
_GREP = 'grep -a -n -b -i -E -m "$4" -e "$2"'
_AWK = ' | awk "$3"'
# What a progress bar or a hole leaves is taken for line ends, so that no line is longer than the memory.
_CUT = r'tr "\r\000" "\n\n"'
_REST = 'tail -c "+$5" -- "$1" | '
_PART = _REST + 'head -c "$6" | '
_SCRIPTS = {  # (how much of the file, its lines as they are)
    ("all", True): _CAP + _GREP + ' -- "$1"' + _AWK,
    ("all", False): _CAP + _CUT + ' < "$1" | ' + _GREP + _AWK,
    ("rest", True): _CAP + _REST + _GREP + _AWK,
    ("rest", False): _CAP + _REST + _CUT + " | " + _GREP + _AWK,
    ("part", True): _CAP + _PART + _GREP + _AWK,
    ("part", False): _CAP + _PART + _CUT + " | " + _GREP + _AWK,
}
# Prints "line:offset:skipped:text" of the first lines, of the first of each kind (alike but for numbers), of the last
# lines, then how many there were. In a line that is long the text begins shortly before the sign.
_CHOOSE = """{
  match($0, /^[0-9]+:[0-9]+:/); place = substr($0, 1, RLENGTH); text = substr($0, RLENGTH + 1); skip = 0
  if (length(text) > width && match(tolower(text), ENVIRON["SIGNS"]) && RSTART > 200) skip = RSTART - 200
  shown = place skip ":" substr(text, skip + 1, width)
  kind = substr(text, skip + 1, 120); gsub(/[0-9]+/, "", kind)
  if (!(kind in seen) && kinds < most) { kinds++; seen[kind] = 0 }
  fresh = (kind in seen) && seen[kind]++ < 3
  if (NR <= first || fresh) print shown; else ring[others++ % last] = shown
}
END {
  for (i = (others > last ? others - last : 0); i < others; i++) print ring[i % last]
  print "lines:" NR
}"""
_PROGRAM = f"BEGIN {{ width = {_SHOWN}; first = {FIRST}; most = {_KINDS}; last = {LAST} }} " + _CHOOSE
_FOUND = re.compile(rb"(\d+):(\d+):(\d+):(.*)")


@dataclass(frozen=True, slots=True)
class Place:
    """A line with a sign: its number (0: not known), the offset of what is shown of it, and that."""

    line: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class Search:
    """What to look for: expressions by their words, and the words left out because the log is full of them."""

    kept: Mapping[str, str]
    ordinary: tuple[str, ...]
    plain: bool  # lines are short and end in line ends: their numbers are those of the file

    @property
    def expression(self) -> str:
        """All of them joined."""
        return "|".join(self.kept.values())

    def narrowed(self, texts: Sequence[str], most: float) -> Search:
        """The same without what that share of the texts or more hold."""
        judged = {word: _sign(word, texts, most) if _share(texts, word) >= most else text
                  for word, text in self.kept.items()}  # fmt: skip
        kept = {word: text for word, text in judged.items() if text is not None}
        return replace(self, kept=kept, ordinary=(*self.ordinary, *sorted(judged.keys() - kept.keys())))


@dataclass(frozen=True, slots=True)
class Result:
    """The places in order, how many lines matched, and how the search ended."""

    places: tuple[Place, ...]
    lines: int
    ordinary: tuple[str, ...] = ()
    stopped: int | None = None  # the byte behind which nothing was looked for


@cache
def words() -> tuple[str, ...]:
    """What a line has to hold, in small letters, to be looked at."""
    return tuple(sorted({word for signature in signatures() for word in signature.words} | set(_ALSO)))


def plan(samples: Sequence[bytes]) -> Search:
    """Judge by samples from all over the file what is a sign in it: a word that occurs everywhere is none."""
    plain = not any(b"\0" in sample or _long(sample) for sample in samples)
    everything = Search({word: escaped(word) for word in words()}, (), plain)
    texts = [sample.lower().decode("latin-1") for sample in samples if sample]
    return everything.narrowed(texts, _SPREAD) if len(texts) >= _FEW else everything


def _share(texts: Sequence[str], word: str) -> float:
    return sum(word in text for text in texts) / len(texts)


def _sign(word: str, texts: Sequence[str], most: float) -> str | None:
    """The word where it ends (inf, but not info); None where that share of the texts or more hold this, too."""
    ending = re.compile(re.escape(word) + "(?![a-z])")
    if sum(ending.search(text) is not None for text in texts) >= most * len(texts):
        return None
    return f"{escaped(word)}[^a-z]|{escaped(word)}$"


def _long(sample: bytes) -> bool:
    """True where lines are drawn over (a progress bar), or are longer than the sample."""
    return b"\n" not in sample or sample.count(b"\r") > sample.count(b"\r\n")


async def look(runner: Runner, path: str, size: int, span: tuple[int, int], search: Search) -> Result | None:
    """The lines of a range (offset, size) of a file. None where that cannot be done there. Raises TimeoutError.

    Where too much matches, it goes on from there without the words that fill the log.
    """
    start, end = span[0], span[0] + span[1]
    found = Result((), 0)
    for _ in range(_ROUNDS):
        reach = "part" if end < size else "rest" if start else "all"
        more = await _once(runner, path, (start, end - start), search, reach)
        if more is None and search.plain and reach == "all":
            search = replace(search, plain=False)  # a line was too long for the memory
            continue
        if more is None:
            return None
        places = _numbered(more.places, found.places, start, plain=search.plain and span[0] == 0)
        found = Result(found.places + places, found.lines + more.lines, search.ordinary)
        if more.lines < _FLOOD:
            return found
        search = search.narrowed([place.text.lower() for place in places[-LAST:]], _FILLS)
        start = places[-1].offset + 1
    return replace(found, stopped=start)


def _numbered(new: Sequence[Place], known: Sequence[Place], start: int, *, plain: bool) -> tuple[Place, ...]:
    """Places as they are in the file; the first line of what was searched is the rest of the last one known."""
    base = known[-1].line - 1 if known else 0
    return tuple(replace(one, line=one.line + base if plain else 0, offset=one.offset + start) for one in new)


async def _once(runner: Runner, path: str, span: tuple[int, int], search: Search, reach: str) -> Result | None:
    script = _SCRIPTS[reach, search.plain]
    words = [path, search.expression, _PROGRAM, str(_FLOOD), str(span[0] + 1), str(span[1])]
    env = {"LC_ALL": "C", "SIGNS": search.expression}
    seconds = min(_LEAST + span[1] / _SLOWEST, _LONGEST)  # a file with holes may be of any size
    try:
        done = await runner.run(["sh", "-c", script, "sh", *words], env=env, timeout=seconds)
    except SlurmMissing:
        return None
    if done.timed_out:
        raise TimeoutError
    return _parsed(done)


def _parsed(done: Completed) -> Result | None:
    lines = done.stdout.split(b"\n")
    if done.exit_code != 0 or done.stderr or len(lines) < 2 or not lines[-2].startswith(b"lines:"):
        return None
    found = (_FOUND.fullmatch(line) for line in lines[:-2])
    places = sorted((_place(match) for match in found if match is not None), key=lambda place: place.offset)
    return Result(tuple(places), int(lines[-2].removeprefix(b"lines:")))


def _place(match: re.Match[bytes]) -> Place:
    return Place(int(match[1]), int(match[2]) + int(match[3]), match[4].decode("utf-8", "replace"))
