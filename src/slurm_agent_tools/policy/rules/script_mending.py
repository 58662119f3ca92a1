"""Turns what a script does wrong into the lines that do it right, as far as a text can be mended without its author.

Works on lines, not on a syntax tree: a rule is handed no tree. What comes out is checked again like any script.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from slurm_agent_tools.models.request import Evidence, Finding, ScriptReading
from slurm_agent_tools.policy.rules import remedies

Mend = Callable[[str], str]
"""A command of one or several lines, and what goes in its place; empty: nothing."""

_OPENS = re.compile(r"(?:\b(?:then|do|else)|[{(:]|&&|\|\|)\s*$")

_KEYWORD = re.compile(r"\s*(?:(?:if|elif|while|until|then|do|else|!|\{|\()\s+)*")

_HEREDOC = re.compile(r"<<-?\s*\\?([\"']?)(\w+)\1")

_STEPS, _REACH, _LONG = 50, 60, 20_000  # steps that are told, lines and characters of one command

_MORE = "there is more of the same; check again after these."

_AS_IT_IS = "Ask a person to agree to the script as it is: only bash and Python without errors of syntax can be read."

_SETTINGS = (".yaml", ".yml", ".json")

_NO_EDIT = "only the program that reads it tells what may stand there instead."

_SETTING = r"\s*(?:export\s+)?\w+=\S*\s*"  # the command's name in a variable: what uses it goes too

_WORD = re.compile(r"(?:^|[\s;])(do|done|if|fi|case|esac)(?=[\s;]|$)", re.MULTILINE)


def steps(reading: ScriptReading, found: Sequence[Finding], mend: Mend) -> str:
    """What to change for these findings, one step for each place; of very many the first."""
    lines = reading.text.split("\n")
    taken: set[tuple[str, int]] = set()
    told: dict[str, None] = {}
    for finding in found:
        place = finding.evidence
        if len(told) == _STEPS:
            told[remedies.note(_MORE)] = None
            break
        if place.file == reading.path and place.line <= 1:  # the script as a whole
            told[_AS_IT_IS] = None
            continue
        places = _command(lines, place) if place.file == reading.path else [place]
        if any((one.file, one.line) in taken for one in places):
            continue
        taken |= {(one.file, one.line) for one in places}
        environment = lines[: place.line - 1] if place.file == reading.path else None
        new = _mended(places, environment, mend)
        if place.file.endswith(_SETTINGS) and new in ([":"], ["pass"]):
            told[f"Change line {place.line} of {place.file}: {_NO_EDIT}"] = None
            continue
        told[remedies.edit(places, new, script=reading.path)] = None
    return "\n".join(told)


def _command(lines: Sequence[str], place: Evidence) -> list[Evidence]:
    """The lines of the command that begins at `place`."""
    if place.line > len(lines):
        return [place]
    first = place.line - 1
    while first > 0 and lines[first - 1].endswith("\\"):
        first -= 1
    return [Evidence(place.file, number + 1, lines[number]) for number in range(first, _end(lines, first) + 1)]


def _end(lines: Sequence[str], first: int) -> int:
    """The last line of a command: over continued lines, here-documents, open quotes and open blocks."""
    known = _heredoc_end(lines, first)
    for last in range(known, min(len(lines), known + _REACH)):
        text = "\n".join(lines[first : last + 1])
        if len(text) > _LONG:
            break
        if not (text.endswith("\\") or _open_quote(text) or _open_block(text)):
            return last
    return known


def _heredoc_end(lines: Sequence[str], first: int) -> int:
    last = first
    for match in _HEREDOC.finditer(lines[first]):
        ends = (number for number in range(last + 1, len(lines)) if lines[number].strip() == match[2])
        last = next(ends, last)
    return last


def _open_quote(text: str) -> bool:
    bare = re.sub(r"\\.|\$?'[^']*'|\"(?:\\.|[^\"\\])*\"|(?m:(?<!\S)#.*$)", "", text, flags=re.DOTALL)
    return "'" in bare or '"' in bare


def _open_block(text: str) -> bool:
    """Whether a loop, an if or a case that begins in the first line goes on behind the last one."""
    bare = re.sub(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"", "_", text)
    if not re.match(r"\s*(?:for|while|until|if|case)\b", bare):
        return False
    words = _WORD.findall(bare)
    level = sum(1 if word in {"do", "if", "case"} else -1 for word in words)
    return level > 0 or not words


def _mended(places: Sequence[Evidence], above: Sequence[str] | None, mend: Mend) -> list[str]:
    """The new lines. `above`: the lines before, where they are known; without them nothing is left out entirely."""
    text = "\n".join(place.text for place in places)
    new = mend(re.sub(r"\s*\\\n\s*", " ", text))
    if new.strip():
        return [line.rstrip() for line in new.split("\n")]
    blank = text[: len(text) - len(text.lstrip())]
    before = "" if above is None else next((line for line in reversed(above) if line.strip()), "")
    if not blank and above is not None and _OPENS.search(before) is None:
        return []
    python = places[0].file.endswith(".py") if above is None else _is_python(above)
    return [f"{blank}{'pass' if python else ':'}"]


def _is_python(above: Sequence[str]) -> bool:
    """Whether what follows these lines is in a here-document for python."""
    opener = sign = ""
    for line in above:
        if sign:
            sign = "" if line.strip() == sign else sign
            continue
        match = _HEREDOC.search(line)
        opener, sign = (line, match[2]) if match is not None else (opener, sign)
    return bool(sign) and "python" in opener


# --- ways to mend -------------------------------------------------------------------------------------------------


def drop(text: str, bad: str) -> str:
    """The command line without the commands in which `bad`, a regular expression, is found; without any: empty."""
    parts = _parts(text)
    hit = [re.search(bad, part) is not None for part in parts[::2]]
    named = any(one and re.fullmatch(_SETTING, part) for part, one in zip(parts[::2], hit, strict=True))
    if not any(hit) or named or "\n" in text.strip():
        return ""
    new = [_emptied(part) if bad_one else part for part, bad_one in zip(parts[::2], hit, strict=True)]
    return _joined(new, parts[1::2])


def _emptied(part: str) -> str:
    keyword = _KEYWORD.match(part)
    return f"{keyword[0]}:" if keyword is not None else ":"


def _joined(commands: list[str], signs: list[str]) -> str:
    """The commands with their signs, without those that do nothing where none is needed."""
    text = commands[0]
    for sign, command in zip(signs, commands[1:], strict=True):
        text = text if command.strip() == ":" else f"{text}{sign}{command}"
    text = re.sub(r"^(\s*):\s*(?:;|&&|\|\|?)\s*(?=\S)", r"\1", text)
    return "" if text.strip() == ":" else text


def _parts(text: str) -> list[str]:
    """Commands and the signs between them, in turn; quotes hold together."""
    pieces = re.findall(r"\\.|'[^']*'|\"(?:\\.|[^\"\\])*\"|\$\([^)]*\)|&&|\|\||;|.", text, flags=re.DOTALL)
    parts = [""]
    for piece in pieces:
        if piece in {";", "&&", "||"}:
            parts += [piece, ""]
        else:
            parts[-1] += piece
    return parts


def nothing(_: str) -> str:
    """Mends by leaving the command out."""
    return ""


def once(text: str) -> str:
    """The work of a loop or chain that tries again, run once; empty where it cannot be told."""
    condition = re.match(r"\s*(?:until|while\s+!)\s+(.+?)\s*(?:;|\n)\s*do\b", text, flags=re.DOTALL)
    if condition is not None:
        return _plain(condition[1])
    tried = re.search(r"\bif\s+(?:!\s*)?(.+?)\s*(?:;|\n)\s*then\b", text, flags=re.DOTALL)
    if tried is not None and not tried[1].lstrip().startswith(("[", "((")):
        return _plain(tried[1])
    body = re.search(r"\bdo\b(.*)\bdone\b", text, flags=re.DOTALL)
    commands = [part for line in (body[1] if body else text).split("\n") for part in _parts(line)[::2]]
    work = [_plain(command) for command in commands if _works(command)]
    return work[0] if work else ""


def _plain(command: str) -> str:
    return " ".join(line.strip().rstrip("\\").rstrip() for line in command.strip().splitlines())


def _works(command: str) -> bool:
    words = command.strip().split()
    idle = {"sleep", "echo", "break", "exit", "return", "true", "if", "fi", "then", "else", "continue", "[", "[[", "}"}
    return bool(words) and words[0] not in idle and re.match(r"(?:\w+=|\(\(|let\b|#|n\+\+)", words[0]) is None
