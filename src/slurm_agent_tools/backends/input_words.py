"""The files that texts name: words of scripts, settings and programs, patterns of names, and modules. Pure.

Who wrote a text may want others to wait: each expression reads it once, and looks back no further than its own bounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_OUTPUT_OPTION = (
    r"(?<![\w-])(?:-o|--?(?:out|output|error|std(?:out|err)|log|save|result|dump|export)s?"
    r"(?:[-_]?(?:file|dir|path|name|to|as|prefix|folder|root|csv|json|log))*)[= \t]+[\"']?([\w./@%+-]+)"
)

_WORD = re.compile(r"[\w.~/@%+-]{1,255}")

_QUOTED = re.compile(r"[\"']([^\"'\s\\]{1,255}|[\w./ -]{1,250}\.\w{1,8})[\"']")

_TOKEN = re.compile(r"[\w.~/@%+*?${}-]{1,255}")

_OPEN = re.compile(r"[*?$}]|%[0-9]{0,9}[sd](?![a-z])")
"""What makes a word a pattern of names: a sign that something is filled in there."""

_BEHIND = re.compile(r"[\w.*?${}-]*")

_FILLED = re.compile(r"\$\{\w+\}|\$\w+|\{[^{}]*\}|%[0-9]*[sd]")

_JOINED = re.compile(r"[\"']([\w./-]{1,100})[\"']\s{0,20}\)?\s{0,20}[,/]\s{0,20}[\"']([\w./-]{1,100})[\"']")

_STARTED = re.compile(r"[ \t]-m[ \t]+([A-Za-z_][\w.]*)")

_TARGET = re.compile(
    rf"(?:&>>?|>>?\|?)[ \t]*[\"']?([\w./@%+-]+)|\btee\b(?:[ \t]+-\w+){{0,8}}[ \t]+([\w./@%+-]+)|{_OUTPUT_OPTION}"
)

_SAVED = re.compile(
    r"""\bopen\s*\((?:[^()]|\([^()]*+\)){0,1000}["'](?:[wax]b?\+?|wt|at|w\+b)["'][^()]{0,200}\)"""
    r"""|\([^()]*+\)\.(?:write\w*|open\(\s*["'][wax])"""
    r"""|\b(?:save\w*|dump\w*|savefig|to_(?:csv|json|parquet|hdf|pickle|excel)|FileHandler|SummaryWriter|makedirs|mkdir"""
    r"""|basicConfig|write\w*)\s*+\((?>(?:[^()]|\((?>(?:[^()]|\([^()]*+\))*)\))*)\)"""
)
"""Calls that save: the names in them are of files that they write."""

_LOADS = re.compile(r"read|load|from_|input|glob|\bopen\(")

_FOR_OUTPUT = re.compile(r"out|log|save|result|checkpoint|ckpt|export|dump|run|work|cache|tmp", re.IGNORECASE)


def named(text: str) -> Iterator[str]:
    """Words of a text that may be files, and names in quotes that have spaces."""
    for word in _WORD.findall(text):
        word = word.strip("-.,~") if not word.startswith(("./", "../")) else word  # noqa: PLW2901 - signs around it
        if word and not word.startswith("//"):
            yield word
    yield from (word for word in _QUOTED.findall(text) if " " in word)
    yield from filter(None, map(_pattern, _TOKEN.findall(text)))


def _pattern(word: str) -> str | None:
    """The pattern of names in a word: up to the last place that is filled in, and what is part of a name behind it."""
    last = max((match.end() for match in _OPEN.finditer(word)), default=None)
    return None if last is None else word[:last] + _BEHIND.match(word, last)[0]  # type: ignore[index]


def is_pattern(word: str) -> bool:
    """Whether a word is a pattern of names and nothing else."""
    return len(word) <= 255 and _pattern(word) == word and _TOKEN.fullmatch(word) is not None


def all_named(text: str) -> list[str]:
    """Words of a text that may be files which it reads."""
    return list(named(_TARGET.sub(" ", text)))


class NamedInProgram(NamedTuple):
    """What a program names; `joined`: two parts of a path, `modules` and `classes`: the files that they may be in."""

    words: list[str]
    loaded: list[str]
    joined: list[tuple[str, str]]
    paths: list[str]
    modules: list[str]
    classes: list[str]


def program(content: str) -> NamedInProgram:
    """What a program in Python reads, as far as its text tells."""
    read = _SAVED.sub(" ", content)  # what it saves is not what it reads
    words, lines = [word for word in _QUOTED.findall(read) if word.strip()], read.split("\n")
    loaded = [w.split("}/")[-1] for line in lines if _LOADS.search(line) for w in _QUOTED.findall(line)]
    paths = [word for line in lines if "sys.path" in line for word in _QUOTED.findall(line)]
    return NamedInProgram(words, loaded, _JOINED.findall(read), paths, [*modules(content)], [*classes(words)])


def settings_words(content: str) -> tuple[list[str], list[str], list[str]]:
    """All words of settings, those of lines that speak of no output, and the classes that they may name."""
    kept = _WORD.findall("\n".join(line for line in content.split("\n") if not _FOR_OUTPUT.search(line)))
    words = _WORD.findall(content)
    return words, kept, [*classes(words)]


def filled(word: str) -> str:
    """The pattern with `*` for what is filled in."""
    return _FILLED.sub("*", word)


def is_filled_in(text: str) -> bool:
    """Whether something is filled in there."""
    return _OPEN.search(text) is not None


def started_modules(text: str) -> list[str]:
    """The files of the modules that `python -m` starts."""
    return list(modules("".join(f"import {name}, {name}.__main__\n" for name in _STARTED.findall(text))))


def targets(text: str) -> set[str]:
    """The files that a script writes by redirection, tee, or an option for output."""
    return {word for match in _TARGET.finditer(text) for word in match.groups() if word}


_ANEW = re.compile(rf"(?<![>&])(?:&>|>\|?)(?!>)[ \t]*[\"']?([\w./@%+-]+)|\btee[ \t]+([\w./@%+-]+)|{_OUTPUT_OPTION}")

_BEGINS = re.compile(r"(?<![\w$-])(?:if|for|while|until|case|select|function)[ \t]|[{(][ \t]*$")

_ENDS = re.compile(r"^[ \t]*(?:fi|done|esac|[)}])(?!\w)|;[ \t]*(?:fi|done|esac|\})(?!\w)")

_PERHAPS = re.compile(r"&&|\|\||(?<![\w$-])(?:then|do|else|elif)(?![\w-])")

_LEAVES = re.compile(r"(?<![\w$-])(?:exit|return|exec)(?![\w-])")


def made_anew(text: str) -> set[str]:
    """Files that a script writes from their beginning, whatever else happens: what they hold then is its own."""
    found, depth = set[str](), 0
    for line in text.split("\n"):
        begins, ends = len(_BEGINS.findall(line)), len(_ENDS.findall(line))
        if depth == 0 and not begins and _PERHAPS.search(line) is None:
            found |= {word for match in _ANEW.finditer(line) for word in match.groups() if word}
        if _LEAVES.search(line) is not None:
            break
        depth = max(0, depth + begins - ends)
    return found


# --- The modules that a text names -----------------------------------------------------------------------------------

_IMPORT = re.compile(
    r"(?m)^[ \t]*+(?:from[ \t]++(\.*+[\w.]*+)[ \t]++import[ \t]++([\w, \t]++)|import[ \t]++([\w., \t]++))"
)

_MOST_DOTS, _LONGEST, _MOST_SIGNS = 20, 255, 2**25
"""Folders that an import goes up, and signs of a name, beyond which nothing is there; and signs of all paths."""

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*){1,9}")


def modules(text: str) -> Iterator[str]:
    """The files that the modules of import statements may be. Raises ValueError for more than any program imports."""
    signs = 0
    for base, names, plain in _IMPORT.findall(text):
        folder = base.lstrip(".")
        if len(base) - len(folder) > _MOST_DOTS or len(folder) > _LONGEST:
            continue
        above = "../" * (len(base) - len(folder) - 1)
        listed = dict.fromkeys(re.findall(r"\w+", names))
        stems = [folder, *(f"{folder}.{one}" if folder else one for one in listed)] if base else []
        stems += re.findall(r"[\w.]+", plain)
        for stem in (one for one in stems if 0 < len(one) <= _LONGEST):
            path = above + stem.replace(".", "/")
            if (signs := signs + len(path)) > _MOST_SIGNS:
                raise ValueError("it names too many modules")
            yield from (f"{path}.py", f"{path}/__init__.py")


def classes(words: Iterable[str]) -> Iterator[str]:
    """The files of modules that words with dots may name, or a class in them."""
    dotted = [word.rpartition(".") for word in words if _DOTTED.fullmatch(word)]
    return modules("".join(f"from {module} import {name}\n" for module, _, name in dotted))
