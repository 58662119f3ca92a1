"""Between bytes and text, where bytes need not be UTF-8."""

from __future__ import annotations

import re

from slurm_agent_tools.model import Evidence

_FLAGS = re.compile(rb"\$\{\([^(){}\s]*\)[^{}\n]*\}|\$\{\.[\w.]+\}")
_WHERE = re.compile(r"(?:line )?(\d+):\d+: (.*)", re.DOTALL)


def shown(text: str) -> str:
    """A text that every reply can hold: bytes that are no UTF-8 become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def undecodable(data: bytes, path: str) -> list[Evidence]:
    """Options with bytes that are no UTF-8: what sbatch makes of them cannot be compared later."""
    what = "the line holds bytes that are no UTF-8 text"
    found = []
    for number, line in enumerate(data.split(b"\n"), start=1) if not data.isascii() else ():
        if line.startswith((b"#!", b"#SBATCH", b"#SLURM")) and "\ufffd" in line.decode("utf-8", "replace"):
            found.append(Evidence(path, number, f"{what}: {line.decode('utf-8', 'replace')[:200]}"))
    return found


def encoded(text: str) -> bytes:
    """The bytes of a text as they stood in its file, for the parser."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a Python text may spell signs that no file can hold
        return text.encode("utf-8", "replace")


def for_bash(text: bytes) -> bytes:
    """A shell text without the expansions of zsh and ksh, `${(%):-%x}` and `${.sh.file}`.

    bash takes them for errors where it comes to them, so they hide nothing that it would run.
    """
    return _FLAGS.sub(lambda found: b"${_}".ljust(len(found[0])), text)


def refused(answer: str) -> tuple[int, str]:
    """(line, why) of the parser's refusal; line 1 where it names none."""
    found = _WHERE.fullmatch(answer)
    return (int(found[1]), found[2]) if found is not None else (1, answer)
