"""Log bytes to lines that can be read, matched and shown: no escapes, no progress bars, no junk, bounded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from slurm_agent_tools.masking import mask
from slurm_agent_tools.replies import EvidenceLine
from slurm_agent_tools.trust import stripped

MAX_LINE = 2000
_KEPT_HEAD, _KEPT_TAIL = 1500, 400

# Control sequences of terminals (ECMA-48): CSI, OSC and its kin up to their end, and two-character escapes.
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x9c|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_BAR = re.compile(r"[\d\s.,:%|/#=>\-_█▏▎▍▌▋▊▉?<\[\]()]+")
_RANK = re.compile(
    r"(?:(?:\[(?:rank|default)?\d+\]|[Rr]ank ?\d+|\[\d+,\d+\]<std(?:out|err)>|\d{1,5}(?=: )):|\(\w+ pid=\d+\))\s?"
)


@dataclass(frozen=True, slots=True)
class LogText:
    """What was read of one output file. A line number is 0 where it is not known."""

    path: str
    kind: Literal["stdout", "stderr"]
    lines: tuple[EvidenceLine, ...]


def read_text(path: str, kind: Literal["stdout", "stderr"], head: bytes, tail: bytes, size: int) -> LogText:
    """Join the first and the last bytes of a file of `size` bytes; between them may lie a part that was not read."""
    gap = size - len(head) - len(tail)
    if not tail or gap <= 0:
        whole = head + (tail[-gap:] if gap < 0 else tail)
        return LogText(path, kind, _safe(_numbered(path, whole, 1)))
    start = head.rpartition(b"\n")[0] or head
    end = tail.partition(b"\n")[2] or tail
    lines = list(_numbered(path, start, 1))
    lines.append(EvidenceLine(file=path, line=0, text=f"[... {size - len(start) - len(end)} bytes were not read ...]"))
    lines.extend(_numbered(path, end, 0))
    return LogText(path, kind, _safe(lines))


def _safe(lines: Iterable[EvidenceLine]) -> tuple[EvidenceLine, ...]:
    """Without secrets, which may go over several lines, and every line bounded."""
    known = list(lines)
    if not known:
        return ()
    texts = mask("\n".join(line.text for line in known)).split("\n")
    pairs = zip(known, texts, strict=True)
    return tuple(_changed(line, text.rstrip()) for line, text in pairs if text.strip())


def _changed(line: EvidenceLine, text: str) -> EvidenceLine:
    short = _bounded(text)
    return line if short == line.text else EvidenceLine(file=line.file, line=line.line, text=short)


def _numbered(path: str, data: bytes, first: int) -> Iterator[EvidenceLine]:
    """Every line that shows something; `first` 0: the numbers are not known."""
    for offset, raw in enumerate(data.split(b"\n")):
        number = first + offset if first else 0
        for text in _shown(raw):
            yield EvidenceLine(file=path, line=number, text=text)


def clean(data: bytes) -> list[str]:
    """The lines of a log as a person would read them, blank ones left out."""
    return [line.text for line in _safe(_numbered("", data, 1))]


def _shown(raw: bytes) -> list[str]:
    """What is left of one line; several texts where a progress bar was overwritten by something else."""
    if raw.count(b"\0") * 10 > len(raw):
        return [f"[{len(raw)} bytes of binary data]"]
    text = _ESCAPES.sub("", raw.decode("utf-8", "replace"))
    if text.count("\ufffd") * 4 > len(text):
        return [f"[{len(raw)} bytes of binary data]"]
    parts = text.split("\r") if "\r" in text else [text]
    plain = [part for part in (stripped(part).rstrip() for part in parts) if part]
    return list(_redrawn(plain))


def _redrawn(parts: list[str]) -> Iterator[str]:
    """A bar that is drawn again replaces the one before it; anything else is kept."""
    for index, part in enumerate(parts):
        following = parts[index + 1] if index + 1 < len(parts) else None
        if following is None or _BAR.sub("", part) != _BAR.sub("", following):
            yield part


def _bounded(text: str) -> str:
    if len(text) <= MAX_LINE:
        return text
    cut = len(text) - _KEPT_HEAD - _KEPT_TAIL
    return f"{text[:_KEPT_HEAD]} [... {cut} characters ...] {text[-_KEPT_TAIL:]}"


def split_rank(text: str) -> tuple[str, str]:
    """(prefix, rest) of a line that a launcher marked with its rank: `[rank3]: `, `3: `, `[1,3]<stderr>:`."""
    match = _RANK.match(text)
    return (match[0].strip(), text[match.end() :]) if match else ("", text)
