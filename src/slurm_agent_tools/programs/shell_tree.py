"""One walk over the syntax tree that shfmt prints, and what it tells about variables and functions."""

from __future__ import annotations

import gc
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from slurm_agent_tools.programs.program import PassedCommand, TooLarge, kept, spend
from slurm_agent_tools.programs.shell_words import (
    POSITIONAL,
    TAME,
    UNKNOWN,
    KnownVariables,
    Node,
    expand,
    fold,
    unreadable,
    variable,
)
from slurm_agent_tools.programs.wrapped_command import RUNNING, name_of, starts

MAX_DEPTH = 400

_WANTED = frozenset(
    {"CallExpr", "DeclClause", "WordIter", "WhileClause", "ForClause", "IfClause", "CaseClause", "BinaryArithm",
     "UnaryArithm", "BinaryCmd", "FuncDecl", "ParamExp", "ProcSubst"}
)  # fmt: skip

_FILLING = frozenset({"set", "read", "mapfile", "readarray", "printf", "getopts"})
_LEAVES = frozenset({"Lit", "SglQuoted"})
_CONTAINERS = (list, dict)
_POSITION = re.compile(rb'\{\n\t*+"Offset": \d++,\n\t*+"Line": (\d++),\n\t*+"Col": \d++\n\t*+\}')
_OFFSET = re.compile(rb'\{\n\t*+"Offset": (\d++),\n\t*+"Line": \d++,\n\t*+"Col": \d++\n\t*+\}')
_PIECE = 2**20


@dataclass(slots=True)
class TreePosition:
    """A node, the statement around it and the function that it stands in."""

    node: Node
    statement: Node | None
    function: str | None


def load(answer: list[bytes], offsets: bool = False) -> Node:
    """The tree that shfmt printed, each position replaced by its line, which takes a fifth of the memory.

    What was printed is taken out of its list: it is large, and gone before the tree is made.

    With `offsets` each position is replaced by its place in the text, in bytes.

    A string holds no bare line end, so none is taken for a position. Raises ValueError, RecursionError.
    """
    printed, short, start = answer.pop(), bytearray(), 0
    while start < len(printed):  # piece by piece, each up to the end of a node: the parts of all at once are too many
        end = printed.find(b"}", start + _PIECE) + 1 or len(printed)
        short += b"".join((_OFFSET if offsets else _POSITION).split(printed[start:end]))
        start = end
    printed, text = b"", short.decode("utf-8")
    short.clear()
    collected = gc.isenabled()
    gc.disable()  # it would look through the growing tree again and again, and finds no cycle in it
    try:
        tree: Node = json.loads(text)
    finally:
        if collected:
            gc.enable()
    return tree


def flatten(tree: object) -> list[TreePosition]:
    """Every node that means something here, in order of the text. To be read only.

    Statements with redirections are among them; they have no `Type`. Raises TooLarge.
    """
    known = kept()
    key = tuple(map(id, tree)) if isinstance(tree, list) else id(tree)
    if key not in known:
        known[key] = (_flatten(tree), tree, list(tree) if isinstance(tree, list) else None)  # alive, so are the ids
    places: list[TreePosition] = known[key][0]
    spend(1 + len(places) // 4)
    return places


def _flatten(tree: object) -> list[TreePosition]:
    """No recursion, so no depth limit but our own."""
    found: list[TreePosition] = []
    stack: list[tuple[object, Node | None, str | None, int]] = [(tree, None, None, 0)]
    while stack:
        item, statement, function, depth = stack.pop()
        if isinstance(item, list):
            spend(len(item))
            stack += [(inner, statement, function, depth) for inner in reversed(item)]
            continue
        if not isinstance(item, dict):
            continue
        if depth > MAX_DEPTH:
            raise TooLarge
        kind = item.get("Type")
        if kind in _LEAVES:
            continue
        if kind in _WANTED or "Redirs" in item:
            found.append(TreePosition(item, statement, function))
        if "Cmd" in item or "Redirs" in item:
            statement = item
        elif kind == "FuncDecl":
            function = item["Name"]["Value"] if item.get("Name") else ""
        depth += 1
        spend(1)
        stack += [
            (value, statement, function, depth) for value in reversed(item.values()) if value.__class__ in _CONTAINERS
        ]
    return found


def inside(node: object) -> Iterator[Node]:
    """The nodes that mean something below one node."""
    return (place.node for place in flatten(node))


def calls(node: object, known: KnownVariables) -> Iterator[list[str]]:
    """The words of every simple command below one node."""
    return (words_of(inner, known) for inner in inside(node) if inner.get("Type") == "CallExpr" and inner.get("Args"))


def words_of(call: Node, known: KnownVariables) -> list[str]:
    """The words of one simple command; kept, since several rules look at the same one. To be read only."""
    kept = known.kept.get(id(call))
    if kept is None:
        kept = known.kept[id(call)] = expand(call.get("Args", ()), known)
    spend(1)
    return kept


def learn(
    places: Sequence[TreePosition], args: Sequence[str] | None, variables: Mapping[str, str] | None = None
) -> KnownVariables:
    """What the text tells about its variables. A variable with one assignment has one value, in order of the text."""
    known = KnownVariables(dict(variables or {}))
    known.computed |= {name for name, text in known.texts.items() if unreadable(text)}
    if args is not None:
        known.lists |= {"@": list(args), "*": list(args)}
        known.texts |= {str(number): word for number, word in enumerate(args, start=1)}
    seen: Counter[str] = Counter()
    held: defaultdict[str, set[bool]] = defaultdict(set)
    for place in places:
        for name, value, appended in _assignments(place.node, known):
            seen[name] += 1
            held[name].add(_parses(place.node, name, known))
            _note(known, name, value, first=seen[name] == 1, appended=appended)
        _note_command(place, known)
    known.parsed = (
        {name for name, kinds in held.items() if kinds == {True}} if "getopt" not in known.functions else set()
    )
    for name, values in known.many.items():
        if any(TAME in value for value in values) and all(map(_LISTED.fullmatch, values)):
            known.texts[name] = TAME
    known.kept.clear()  # from now on no variable changes
    return known


def _note(known: KnownVariables, name: str, value: str | list[str], *, first: bool, appended: bool) -> None:
    if isinstance(value, list):
        known.lists[name] = [*known.lists.get(name, []), *value]
        return
    if appended and name in known.texts:
        known.texts[name] += value
        return
    if unreadable(value):
        known.computed.add(name)
    if first:
        known.texts[name] = value
        return
    if appended:
        value = UNKNOWN  # to one of several texts
    known.many.setdefault(name, [])
    if name in known.texts:
        known.many[name].append(known.texts.pop(name))
    known.many[name].append(value)


def quotes(part: Node, known: KnownVariables) -> bool:
    """Whether `$(...)` is one getopt of util-linux that quotes what it prints."""
    words = next(calls(part.get("Stmts", []), known), [])
    own = words[: words.index("--")] if "--" in words else words
    return (
        len(part.get("Stmts", [])) == 1
        and (part["Stmts"][0].get("Cmd") or {}).get("Type") == "CallExpr"
        and not part["Stmts"][0].get("Redirs")
        and own[:1] in (["getopt"], ["/usr/bin/getopt"])
        and any(re.match(r"-o|--options", word) for word in own)
        and not any(
            re.match(r"-[uTs]|--(?:un|te|sh)", word) or unreadable(word) for word in own if word.startswith("-")
        )
    )


def _parses(node: Node, name: str, known: KnownVariables) -> bool:
    """Whether an assignment is `name=$(getopt ...)`."""
    for assign in _assigns(node):
        if (assign.get("Name") or {}).get("Value") == name and not assign.get("Append"):
            parts = (assign.get("Value") or {}).get("Parts", ())
            parts = parts[0].get("Parts", ()) if len(parts) == 1 and parts[0]["Type"] == "DblQuoted" else parts
            return len(parts) == 1 and parts[0]["Type"] == "CmdSubst" and quotes(parts[0], known)
    return False


def _assignments(node: Node, known: KnownVariables) -> Iterator[tuple[str, str | list[str], bool]]:
    """(name, value, whether it is added to what was there)."""
    kind = node.get("Type")
    if kind == "WordIter":
        values = [fold(item, known) for item in node.get("Items", ())]
        for value in values if values and not any(map(unreadable, values)) else [*values, UNKNOWN]:
            yield node["Name"]["Value"], value, False
    for assign in _assigns(node):
        name = (assign.get("Name") or {}).get("Value")
        if name is None or assign.get("Naked"):
            continue
        for element in [assign, *(assign.get("Array") or {}).get("Elems", ())]:
            if element.get("Index"):
                yield f"{name}[{fold(element['Index'], known)}]", fold(element.get("Value"), known), False
        if assign.get("Index"):
            continue
        if assign.get("Array") is not None:
            elements = (element.get("Value") for element in assign["Array"].get("Elems", ()) if element.get("Value"))
            yield name, expand(list(elements), known), True
        else:
            yield name, _begun(name, assign.get("Value"), known), bool(assign.get("Append"))
    if kind == "CallExpr" and node.get("Args"):
        yield from _by_command(node, known)


# Options, and lists of what is a number or a name: hosts and their slots.
_LISTED = re.compile(rf"(?:[\s\d,:;@=+.{TAME}]|(?<!\S)--?[A-Za-z][\w-]*(?![^\s=]))*")


def _begun(name: str, value: Node | None, known: KnownVariables) -> str:
    """A value; `HOSTS="$HOSTS -host $h"` where nothing was in it before is what is added, where that is a list."""
    text = fold(value, known)
    if TAME not in text or UNKNOWN not in text or name in known.texts or name in known.many:
        return text
    known.texts[name] = ""
    added = fold(value, known)
    del known.texts[name]
    return added if _LISTED.fullmatch(added) else text


def _assigns(node: Node) -> Iterable[Node]:
    field = {"CallExpr": "Assigns", "DeclClause": "Args"}.get(node.get("Type", ""))
    found: list[Node] = node.get(field, []) if field is not None else []
    return found


def _by_command(node: Node, known: KnownVariables) -> Iterator[tuple[str, str | list[str], bool]]:
    """`set -- words`, and the commands that fill variables from their input."""
    if not any(part.get("Value") in _FILLING for part in node["Args"][0].get("Parts", ())):
        return
    words = expand(node["Args"], known)
    if words[:2] == ["set", "--"]:
        for name in ("@", "*"):
            known.lists.pop(name, None)
            yield name, words[2:], True
    elif words[0] in {"read", "mapfile", "readarray"}:
        for word in words[1:]:
            if not word.startswith("-"):
                yield word, UNKNOWN, False
    elif (words[:2] == ["printf", "-v"] or words[0] == "getopts") and len(words) > 2:
        yield words[2], UNKNOWN, False


def _note_command(place: TreePosition, known: KnownVariables) -> None:
    """Functions, those that run their own arguments, and `server &`."""
    node = place.node
    if node.get("Type") == "FuncDecl":
        known.functions.add((node.get("Name") or {}).get("Value", ""))
    if node.get("Type") != "CallExpr" or not node.get("Args"):
        return
    if (place.statement or {}).get("Background"):
        known.started.add(name_of(fold(node["Args"][0], known)))
    if place.function is not None:
        names = [variable(word) for word in node["Args"]]
        first = fold(node["Args"][0], known)
        runs = name_of(first) in RUNNING
        if names[0] in {"@", "*", "1"} or first == POSITIONAL or (runs and {"@", "*"} & set(names)):
            known.passing.add(place.function)


# --- Commands that a text takes from its own arguments, or from those of a function: shift; timeout 1h "$@" -----------


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
        """Count a shift."""
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
    """The shifts of a text, before any of them is passed."""
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


def inside_functions(known: KnownVariables, args: Sequence[str] | None) -> KnownVariables:
    """What is known inside of functions, whose arguments are their own and not those of the text."""
    if args is None or known.lists.get("@", list(args)) != list(args):
        return known  # nothing is known, or `set` put something in their place
    names: Mapping[str, str] = {name: text for name, text in known.texts.items() if not name.isdecimal()}
    lists = {name: words for name, words in known.lists.items() if name not in {"@", "*"}}
    return replace(known, texts=dict(names), lists=lists, kept={})
