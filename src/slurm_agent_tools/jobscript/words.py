"""Folding shell words to text. What is only known at run time becomes the sign UNKNOWN in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Node = dict[str, Any]
UNKNOWN = "\0"
OWN_NAME = "$0"
_ESCAPES = {"n": "\n", "t": "\t", "'": "'", '"': '"', "\\": "\\", "a": "\a", "r": "\r", "e": "\x1b"}


def fold(word: Node | None, known: Mapping[str, str]) -> str:
    """The text of a word; variables with one constant value are put in."""
    return "".join(_part(part, known) for part in (word or {}).get("Parts", ()))


def _part(part: Node, known: Mapping[str, str]) -> str:
    match part["Type"]:
        case "Lit":
            return re.sub(
                r"\\(.)", lambda found: "" if found[1] == "\n" else found[1], part.get("Value", ""), flags=re.DOTALL
            )
        case "SglQuoted":
            text: str = part.get("Value", "")
            return _ansi(text) if part.get("Dollar") else text
        case "DblQuoted":
            return "".join(_quoted(inner, known) for inner in part.get("Parts", ()))
        case "ParamExp":
            return _parameter(part, known)
        case "CmdSubst":
            return _constant_output(part, known)
        case _:
            return UNKNOWN


def _quoted(part: Node, known: Mapping[str, str]) -> str:
    if part["Type"] == "Lit":
        return re.sub(r"\\([$`\"\\\n])", lambda found: found[1].strip("\n"), part.get("Value", ""))
    return _part(part, known)


def _ansi(text: str) -> str:
    text = re.sub(r"\\x([0-9a-fA-F]{1,2})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r"\\([0-7]{1,3})", lambda found: chr(int(found[1], 8) % 256), text)
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text)


def _parameter(part: Node, known: Mapping[str, str]) -> str:
    name = part["Param"]["Value"]
    if name == "0":
        return OWN_NAME
    plain = not any(part.get(key) for key in ("Exp", "Slice", "Repl", "Index", "Excl", "Length", "Names"))
    return known.get(name, UNKNOWN) if plain else UNKNOWN


def _constant_output(part: Node, known: Mapping[str, str]) -> str:
    """`$(echo text)` and `$(which name)` of constants."""
    statements = part.get("Stmts", ())
    if len(statements) != 1 or statements[0].get("Cmd", {}).get("Type") != "CallExpr":
        return UNKNOWN
    words = [fold(word, known) for word in statements[0]["Cmd"].get("Args", ())]
    if words[:1] == ["echo"] and len(words) > 1:
        return " ".join(words[1:])
    if words[:1] == ["which"] and len(words) == 2:
        return words[1]
    if words[:2] == ["command", "-v"] and len(words) == 3:
        return words[2]
    return UNKNOWN


def line_of(node: Node) -> int:
    """The line that a node starts on."""
    return int(node.get("Pos", {}).get("Line", 0))
