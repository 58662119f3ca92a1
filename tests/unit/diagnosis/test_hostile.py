"""Lines made to keep a regular expression busy: no pattern takes long on one, nor a diagnosis on a log full of them."""

from __future__ import annotations

import re
import re._parser as parser  # the one reader of the standard library for its own patterns
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pytest
from tests.unit.diagnosis.records import job, log

from slurm_agent_tools.diagnosis import (
    excerpt,
    harmless_lines,
    log_figures,
    program_progress,
    proposals,
    python_tracebacks,
    root_cause,
    signature_match,
)
from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.signatures import Signature, signatures

LENGTH = 2000  # what a line of a log is cut to
SLOW = 0.05  # seconds; patterns take a few milliseconds at worst, those that were mended took 40 to 2500
KINDS = ("certain", "patterns", "weak", "last", "unless")
ANCHORED = {"_EXCEPTION", "_FRAME", "_RAISED", "_LOOKING"}  # these are only asked at a line's beginning
CLASSES = {"CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " ", "CATEGORY_WORD": "w", "CATEGORY_NOT_WORD": " "}
LOG, SOON = 256 * 1024, 2.0  # bytes, and seconds of CPU for them


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
    apart = list(found)[:: max(1, len(found) // 60)]
    for text in (*apart, *(sample[: -len(sample) // 4] for sample in islice(samples, 4))):
        for unit in (text, text + " ", text + "x", text + ": "):
            yield unit * LENGTH
            yield unit * (1000 // len(unit)) + longest[:-1] * LENGTH
        for sign in " x1.:/":
            yield text + sign * LENGTH


def slowest(name: str, search: Callable[[str], object], lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        text = line[: LENGTH - 1] + "\x01"
        if taken(search, text) > SLOW and (seconds := taken(search, text)) > SLOW:  # others use the machine too
            yield f"{name}: {1000 * seconds:.0f} ms for {text[:60]!r}"
            return


def taken(search: Callable[[str], object], text: str) -> float:
    start = time.thread_time()
    search(text)
    return time.thread_time() - start


@pytest.mark.parametrize("signature", signatures(), ids=lambda signature: signature.id)
def test_no_pattern_of_a_signature_is_slow_on_a_line_made_for_it(signature: Signature):
    slow = [
        told
        for kind in KINDS
        for pattern in getattr(signature, kind)
        for told in slowest(pattern.pattern, pattern.search, hostile(pattern, signature.samples))
    ]

    assert not slow


@pytest.mark.parametrize(
    "module",
    [excerpt, log_figures, signature_match, harmless_lines, program_progress, proposals, python_tracebacks, root_cause],
)
def test_no_other_pattern_of_a_diagnosis_is_slow_on_a_line_made_for_it(module):
    patterns = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    }
    assert patterns

    assert not [
        told
        for name, pattern in patterns.items()
        for told in slowest(name, pattern.match if name in ANCHORED else pattern.search, hostile(pattern))
    ]


@pytest.mark.parametrize("unit", ["salloc: error: ", "failp", "slurmw", "Error: /", "srun: error: Prolog ", None])
def test_a_log_full_of_lines_made_to_be_slow_is_diagnosed_soon(unit):
    units = [unit] if unit else [f"{text} " for signature in signatures() for text in signature.samples]
    ends = (" port in use ", " DUE TO NODE FAILURe ")
    lines = [(units[n % len(units)] * LENGTH)[:1900] + ends[n % 2] + str(n) for n in range(LOG // LENGTH)]

    tries: list[float] = []
    while not tries or (tries[-1] > SOON and len(tries) < 3):
        lines.append(f"try {len(tries)}")  # nothing is remembered from the try before
        start = time.process_time()
        diagnose(job(exit_code=1), (), [log(*lines)])
        tries.append(time.process_time() - start)

    assert tries[-1] <= SOON, tries


def test_a_slow_pattern_is_found():
    """The test itself sees what it is for."""
    square = re.compile(r"slurm\w+\S*: .*DUE TO")

    assert list(slowest("square", square.search, hostile(square)))
