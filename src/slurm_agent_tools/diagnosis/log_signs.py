"""Which words are signs of a failure in a large log, and what lies around which of them tells most of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from slurm_agent_tools.diagnosis.excerpt import read_text, split_rank
from slurm_agent_tools.diagnosis.signatures import escaped, matching, shortest, signatures

_ALSO = ("error", "exception", "fatal", "abort", "panic")  # of failures that no signature knows

_SPREAD = 0.7  # of the samples

_FEW = 3  # of fewer samples nothing can be said

_HEAD, _TAIL = 32 * 1024, 160 * 1024  # bytes of the ends, which are always shown

_BEFORE, _AFTER, _TRACE = 6 * 1024, 3 * 1024, 12 * 1024  # bytes around a sign

_NEAR = 1024

_FIRST, _LAST = 40, 60  # of places that are alike but for numbers

_NUMBERS = re.compile(r"\d+")

_TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True, slots=True)
class SignPosition:
    """A line with a sign: its number (0: not known), the offset of what is shown of it, and that."""

    line: int
    offset: int
    text: str


@dataclass(frozen=True, slots=True)
class LogSearch:
    """What to look for: expressions by their words, and the words left out because the log is full of them."""

    kept: Mapping[str, str]
    ordinary: tuple[str, ...]
    plain: bool  # lines are short and end in line ends: their numbers are those of the file

    @property
    def expression(self) -> str:
        """All of them joined, but for those that hold another one: the fewer the quicker."""
        plain = [word for word, text in self.kept.items() if text == escaped(word)]
        needed = shortest(plain)
        return "|".join(text for word, text in self.kept.items() if word in needed or text != escaped(word))

    def narrowed(self, texts: Sequence[str], most: float) -> LogSearch:
        """The same without what that share of the texts or more hold."""
        # What none of so many texts hold is in less than that share of them all: of most words no more is looked at.
        some = "\n".join(texts[: int(len(texts) * (1 - most)) + 2])
        judged = {word: _sign(word, texts, most) if word in some and _share(texts, word) >= most else text
                  for word, text in self.kept.items()}  # fmt: skip
        kept = {word: text for word, text in judged.items() if text is not None}
        return replace(self, kept=kept, ordinary=(*self.ordinary, *sorted(judged.keys() - kept.keys())))


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The places in order, how many lines matched, and how the search ended."""

    places: tuple[SignPosition, ...]
    lines: int
    ordinary: tuple[str, ...] = ()
    stopped: int | None = None  # the byte behind which nothing was looked for
    flood: bool = False  # so much matched that the search ended there


@cache
def words() -> tuple[str, ...]:
    """What a line has to hold, in small letters, to be looked at."""
    return tuple(sorted({word for signature in signatures() for word in signature.words} | set(_ALSO)))


def plan(samples: Sequence[bytes]) -> LogSearch:
    """Judge by samples from all over the file what is a sign in it: a word that occurs everywhere is none."""
    plain = not any(b"\0" in sample or _long(sample) for sample in samples)
    everything = LogSearch({word: escaped(word) for word in words()}, (), plain)
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


def around(places: Sequence[SignPosition], size: int, budget: int) -> list[tuple[int, int]]:
    """(offset, size) of the ends and of what lies around the places that tell most, until the budget is used up."""
    taken = [(0, _HEAD), (size - _TAIL, size)]
    spent = 0
    for place in _by_worth(_few(places)):
        after = _TRACE if _TRACEBACK in place.text else _AFTER
        start, end = max(0, place.offset - _BEFORE), min(size, place.offset + after)
        new = _merged([*taken, (start, end)])
        cost = sum(span[1] - span[0] for span in new) - sum(span[1] - span[0] for span in taken)
        if spent + cost > budget:
            break
        taken, spent = new, spent + cost
    return [(start, end - start) for start, end in _merged(taken)]


def _merged(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1] + _NEAR:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


def _few(places: Sequence[SignPosition]) -> list[SignPosition]:
    """Without those in the middle of a flood: of places that are alike but for numbers more tell nothing new."""
    alike: dict[str, list[SignPosition]] = {}
    for place in places:
        alike.setdefault(_NUMBERS.sub("", place.text), []).append(place)
    kept = {place.offset for same in alike.values() for place in (*same[:_FIRST], *same[-_LAST:])}
    return [place for place in places if place.offset in kept]


def _by_worth(places: Sequence[SignPosition]) -> Iterator[SignPosition]:
    """Lines that a signature really matches before the others; of each signature in turn the last, then the first."""
    data = b"\n".join(place.text.encode() for place in places)
    lines = read_text("", "stdout", data, b"", len(data)).lines
    kinds: dict[str, list[int]] = {}
    for index, signature, _ in matching([split_rank(line.text)[1] for line in lines]):
        kinds.setdefault(signature.id, []).append(lines[index].line - 1)
    telling = {index for found in kinds.values() for index in found}
    yield from _in_turn(places, list(kinds.values()))
    yield from _in_turn(places, [[index for index in range(len(places)) if index not in telling]])


def _in_turn(places: Sequence[SignPosition], groups: Sequence[list[int]]) -> Iterator[SignPosition]:
    """Of each group the last one, then of each the first, and so on; it empties the groups."""
    turn = 0
    while any(groups):
        for group in filter(None, groups):
            yield places[group.pop(0 if turn % 3 == 1 else -1)]
        turn += 1


# --- The search where the file is: one constant text for `sh`, its words, and how what it prints is read --------------

# File, places and expression are its arguments. What grep prints serves to choose the places; what is shown is read
# from the file afterwards.

Reach = Literal["all", "rest", "part"]
"""How much of a file is searched: all of it, from a byte on, or a part."""

FIRST, LAST = 300, 500  # lines that come back of all that match

_KINDS = 500

_FLOOD, _TEXT = 20_000, 8 * 2**20  # lines that match, and their bytes: so many are no signs any more

_SHOWN = 600  # bytes of a line

LONGEST = 900.0  # seconds for any search

# A line that does not fit into that much memory (in KB) ends the search, not the login node.
# As much CPU time as a search may take ends one whose caller was killed.
_CAP = f"ulimit -v 400000 2>/dev/null; ulimit -t {LONGEST:.0f} 2>/dev/null; "

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


def command(path: str, span: tuple[int, int], search: LogSearch, reach: Reach) -> tuple[list[str], Mapping[str, str]]:
    """The words and the environment of a search in a range (offset, size) of a file."""
    expression = search.expression
    words = [path, expression, _PROGRAM, str(_FLOOD), str(span[0]), str(span[1])]
    return ["sh", "-c", _SCRIPTS[reach, search.plain], "sh", *words], {"LC_ALL": "C", "SIGNS": expression}


def parsed(stdout: bytes) -> SearchResult | None:
    """What such a search printed; None where it did not come to its end."""
    lines = stdout.split(b"\n")
    end = _END.fullmatch(lines[-2]) if len(lines) > 1 else None
    if end is None:
        return None
    found = (_FOUND.fullmatch(line) for line in lines[:-2])
    places = sorted((_place(match) for match in found if match is not None), key=lambda place: place.offset)
    return SearchResult(tuple(places), int(end[2]), flood=end[1] == b"flood")


def _place(match: re.Match[bytes]) -> SignPosition:
    return SignPosition(int(match[1]), int(match[2]) + int(match[3]), match[4].decode("utf-8", "replace"))
