"""Commands that ask whether something is ready, so that a loop around them waits, or goes on, and does not retry.

What is asked about: a word for a question in the name of the program, a word for a question behind the name of a client
whose answer is thrown away or whose server was started in the background, or a Python one-liner that only connects.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from slurm_agent_tools.jobscript.tree import flatten, words_of
from slurm_agent_tools.jobscript.words import Known, Node, fold
from slurm_agent_tools.jobscript.wrappers import SHELLS, name_of, starts

_QUESTION_WORDS = """
is are has have check checks ready poll ping wait status health healthy alive probe exists converged finished
complete completed done
"""
_WORK_WORDS = "train run start submit launch fit solve main exec simulate work resume"
_TIDYING_WORDS = "clean cleanup tidy reset restore backup notify mail report recover restart retry rescue"
_ASKING_WORDS = "status list ls info ping ready poll health healthcheck version ps show alive probe"
_QUESTIONS = frozenset(_QUESTION_WORDS.split())
_WORK = frozenset(_WORK_WORDS.split())
_TIDYING = frozenset(_TIDYING_WORDS.split())
_ASKING = frozenset(_ASKING_WORDS.split())
_LAUNCHERS = frozenset({"srun", "mpirun", "mpiexec", "torchrun", "accelerate", "deepspeed", "horovodrun"})
_INTERPRETERS = re.compile(
    r"i?python[\d.]*|pypy[\d.]*|perl|ruby|node|Rscript|R|julia|make|snakemake|nextflow|uv|torchrun"
)
_CONNECTS = frozenset({"socket", "urllib", "http", "requests", "httpx", "redis", "zmq", "psycopg2", "pymongo"})
_HARMLESS = _CONNECTS | {"sys", "os", "time", "ssl", "json", "pathlib"}
_STARTING = re.compile(r"\b(?:system|popen|exec\w*|eval|spawn\w*|fork|import_module|__import__|open)\s*\(")


def asks(words: Sequence[str], *, silent: bool = False, started: Collection[str] = ()) -> bool:
    """Whether a command is a question. `silent`: its output is thrown away; `started`: what runs in the background."""
    if not words or _launched(words):
        return False
    tail = list(words[list(starts(words))[-1] :])
    name = name_of(tail[0])
    if _INTERPRETERS.fullmatch(name) or name in SHELLS:
        return _script_asks(tail)
    if "/" in tail[0] or "." in name:
        return _questions(name)
    plain = [word for word in tail[1:] if not word.startswith("-")]
    if name in started:
        return not _ASKING.isdisjoint(word.lstrip("-") for word in tail[1:])
    return _questions(name) or (silent and not _ASKING.isdisjoint(plain[:2]) and _WORK.isdisjoint(plain))


def advances(asked: Sequence[Sequence[str]], done: Sequence[Sequence[str]]) -> bool:
    """Whether the work of a loop's body may be what brings its condition about, as far as names tell.

    No pause, which stands between two tries; no launcher, training or run as the condition; more than tidying up.
    """
    pauses = any(name_of(words[0]) == "sleep" for words in done)
    heavy = any(_launched(words) or not _WORK.isdisjoint(_parts(words)) for words in asked)
    return (
        not pauses
        and not heavy
        and any(_TIDYING.isdisjoint(_parts(words)) for words in done if name_of(words[0]) != "sleep")
    )


def _launched(words: Sequence[str]) -> bool:
    return any(name_of(words[start]) in _LAUNCHERS for start in starts(words))


def _parts(words: Sequence[str]) -> list[str]:
    """The lower-case words in the names of a program and its script."""
    tail = words[list(starts(words))[-1] :]
    script = next((name_of(word) for word in tail[1:] if not word.startswith("-")), "")
    return re.findall(r"[a-z]+", f"{name_of(tail[0])} {script}".lower())


def _questions(name: str) -> bool:
    """`poll_ready.sh`, `is_converged.py`, and not `train_check.sh`, where the question is not all."""
    parts = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    return not _QUESTIONS.isdisjoint(parts) and _WORK.isdisjoint(parts)


def _script_asks(tail: Sequence[str]) -> bool:
    for index, word in enumerate(tail[1:], start=1):
        if word == "-c":
            return name_of(tail[0]) not in SHELLS and _connects("".join(tail[index + 1 : index + 2]))
        if not word.startswith("-"):
            return _questions(name_of(word))
    return False


def _connects(text: str) -> bool:
    """A text of Python that imports what connects, and nothing that could work."""
    imported = re.findall(
        r"\bfrom\s+([\w.]+)|(?<!\w )\bimport\s+([\w., ]+)", re.sub(r"(from\s+\S+)\s+import.*", r"\1", text)
    )
    names = ",".join("".join(pair) for pair in imported).split(",")
    modules = {name.strip().partition(" ")[0].partition(".")[0] for name in names}
    return not _CONNECTS.isdisjoint(modules) and modules <= _HARMLESS and _STARTING.search(text) is None


def waits(node: Node, known: Known, works: Callable[[Sequence[str]], bool]) -> bool:
    """Whether all that a loop does besides looking and sleeping is to ask."""
    found = False
    for place in flatten([node.get("Cond", []), node.get("Do", [])]):
        if place.node.get("Type") != "CallExpr" or not place.node.get("Args"):
            continue
        words = words_of(place.node, known)
        if not works(words):
            continue
        if not asks(words, silent=_silent(place.statement or {}, known), started=known.started):
            return False
        found = True
    return found


def _silent(statement: Node, known: Known) -> bool:
    return any(
        item.get("Op") in {">", "&>", ">&", ">>", "&>>"} and fold(item.get("Word"), known) == "/dev/null"
        for item in statement.get("Redirs", ())
    )
