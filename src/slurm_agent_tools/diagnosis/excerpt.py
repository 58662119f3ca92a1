"""Log bytes to lines that can be read, matched and shown: no escapes, no progress bars, no junk, bounded."""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise
from typing import Literal

from slurm_agent_tools.models.shapes import EvidenceLine
from slurm_agent_tools.text.sanitize import mask, stripped

MAX_LINE = 2000

_KEPT_HEAD, _KEPT_TAIL = 500, 300

_BEFORE_SIGN, _BEHIND_SIGN = 150, 350

_SIGN = re.compile(
    r"error|exception|out of memory|fault|fatal|fail|kill|denied|not found|no such|cannot|abort|cancel|exceeded",
    re.IGNORECASE,
)

# Control sequences of terminals (ECMA-48): CSI, OSC and its kin up to their end, and two-character escapes.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x9c|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)

_KEY_END = re.compile(rb"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")

_GAP = re.compile(r"\[\.\.\. \d+ bytes (?:were not read|are not shown) \.\.\.\]")

_BAR = re.compile(r"[\d\s.,:%|/#=>\-_█▏▎▍▌▋▊▉?<\[\]()]+")

# Which process wrote a line: ranks as torchrun, mpirun and srun mark them, workers of Ray and vLLM, what pyxis shows
# of a container's own log. Behind it may stand where an error was logged from, which is another one on every line.
_RANK = re.compile(
    r"(?:(?:\d{1,5}: )?slurmstepd: error: pyxis: {4,}"
    r"|(?:(?:\[default\d+\]:)?\[(?:rank|default)?\d+\]|[Rr]ank ?\d+|\[\d+,\d+\]<std(?:out|err)>| {0,4}\d{1,5}(?=: )):"
    r"|\(\w+(?: \w+=[\w.]+,?)*? pid=\d+(?:, [^()]{1,60})?\)(?: \[\w+-\d+\](?= ))?"
    r")\s?"
)

_LOGGED_AT = re.compile(r"ERROR \d\d-\d\d \d\d:\d\d:\d\d (?:\[?\w[\w./]*:\d+\]\s?)?")


@dataclass(frozen=True, slots=True)
class LogText:
    """What was read of one output file. A line number is 0 where it is not known.

    `places`: how far down in the whole file each line is, in lines, blank ones counted; where a part was left out, by
    the mean length of a line. Empty: the lines are all there are.
    """

    path: str
    kind: Literal["stdout", "stderr"]
    lines: tuple[EvidenceLine, ...]
    places: tuple[int, ...] = ()

    def place(self, index: int) -> int:
        """Where a line is in the file, counted in lines."""
        return self.places[index] if self.places else index


@dataclass(frozen=True, slots=True)
class FilePiece:
    """A part of a file from byte `offset` on, before byte `end`. `number`: of its first line, 0 where not known."""

    offset: int
    end: int
    data: bytes
    number: int = 0


def is_gap(line: EvidenceLine) -> bool:
    """True for a line that stands for a part which was left out."""
    return line.line == 0 and _GAP.fullmatch(line.text) is not None


def read_text(path: str, kind: Literal["stdout", "stderr"], head: bytes, tail: bytes, size: int) -> LogText:
    """Join the first and the last bytes of a file of `size` bytes; between them may lie a part that was not read."""
    gap = size - len(head) - len(tail)
    if not tail or gap <= 0:
        whole = head + (tail[-gap:] if gap < 0 else tail)
        return assemble(path, kind, [FilePiece(0, len(whole), whole, 1)], len(whole))
    pieces = [FilePiece(0, len(head), head, 1), FilePiece(size - len(tail), size, tail)]
    return assemble(path, kind, pieces, size, "were not read")


def assemble(
    path: str, kind: Literal["stdout", "stderr"], pieces: Sequence[FilePiece], size: int, left: str = "are not shown"
) -> LogText:
    """Join parts of a file in their order; lines that a part's ends cut go, `left` tells what the gaps are."""
    whole = [_trimmed(piece, size) for piece in pieces]
    mean = _mean(whole)
    lines: list[EvidenceLine] = []
    places: list[int] = []
    here, end = 0, 0
    for piece in whole:
        if piece.offset > end and lines:
            text = f"[... {piece.offset - end} bytes {left} ...]"
            lines.append(EvidenceLine(file=path, line=0, text=text))
            places.append(here)
        here = max(here, piece.number - 1) if piece.number else here + (piece.offset - end) // mean
        count = len(lines)
        for offset, line in _numbered(path, piece.data, piece.number):
            lines.append(line)
            places.append(here + offset)
        here = (places[-1] if len(places) > count else here) + 1
        end = piece.end
    return _safe(LogText(path, kind, tuple(lines), tuple(places)))


def _trimmed(piece: FilePiece, size: int) -> FilePiece:
    """Without the lines that its ends cut, unless there are no others, and without the end of a private key."""
    data, number, offset, end = piece.data, piece.number, piece.offset, piece.end
    if offset:
        cut = data.find(b"\n") + 1
        key = _KEY_END.search(data)
        cut = max(cut, key.end()) if key is not None and b"-----BEGIN" not in data[: key.start()] else cut
        number += data.count(b"\n", 0, cut) if number else 0
        data, offset = data[cut:], offset + cut
    if end < size:
        cut = data.rfind(b"\n")
        end -= len(data) - cut if cut >= 0 else 0
        data = data[:cut] if cut >= 0 else data
    return FilePiece(offset, end, data, number)


def _mean(pieces: Sequence[FilePiece]) -> int:
    """Bytes of a line."""
    return max(1, sum(len(piece.data) for piece in pieces) // (1 + sum(piece.data.count(b"\n") for piece in pieces)))


def _safe(text: LogText) -> LogText:
    """Without secrets, which may go over several lines, without what is blank then, and every line bounded."""
    if not text.lines:
        return text
    texts = mask("\n".join(line.text for line in text.lines)).split("\n")
    kept = [
        (_changed(line, shown.rstrip()), place)
        for line, shown, place in zip(text.lines, texts, text.places, strict=True)
        if shown.strip()
    ]
    return LogText(text.path, text.kind, tuple(line for line, _ in kept), tuple(place for _, place in kept))


def _changed(line: EvidenceLine, text: str) -> EvidenceLine:
    short = _bounded(text)
    return line if short == line.text else EvidenceLine(file=line.file, line=line.line, text=short)


def _numbered(path: str, data: bytes, first: int) -> Iterator[tuple[int, EvidenceLine]]:
    """Every line that shows something, counted from 0; `first` 0: the numbers are not known."""
    for offset, raw in enumerate(data.split(b"\n")):
        number = first + offset if first else 0
        for text in _shown(raw):
            yield offset, EvidenceLine(file=path, line=number, text=text)


def clean(data: bytes) -> list[str]:
    """The lines of a log as a person would read them, blank ones left out."""
    return [line.text for line in read_text("", "stdout", data, b"", len(data)).lines]


@lru_cache(maxsize=16)  # a log may repeat its lines without end
def _shown(raw: bytes) -> tuple[str, ...]:
    """What is left of one line; several texts where a progress bar was overwritten by something else."""
    if raw.count(b"\0") * 10 > len(raw):
        return (f"[{len(raw)} bytes of binary data]",)
    text = _ESCAPES.sub("", raw.decode("utf-8", "replace"))
    if text.count("\ufffd") * 4 > len(text):
        return (f"[{len(raw)} bytes of binary data]",)
    parts = text.split("\r") if "\r" in text else [text]
    plain = [part for part in (stripped(part).rstrip() for part in parts) if part]
    return tuple(_redrawn(plain))


def _redrawn(parts: list[str]) -> Iterator[str]:
    """A bar that is drawn again replaces the one before it; anything else is kept."""
    for index, part in enumerate(parts):
        following = parts[index + 1] if index + 1 < len(parts) else None
        if following is None or _BAR.sub("", part) != _BAR.sub("", following):
            yield part


def _bounded(text: str) -> str:
    """A long line's beginning and end, and of what is between them the first and the last sign of an error."""
    if len(text) <= MAX_LINE:
        return text
    signs = [match.start() for match in _SIGN.finditer(text, _KEPT_HEAD, len(text) - _KEPT_TAIL)]
    spans = [(0, _KEPT_HEAD), *((at - _BEFORE_SIGN, at + _BEHIND_SIGN) for at in signs[:1] + signs[1:][-1:])]
    shown, end = "", 0
    for start, stop in [*spans, (len(text) - _KEPT_TAIL, len(text))]:
        shown += f" [... {start - end} characters ...] " if start > end else ""
        shown, end = shown + text[max(start, end) : stop], max(stop, end)
    return shown


def split_rank(text: str) -> tuple[str, str]:
    """(prefix, rest) of a line that a launcher marked with its rank: `[rank3]: `, `3: `, `[1,3]<stderr>:`.

    Of an error that vLLM logged the place and the time are left out as well, and the prefix ends with `ERROR`.
    """
    match = _RANK.match(text)
    prefix, rest = (match[0].strip(), text[match.end() :]) if match else ("", text)
    logged = _LOGGED_AT.match(rest) if rest.startswith("ERROR ") else None
    return (prefix, rest) if logged is None else (f"{prefix} ERROR".strip(), rest[logged.end() :])


# --- Logs that several jobs or several runs wrote ---------------------------------------------------------------------


_OF_SLURM = re.compile(
    r"(?:srun|salloc|sbatch|slurm\w{1,12})\S{0,80}: |\[[\dT:.-]{19,}\] error: |\S*/job\d+/slurm_script: "
)

_SLURM_BEGINS = ("s", "[", "/")  # most lines do not: they need not be matched

_JOB = re.compile(r"(?:\b(?:JOB|STEP|Job|Step|job|step) |\b(?:StepId|JobId)=)(\d+)\b|/job0*+(\d++)/slurm_script: ")

_DIGITS = re.compile(r"[0-9a-f]*\d[0-9a-f]*")

_DAYS = re.compile(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun|Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\w*\b|\b[AP]M\b")

_BEGINS = re.compile(
    r"(?=.*\b\d\d:\d\d:\d\d\b)(?!.*\b(?:INFO|DEBUG|WARN|WARNING|ERROR)\b).*(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|(?i:\b(?:start|begin|launch|job)))"
)

_RUN_ENDED = re.compile(
    r"(?:srun|slurmstepd)\S{0,80}: error: |\S*/slurm_script: line \d+: |Execution halted"
    r"|[A-Za-z_][\w.]*(?:Error|Exception)\b|forrtl: severe|Fortran runtime error|ERROR STOP|Exited with exit code [1-9]"
)

_NO_HEAD = re.compile(
    r"Traceback|[\s\[]|[-=*#_+.]{3}|(?i:\W{0,3}(?:epoch|step|iter|batch|cycle)|error|warn|info|debug)|\d+%|.{0,3}$"
    r"|\S{1,300}:\d+: \w*Warning\b"
)

_TWO = 2

_RUNS = 200  # of one log; what is repeated oftener is no head of a run


def named_job(text: str) -> str | None:
    """The number of the job that a line of Slurm's names; None where it names none, or is not Slurm's."""
    if not text.startswith(_SLURM_BEGINS) or not _OF_SLURM.match(text):
        return None
    match = _JOB.search(text)
    return None if match is None else match[1] or match[2]


def last_run(text: LogText, jobs: Collection[str] = ()) -> LogText:
    """What the last of several runs wrote that were appended to one file; all of it where there is no sign of two.

    Signs: lines of Slurm's that name another job before those that name this one (`jobs`: its numbers), and the first
    line again after a run had ended, with nothing but numbers and dates changed.
    """
    start = max(_behind_other_jobs(text, jobs), _again(text), _behind_reports(text))
    if not start:
        return text
    return LogText(text.path, text.kind, text.lines[start:], text.places[start:])


def _behind_reports(text: LogText) -> int:
    """Where the last job begins of which LSF reported into this file, at its head or at its end; 0 where it is one."""
    heads = [index for index, line in enumerate(text.lines) if line.text.startswith("Sender: LSF System")]
    if len(heads) < _TWO:
        return 0
    above = any(line.text.startswith("The output (if any) is above") for line in text.lines[heads[-1] :])
    if not above:
        return heads[-1]
    ends = (index for index in range(heads[-2], heads[-1]) if text.lines[index].text.startswith("The output (if any)"))
    return max(ends, default=-1) + 1


def _behind_other_jobs(text: LogText, jobs: Collection[str]) -> int:
    """Where the lines of the last job begin; 0 where lines of several jobs lie between each other."""
    named = [(index, job) for index, line in enumerate(text.lines) if (job := named_job(line.text)) is not None]
    if not named or (jobs and named[-1][1] not in jobs):
        return 0
    own = set(jobs) or {named[-1][1]}
    first = next(index for index, job in named if job in own)
    others = [index for index, job in named if job not in own]
    if not others or others[-1] > first:
        return 0
    if not jobs and all(_of_slurm(line.text) for line in text.lines[others[-1] + 1 :]):
        return 0  # it wrote nothing by itself: both wrote into the file at a time
    return others[-1] + 1


def _of_slurm(line: str) -> bool:
    return not line.strip() or (line.startswith(_SLURM_BEGINS) and _OF_SLURM.match(line) is not None)


def _again(text: LogText) -> int:
    """The last place of the first line behind the end of a run; 0 where there is none."""
    lines = [line.text for line in text.lines]
    if not lines or split_rank(lines[0])[0] or _NO_HEAD.match(lines[0]):
        return 0
    ended = [index for index, line in enumerate(lines) if _RUN_ENDED.match(line)]
    if not ended:
        return 0
    head = _alike(lines[0])
    behind = (index for index in range(ended[0] + 1, len(lines)) if lines[index].startswith(lines[0][:1]))
    same = [0, *islice((index for index in behind if _alike(lines[index]) == head), _RUNS)]
    if len(same) > _RUNS or not (_BEGINS.match(lines[0]) or _second(lines, same)):
        return 0
    between = [(before, index) for before, index in pairwise(same) if any(before < end < index for end in ended)]
    starts = [0, *(index for _, index in between)]
    return starts[-2] if len(starts) > 1 and _only_begun(lines, starts[-1], starts[1], ended[-1]) else starts[-1]


def _only_begun(lines: Sequence[str], start: int, first: int, ended: int) -> bool:
    """True where the last run, from `start` on, wrote no more than what the first one, up to `first`, began with."""
    last = lines[start:]
    alike = len(last) < first and all(_alike(line) == _alike(lines[index]) for index, line in enumerate(last))
    return alike and ended < start


def _second(lines: Sequence[str], same: Sequence[int]) -> bool:
    """True where the line behind the first one comes again with it."""
    return len(lines) > 1 and all(
        index + 1 < len(lines) and _alike(lines[index + 1]) == _alike(lines[1]) for index in same[1:]
    )


def _alike(line: str) -> str:
    """A line without what another run changes: numbers, days and months."""
    return _DIGITS.sub("0", _DAYS.sub("", line))


# --- Logs in UTF-16, as some Windows tools write them, as UTF-8 -------------------------------------------------------


_LOOKED = 4096

_MOSTLY = 0.4  # of every second byte

Codec = Literal["utf-16-le", "utf-16-be"]


def codec(head: bytes) -> Codec | None:
    """How a file of two bytes a sign begins: with a byte order mark, or with NUL in every second place."""
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    first, second = head[:_LOOKED:2].count(0), head[1:_LOOKED:2].count(0)
    half = min(len(head), _LOOKED) / 2
    if half < 4 or (first and second):
        return None
    if second > half * _MOSTLY:
        return "utf-16-le"
    return "utf-16-be" if first > half * _MOSTLY else None


def narrow(pieces: Sequence[FilePiece]) -> list[FilePiece]:
    """The pieces of one file in UTF-8 where its beginning is in UTF-16; they have to start at even offsets."""
    found = codec(pieces[0].data) if pieces and pieces[0].offset == 0 else None
    if found is None:
        return list(pieces)
    return [replace(piece, data=piece.data.decode(found, "replace").encode("utf-8", "replace")) for piece in pieces]
