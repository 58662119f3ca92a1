"""Commands that a text takes from its own arguments, or from those of a function: `shift; timeout 1h "$@"`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slurm_agent_tools.scripts.program import PassedCommand, spend
from slurm_agent_tools.scripts.shell_tree import TreePosition, words_of
from slurm_agent_tools.scripts.shell_words import POSITIONAL, KnownVariables, Node, fold, unreadable, variable
from slurm_agent_tools.scripts.wrapped_command import starts

MAX_ROUNDS = 4

_LOOSE = 8  # words that a `shift` behind a condition may take away

Scope = str | None  # a function's name, None for the text itself

Called = tuple[Scope, Sequence[str], int]  # where, words, line


@dataclass(slots=True)
class Shifts:
    """How many arguments are gone: `sure` up to the place that is looked at, and scopes that may take more."""

    plain: set[int]  # shifts that run whenever their scope does, by the identity of their node
    loose: set[Scope] = field(default_factory=set)
    all: set[Scope] = field(default_factory=set)
    sure: Counter[Scope] = field(default_factory=Counter)

    def pass_over(self, place: TreePosition, words: Sequence[str]) -> None:
        """Count the shift that a command is."""
        number = _number(words)
        if number is not None and id(place.node) in self.plain:
            self.sure[place.function] += number

    def placed(self, one: PassedCommand, place: TreePosition, known: KnownVariables) -> PassedCommand:
        """The same, with its scope and how many arguments it does not see.

        A variable (`tool=$1; shift; "$tool"`) may hold one that is gone by now.
        """
        scope = place.function
        gone = self.sure[scope]
        found = [variable(word) or "" for word in place.node.get("Args", ()) if fold(word, known) == POSITIONAL]
        held = any(name not in {"@", "*"} and not name.isdecimal() for name in found)
        return replace(
            one,
            function=scope,
            own=scope is None and scope in self.all,
            fewest=0 if held else gone,
            most=gone + (_LOOSE if held or scope in self.loose else 0),
        )


def shifts_before(tree: Node, places: Sequence[TreePosition], known: KnownVariables) -> Shifts:
    """The shifts of a text."""
    bodies = [tree.get("Stmts", [])]
    bodies += [
        ((place.node.get("Body") or {}).get("Cmd") or {}).get("Stmts", [])
        for place in places
        if place.node.get("Type") == "FuncDecl"
    ]
    found = Shifts({id(statement.get("Cmd")) for body in bodies for statement in body})
    for place in places:
        if place.node.get("Type") != "CallExpr" or not place.node.get("Args"):
            continue
        words = words_of(place.node, known)
        if words[:1] == ["shift"]:
            found.all.add(place.function)
            if id(place.node) not in found.plain or _number(words) is None:
                found.loose.add(place.function)
    return found


def _number(words: Sequence[str]) -> int | None:
    if words[:1] != ["shift"]:
        return None
    number = words[1] if len(words) > 1 else "1"
    return int(number) if number.isdecimal() and len(number) < 3 else None


def filled(one: PassedCommand, args: Sequence[str]) -> Iterator[list[str]]:
    """The commands that a passage may be with these arguments."""
    for gone in range(one.fewest, min(one.most, len(args) - 1) + 1):
        if gone > one.fewest and unreadable(args[gone]):
            continue
        spend(len(one.words) + len(args))
        yield [word for part in one.words for word in (args[gone:] if part == POSITIONAL else (part,))]


def passed_arguments(name: str, calls: Sequence[Called]) -> Iterator[tuple[Scope, list[str], int]]:
    """(caller, arguments, line) of each call of a function."""
    for scope, words, line in calls:
        for start in starts(words):
            if words[start] == name:
                yield scope, list(words[start + 1 :]), line


def taken(known: KnownVariables, found: Shifts) -> list[str]:
    """The arguments of a text that takes some of them away; from then on `$@` is not all of them."""
    known.shifting |= {scope or "" for scope in found.all}
    known.kept.clear()
    if None not in found.all:
        return []
    known.lists.pop("*", None)
    return known.lists.pop("@", [])


def local(known: KnownVariables, args: Sequence[str] | None) -> KnownVariables:
    """What is known inside of functions, whose arguments are their own and not those of the text."""
    if args is None or known.lists.get("@", list(args)) != list(args):
        return known  # nothing is known, or `set` put something in their place
    names: Mapping[str, str] = {name: text for name, text in known.texts.items() if not name.isdecimal()}
    lists = {name: words for name, words in known.lists.items() if name not in {"@", "*"}}
    return replace(known, texts=dict(names), lists=lists, kept={})
