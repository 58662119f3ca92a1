"""Programs in languages that are not read here, which come to their interpreter by its input."""

from __future__ import annotations

import re
from collections.abc import Sequence

# General languages, where a text that is made at run time may do anything; the rest is for numbers and plots.
GENERAL = frozenset({"perl", "ruby", "Rscript", "node", "julia", "lua", "php", "tclsh"})
INTERPRETERS = GENERAL | {"R", "octave", "octave-cli", "matlab", "gnuplot"}
_TEXT_GIVEN = re.compile(r"-[A-Za-z]*[eE]|--?(?:eval|execute|batch|file|print|run|version|help)(?:=.*)?|-[frp]|-batch")

_STRING = r"(?:\"[^\"\\$#`]*\"|'[^'\\]*')"
_START = r"(?<![\w.:$@])(?:system2?|exec[vl]?[pe]*|popen[23]?|spawn\w*|execSync|shell_exec|passthru|qx|eval|Cmd)"
# A command that is not one literal: a variable, an expression, literals that are joined, a string with variables in it.
_COMPUTED = re.compile(
    rf"{_START}\s*\(\s*(?!{_STRING}\s*[,)])(?=[\w$@%\"'(\[])"
    rf"|{_START}\s+(?!{_STRING}\s*(?:;|,|$|\|\||or\b))[$@%\"'](?!\s*[,)])"
    r"|`[^`]*\$[^`]*`|(?<![\w.])(?:system|exec)\s+[a-z_]\w*\s*$|\bqx\s*[{(/]|do\.call\(\s*[\"']?(?:system|Sys\.setenv)"
    r"|(?:ENV|environ)\s*[\[{]\s*(?![\"']?\w+[\"']?\s*[\]}])[^\]}]*[\]}]\s*="
    r"|Sys\.setenv\s*\(\s*(?![\w.]+\s*=)\S|(?:base64|pack|chr)\w*\s*\(.*(?:system|exec|eval)"
)


def by_input(name: str, rest: Sequence[str]) -> bool:
    """Whether an interpreter with these words reads its program from its input."""
    if name not in INTERPRETERS:
        return False
    for word in rest:
        if word == "-":
            return True
        if _TEXT_GIVEN.fullmatch(word):
            return False
        if not word.startswith("-") and not word.isdecimal() and word != "auto" and (name != "R" or word == "CMD"):
            return False
    return True


def computed(text: str) -> int | None:
    """The line, from 1 on, that starts a command or sets a variable out of more than a literal."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.lstrip().startswith("#") and _COMPUTED.search(line[:2000]):
            return number
    return None
