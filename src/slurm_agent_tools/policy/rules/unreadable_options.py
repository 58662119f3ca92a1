"""Options that sbatch cannot read: the same lines without what is wrong with them, and what may have been meant."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Callable, Container, Sequence

from slurm_agent_tools.models import sbatch_options
from slurm_agent_tools.models.request import Directive, Evidence, ScriptReading
from slurm_agent_tools.models.sbatch_options import OptionWord
from slurm_agent_tools.policy.rules.rule import edit, in_words, note, replace, ways
from slurm_agent_tools.scripts import directive_lines
from slurm_agent_tools.scripts.effective_request import effective
from slurm_agent_tools.units import format_duration, parse_span

_SPELLING = "options are written like `#SBATCH --time=02:00:00`, one on a line."

_MORE = "there is more of the same; check again after these."

_SHORTER = "write what is long into a file of the project, and read it from there"

_STEPS, _LONG = 20, 400  # lines that are told, and characters of one that is taken apart

_HEADS = ("#SBATCH", "#SLURM")

_PLAIN = re.compile(r"[\w@%+=:,./\[\]-]+")

_TIMES = ("time", "time-min")

# What the whole file has, and the words with which GNU sed takes it away.
_SED = {
    directive_lines.DOS_ENDS: r"s/\r$//",
    directive_lines.BYTE_ORDER_MARK: r"1s/^\xef\xbb\xbf//",
    directive_lines.NUL_BYTE: r"s/\x00//g",
}

Given = tuple[sbatch_options.SbatchOption, str | None]

Respell = Callable[[str], str]


def corrected(reading: ScriptReading, problems: Sequence[Evidence]) -> str:
    """What to change so that every option can be read; nothing that is right is taken away."""
    lines = reading.text.split("\n")
    whole = next((made for problem in problems if (made := _whole(reading.path, lines, problem.text))), None)
    if whole is not None:
        return whole
    numbers = dict.fromkeys(problem.line for problem in problems if 0 < problem.line <= len(lines))
    stated = [d for d in reading.request.directives if d.source == "script" and d.evidence.line not in numbers]
    others = list({directive.option: directive for directive in stated}.values())  # the last one of each counts
    places = [Evidence(reading.path, number, lines[number - 1]) for number in list(numbers)[:_STEPS]]
    left = {place: _without(place.text, others, _as_it_is) for place in places}
    told = [edit([place], new) for place, new in left.items()]
    told += [_argument(directive) for directive in _arguments(reading, problems, numbers)]
    told.append(note(_MORE if len(numbers) > _STEPS else _SPELLING))
    nearest = [(place, _without(place.text, others, _nearest)) for place in places]
    guess = "\n".join(edit([place], new) for place, new in nearest if new != left[place])
    first = "\n".join(told)
    return ways(first, ("use the option that may be meant", guess)) if guess else first


def _whole(path: str, lines: Sequence[str], problem: str) -> str | None:
    """What to do where the file cannot be read at all; None where single lines are wrong."""
    first = lines[0]
    if problem in _SED:
        return f"Run `{shlex.join(['sed', '-i', _SED[problem], path])}`."
    if problem == directive_lines.NO_INTERPRETER:
        interpreter = "#!/usr/bin/env python3" if path.endswith(".py") else "#!/bin/bash"
        place = Evidence(path, 1, first)
        return edit([place], [interpreter, *([first] if first.strip() else [])])
    if problem == directive_lines.EMPTY:
        return "Call generate_script, or write the script, then submit again."
    if problem in {directive_lines.LONG_LINE, directive_lines.LARGE}:
        number, longest = max(enumerate(lines, 1), key=lambda line: len(line[1]))
        return in_words([Evidence(path, number, longest[:_LONG])], _SHORTER)
    return None


# --- one line -----------------------------------------------------------------------------------------------------


def _without(line: str, others: Sequence[Directive], respell: Respell) -> list[str]:
    """The line without the options that are wrong, or no line; a time whose meaning is plain is written as one."""
    head = next((head for head in _HEADS if line.startswith(head)), None)
    if head is None or len(line) > _LONG:
        return []
    words, comment = _words(line[len(head) :])
    words = [respell(word) for word in words]
    good: list[str] = []
    known = {directive.option: directive for directive in others}
    for option, value in _read(words):
        meant = _meant(option.name, value)
        directive = Directive(option.name, meant, "script", Evidence("", 0, line))
        if not effective([*known.values(), directive]).problems:
            known[option.name] = directive
            good.append(directive_lines.spelled(option.name, meant))
    behind = f"  # {comment.strip()}" if comment.strip() else ""
    new = f"{head} {' '.join(good)}{behind}"
    return [new] if good and new != line else []


def _words(text: str) -> tuple[list[str], str]:
    """Words and comment; of a line that cannot be taken apart the words that are plain."""
    try:
        return directive_lines.split(text)
    except ValueError:
        return [word for word in text.split() if _PLAIN.fullmatch(word) and not word.startswith(":")], ""


def _read(words: Sequence[str]) -> list[Given]:
    """The options among these words; a word that is none is left out."""
    rest = [OptionWord(word, index) for index, word in enumerate(words)]
    given, failure = sbatch_options.read_words(rest)
    while failure is not None:
        rest = [word for word in rest if word.line != failure.line]
        given, failure = sbatch_options.read_words(rest)
    return [(one.option, one.value) for one in given]


def _meant(option: str, value: str | None) -> str | None:
    """A time written as people do, `5hours`, as Slurm reads it; anything else as it is."""
    if option not in _TIMES or value is None or _readable(option, value):
        return value
    try:
        return format_duration(-(-parse_span(value) // 60) * 60)
    except ValueError:
        return value


def _readable(option: str, value: str) -> bool:
    return not effective([Directive(option, value, "script", Evidence("", 0, ""))]).problems


def _as_it_is(word: str) -> str:
    return word


def _nearest(word: str) -> str:
    """A misspelt option as the nearest one that sbatch knows."""
    match = re.fullmatch(r"--([a-z-]+)(=.*)?", word, re.DOTALL)
    if match is None or match[1] in sbatch_options.NAMES:
        return word
    known = difflib.get_close_matches(match[1], sbatch_options.NAMES, 1, 0.8)
    return f"--{known[0]}{match[2] or ''}" if known else word


# --- arguments of the call -----------------------------------------------------------------------------------------


def _arguments(reading: ScriptReading, problems: Sequence[Evidence], numbers: Container[int]) -> list[Directive]:
    stated = [d for d in reading.request.directives if d.source == "argument" and d.evidence.line not in numbers]
    told = [problem.text for problem in problems if problem.line not in numbers]
    return [d for d in stated if any(f"--{d.option}" in text for text in told)]


def _argument(directive: Directive) -> str:
    meant = _meant(directive.option, directive.value)
    lines = [] if meant == directive.value else [f"#SBATCH --{directive.option}={meant}"]
    return replace([directive], *lines)
