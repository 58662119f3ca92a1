"""The directives of a batch script, line by line as sbatch reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from slurm_agent_tools.jobscript import options
from slurm_agent_tools.model import Directive, Evidence

MAX_BYTES = 4 * 2**20
_SPACE = " \t\v\f\r"
_EARLY = {"help", "quiet", "usage", "verbose", "version", "wrap"}
_RESOURCES = {
    "mem", "mem-per-cpu", "mem-per-gpu", "gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres", "time",
    "nodes", "ntasks", "array", "cpus-per-task", "tres-per-task",
}  # fmt: skip
_JUSTIFIED = re.compile(r"JUSTIFIED:\s*(.+)", re.IGNORECASE)


@dataclass(slots=True)
class Header:
    """What the directives of one script say. `problems` hold the reason and the line."""

    directives: list[Directive] = field(default_factory=list)
    problems: list[Evidence] = field(default_factory=list)
    components: int = 1
    interpreter: str | None = None
    justification: str | None = None


def read_directives(data: bytes, file: str) -> Header:
    """Everything that sbatch takes from a script before it runs. Never raises: what cannot be read is a problem."""
    header = Header()
    whole = _unreadable(data)
    if whole is not None:
        header.problems.append(Evidence(file, 1, whole))
        return header
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    header.interpreter = lines[0][2:].strip()
    for number, line in _reached(lines):
        _read_line(header, Evidence(file, number, line))
    header.problems += [
        Evidence(file, number, f"sbatch would also obey this line of another scheduler: {line[:200]}")
        for number, line in enumerate(lines[:2000], start=1)
        if line.startswith(("#PBS", "#BSUB"))
    ]
    return header


def _unreadable(data: bytes) -> str | None:
    """Why sbatch, or we, refuse the script as a whole."""
    if not data.strip():
        return "the script is empty"
    if len(data) > MAX_BYTES:
        return f"the script is larger than {MAX_BYTES} bytes"
    if not data.startswith(b"#!"):
        return "the script does not start with #!"
    if b"\0" in data:
        return "the script holds a NUL byte"
    if b"\r\n" in data:
        return "the script has DOS line ends (CR LF), which sbatch refuses"
    return None


def _reached(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Directive lines up to the first line that is neither blank nor a comment."""
    for number, line in enumerate(lines, start=1):
        bare = line.lstrip(_SPACE)
        if bare and not bare.startswith("#"):
            return
        if line.startswith(("#SBATCH", "#SLURM")):
            yield number, line


def _read_line(header: Header, place: Evidence) -> None:
    text = place.text[7:] if place.text.startswith("#SBATCH") else place.text[6:]
    try:
        words, comment = split(text)
        if words and words[0].lower() in {"hetjob", "packjob"}:
            header.components += 1
            return
        read = options.read(words)
    except ValueError as error:
        header.problems.append(Evidence(place.file, place.line, f"{error}: {place.text[:200]}"))
        return
    made = [Directive(option.name, value, "script", place) for option, value in read if option.name not in _EARLY]
    header.directives += made
    reason = _JUSTIFIED.search(comment)
    if reason is not None and any(directive.option in _RESOURCES for directive in made):
        header.justification = reason[1].strip()


def split(text: str) -> tuple[list[str], str]:
    """Words of a directive line and the comment behind them: quotes group, a backslash takes the next sign as it is.

    ValueError for what sbatch refuses or what reads differently in different versions.
    """
    words: list[str] = []
    position = 0
    while True:
        while position < len(text) and text[position] in _SPACE:
            position += 1
        if position == len(text):
            return words, ""
        if text[position] == "#":
            return words, text[position + 1 :]
        word, position = _word(text, position)
        if not word:
            raise ValueError("an empty word ends the line for sbatch")
        words.append(word)


def _word(text: str, position: int) -> tuple[str, int]:
    word: list[str] = []
    quote = ""
    while position < len(text):
        sign = text[position]
        if sign == "\\":
            if text[position + 1 : position + 2] in tuple(_SPACE):
                raise ValueError("an escaped blank reads differently in different versions of Slurm")
            word.append(text[position + 1 : position + 2])
            position += 2
            continue
        if quote:
            if sign == quote:
                quote = ""
            else:
                word.append(sign)
        elif sign in "'\"":
            quote = sign
        elif sign in _SPACE or sign == "#":
            break
        else:
            word.append(sign)
        position += 1
    if quote:
        raise ValueError("a quote is not closed")
    return "".join(word), position
