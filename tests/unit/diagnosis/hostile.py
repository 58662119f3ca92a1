"""Lines made to keep a regular expression busy, made from the expression itself; also measured by `make bench`."""

from __future__ import annotations

import re
import re._parser as parser  # the one reader of the standard library for its own patterns
from collections.abc import Iterable, Iterator
from itertools import islice
from types import ModuleType
from typing import Any

from tests.effort import tries

from slurm_agent_tools.diagnosis import (
    excerpt,
    harmless_lines,
    log_advice,
    log_figures,
    program_progress,
    python_tracebacks,
    root_cause,
    signature_match,
)
from slurm_agent_tools.diagnosis.signatures import Signature, compiled, signatures

LENGTH = 2000  # what a line of a log is cut to
LOG = 256 * 1024  # bytes
KINDS = ("certain", "causes", "patterns", "weak", "last", "unless")
# These are only asked at a line's beginning.
ANCHORED = {
    "_EXCEPTION", "_FRAME", "_FRAME_ALONE", "_RAISED", "_LOOKING", "_SMALL", "_OUTER", "_OF_SLURM", "_BEGINS", "_RUN_ENDED",
    "_NO_HEAD", "_OTHER", "_CONDA_HELP",
}  # fmt: skip
CLASSES = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "w", "CATEGORY_NOT_WORD": " "}
MODULES = (
    excerpt,
    log_figures,
    signature_match,
    harmless_lines,
    log_advice,
    program_progress,
    python_tracebacks,
    root_cause,
)
UNITS = (
    "salloc: error: ", "failp", "slurmw", "Error: /", "srun: error: Prolog ", "7:", "7.-", None,  # all samples in turn
)  # fmt: skip


def spelled(tree: Iterable[tuple[Any, Any]], filler: str = "x") -> list[str]:
    """A few texts that a parsed pattern matches, or nearly; what may be left out is there and is not."""
    texts = [""]
    for code, value in tree:
        texts = [text + piece for text in texts for piece in pieces(str(code), value, filler)][:6]
    return texts


def pieces(code: str, value: Any, filler: str) -> list[str]:
    if code == "LITERAL":
        return [chr(value)]
    if code == "IN":
        return [member(value)]
    if code == "BRANCH":
        return [text for branch in value[1][:4] for text in spelled(branch, filler)[:2]]
    if code == "SUBPATTERN":
        return spelled(value[3], filler)
    if code.endswith("REPEAT"):
        inner = spelled(value[2], filler)[:2]
        return [text * max(value[0], 1) for text in inner] + ([""] if value[0] == 0 else [])
    return [filler] if code in {"ANY", "NOT_LITERAL"} else [""]


def member(choices: list[tuple[Any, Any]]) -> str:
    code, value = choices[0]
    if str(code) == "LITERAL":
        return chr(value)
    if str(code) == "RANGE":
        return chr(value[0])
    return CLASSES.get(str(value), "x")


def beginnings(tree: Any, filler: str) -> Iterator[str]:
    """What every beginning of a pattern and of its parts spells."""
    items = list(tree)
    for end in range(1, len(items) + 1):
        yield from spelled(items[:end], filler)
    for code, value in items:
        inner = {"SUBPATTERN": lambda v=value: [v[3]], "BRANCH": lambda v=value: v[1]}.get(str(code))
        parts = inner() if inner else [value[2]] if str(code).endswith("REPEAT") else []
        for part in parts:
            yield from beginnings(part, filler)


def hostile(pattern: re.Pattern[str], samples: Iterable[str] = ()) -> Iterator[str]:
    """Lines that repeat the pattern's beginnings, alone, apart, or once before a long run of one sign."""
    tree = parser.parse(pattern.pattern, pattern.flags)
    found = dict.fromkeys(text for filler in "x " for text in beginnings(tree, filler) if text.strip())
    longest = max(found, key=len, default="")
    apart = list(found)[:: max(1, len(found) // tries(60))]
    for text in (*apart, *(sample[: -len(sample) // 4] for sample in islice(samples, 4))):
        for unit in (text, text + " ", text + "x", text + ": "):
            yield unit * (LENGTH // len(unit) + 1)
            yield unit * (1000 // len(unit)) + longest[:-1] * LENGTH
        for sign in " x1.:/":
            yield text + sign * LENGTH


def lines(pattern: re.Pattern[str], samples: Iterable[str] = ()) -> Iterator[str]:
    """The same as a log has them: cut, and with an end that no pattern is made for."""
    return (line[: LENGTH - 1] + "\x01" for line in hostile(pattern, samples))


def patterns(signature: Signature) -> list[re.Pattern[str]]:
    """All that a signature looks for."""
    return compiled(pattern for kind in KINDS for pattern in getattr(signature, kind))


def others(module: ModuleType) -> dict[str, re.Pattern[str]]:
    """The patterns of a module for texts, by name."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    }


def hostile_log(unit: str | None) -> list[str]:
    """A log full of one of UNITS."""
    units = [unit] if unit else [f"{text} " for signature in signatures() for text in signature.samples]
    ends = (" port in use ", " DUE TO NODE FAILURe ")
    return [(units[n % len(units)] * LENGTH)[:1900] + ends[n % 2] + str(n) for n in range(LOG // LENGTH)]
