"""Folding shell words to text. What is only known at run time becomes a sign in its place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from slurm_agent_tools.programs.program import spend

Node = dict[str, Any]

UNKNOWN = "\0"
TAME = "\1"  # unknown, but a number or a name: it cannot hold shell syntax
OWN_JOB = "\2"  # the job's own id
SELF = "\3"  # the script itself
POSITIONAL = "\4"  # the script's or function's arguments
SIGNS = re.compile("[\0\1\2\3\4]")
_RUN_TIME = re.compile("[\0\4]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r"\\([$`\"\\\n])")
_QUOTED = frozenset({"SglQuoted", "DblQuoted"})
_SPLIT = frozenset({"ParamExp", "CmdSubst"})
_MOST_VALUES = 8
MAX_WORD = 64 * 2**10
_LARGEST = 10**10  # a sum or product beyond this is not worked out
_ESCAPES = {"n": "\n", "t": "\t", "'": "'", '"': '"', "\\": "\\", "a": "\a", "r": "\r", "e": "\x1b", "E": "\x1b"}

_OWN = frozenset({"SLURM_JOB_ID", "SLURM_JOBID", "SLURM_ARRAY_JOB_ID"})
_TAME_WORDS = """
HOME USER LOGNAME PWD OLDPWD TMPDIR HOSTNAME RANDOM SECONDS EPOCHSECONDS UID EUID PPID BASHPID LINENO ? # $ ! -
"""

_TAME = frozenset(_TAME_WORDS.split())


@dataclass(slots=True)
class KnownVariables:
    """What is known of variables: `texts` with one value, `many` with several, `lists` of arrays and positions."""

    texts: dict[str, str] = field(default_factory=dict)
    many: dict[str, list[str]] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    computed: set[str] = field(default_factory=set)  # set to something that is only known at run time
    functions: set[str] = field(default_factory=set)
    parsed: set[str] = field(default_factory=set)  # variables that hold what getopt printed, and nothing else
    started: set[str] = field(default_factory=set)  # programs that run in the background
    passing: set[str] = field(default_factory=set)  # functions that run their own arguments
    shifting: set[str] = field(default_factory=set)  # functions that take arguments away
    kept: dict[int, list[str]] = field(default_factory=dict)  # words of commands, by the identity of their node


def unreadable(text: str) -> bool:
    """Whether a text holds what is only known at run time and may be anything."""
    return _RUN_TIME.search(text) is not None


def fold(word: Node | None, known: KnownVariables) -> str:
    """The text of a word; variables with one known value are put in."""
    text = "".join([_part(part, known) for part in (word or {}).get("Parts", ())])
    spend(1 + len(text) // 16)
    return text if len(text) <= MAX_WORD else UNKNOWN


def fold_heredoc(word: Node, known: KnownVariables, *, quoted: bool) -> str:
    """The text that a heredoc hands over: as it stands where its delimiter is quoted, else expanded."""
    if quoted:
        return "".join(part.get("Value", "") for part in word.get("Parts", ()))
    parts = (
        re.sub(r"\\([$`\\\n])", lambda found: found[1].strip("\n"), part.get("Value", ""))
        if part["Type"] == "Lit"
        else _part(part, known)
        for part in word.get("Parts", ())
    )
    return "".join(parts)


def expand(words: Sequence[Node], known: KnownVariables) -> list[str]:
    """The words of a command after expansion: unquoted variables split, arrays and braces spread out."""
    found: list[str] = []
    for word in words:
        listed = _listed(word, known) if known.lists else None
        if listed is not None:
            spend(len(listed))
            found += listed
            continue
        text = fold(word, known)
        kinds = [part["Type"] for part in word.get("Parts", ())]
        if not _QUOTED.isdisjoint(kinds):
            found.append(text)
        elif not _SPLIT.isdisjoint(kinds) and re.search(r"\s", text):
            found += text.split()
        elif "{" in text and "," in text and all(part["Type"] == "Lit" for part in word.get("Parts", ())):
            from slurm_agent_tools.text import shell_expansions  # noqa: PLC0415 - few scripts have any

            found += [one for one in shell_expansions.braces(text) if one]
        else:
            found.append(text)
    return found


def variable(word: Node | None) -> str | None:
    """The name where a word is nothing but one variable, quoted or not."""
    parts = (word or {}).get("Parts", ())
    if len(parts) == 1 and parts[0]["Type"] == "DblQuoted":
        parts = parts[0].get("Parts", ())
    if (
        len(parts) != 1
        or parts[0]["Type"] != "ParamExp"
        or any(parts[0].get(key) for key in ("Slice", "Repl", "Length"))
    ):
        return None
    name: str = parts[0]["Param"]["Value"]
    return name


def possible_commands(word: Node, text: str, known: KnownVariables) -> list[str]:
    """Every command that a variable in the first place may mean; `text` is its one value, where it has one."""
    others = _alternatives(word, known)
    return others if _constants(word, known) else list(dict.fromkeys([text, *others]))


def _alternatives(word: Node, known: KnownVariables) -> list[str]:
    """Every text that a word may be as far as it can be told: the values of a variable, its default, a reference."""
    name = variable(word)
    parts = word.get("Parts", ())
    inner = parts[0].get("Parts", parts)[0] if name is not None else {}
    found = [*known.many.get(name or "", ())]
    if (inner.get("Exp") or {}).get("Op") in {":-", "-", ":=", "=", ":+", "+"}:
        found.append(fold(inner["Exp"].get("Word"), known))
    if inner.get("Index"):
        found += known.lists.get(name or "", [])[:8]
    if inner.get("Excl"):
        found.append(known.texts.get(known.texts.get(name or "", ""), UNKNOWN))
    if "IFS" in known.texts and name in known.texts and parts[0]["Type"] == "ParamExp":
        signs = known.texts["IFS"]
        found.append("".join(" " if sign in signs else sign for sign in known.texts[name]))
    return [text for text in dict.fromkeys(found) if text][:_MOST_VALUES]


def _constants(word: Node, known: KnownVariables) -> bool:
    """Whether a word is one variable that is only ever set to a few constants, such as true and false."""
    name = variable(word)
    parts = word.get("Parts", ())
    inner = parts[0].get("Parts", parts)[0] if name is not None else {}
    values = known.many.get(name or "", ())
    plain = not any(inner.get(key) for key in ("Exp", "Excl", "Index"))
    return plain and 0 < len(values) <= _MOST_VALUES and all(text and not SIGNS.search(text) for text in values)


def _listed(word: Node, known: KnownVariables) -> list[str] | None:
    """The elements where a word is `"${array[@]}"` or `"$@"` and they are known; of `"${@#*=}"` what is left."""
    name = variable(word)
    if name is None or name not in known.lists:
        return None
    parts = word["Parts"][0].get("Parts", word["Parts"])
    index = fold(parts[0].get("Index"), known) if parts[0].get("Index") else name
    if index not in {"@", "*"}:
        return None
    listed, expansion = known.lists[name], parts[0].get("Exp") or {}
    if expansion.get("Op", "")[:1] not in {"#", "%", "^", ","}:
        return listed
    from slurm_agent_tools.text import shell_expansions  # noqa: PLC0415 - few scripts have any

    cut = fold(expansion.get("Word"), known)
    made = [None if unreadable(one) else shell_expansions.changed(expansion["Op"], one, cut) for one in listed]
    return [UNKNOWN if one is None else one for one in made]


def _part(part: Node, known: KnownVariables) -> str:  # noqa: PLR0911 - one answer for each kind of part
    match part["Type"]:
        case "Lit":
            text: str = part.get("Value", "")  # a bare word, without its backslashes
            return _ESCAPED.sub(lambda match: match[1].strip("\n"), text) if "\\" in text else text
        case "SglQuoted":
            text = part.get("Value", "")
            return _ansi(text) if part.get("Dollar") else text
        case "DblQuoted":
            return "".join([_quoted(inner, known) for inner in part.get("Parts", ())])
        case "ParamExp":
            value = _parameter(part, known)
            spend(len(value) // 16)
            return value
        case "CmdSubst":
            return _output(part, known)
        case "ArithmExp":
            number = _computed(part.get("X") or {}, known)
            return TAME if number is None or not 0 <= number < _LARGEST else str(number)
        case _:
            return UNKNOWN


def _computed(node: Node, known: KnownVariables) -> int | None:
    """What `$((8 * 3600))` comes to where all of it is known: sums and products of numbers."""
    match node.get("Type"):
        case "ParenArithm":
            return _computed(node["X"], known)
        case "BinaryArithm" if node.get("Op") in {"*", "+"}:
            left, right = _computed(node["X"], known), _computed(node["Y"], known)
            if left is None or right is None or max(left, right) >= _LARGEST:
                return None
            return left * right if node["Op"] == "*" else left + right
        case "Word":
            text = fold(node, known)
            text = known.texts.get(text, text)
            return int(text) if text.isdecimal() and text.isascii() and len(text) < 10 else None
        case _:
            return None


def _quoted(part: Node, known: KnownVariables) -> str:
    if part["Type"] != "Lit":
        return _part(part, known)
    text: str = part.get("Value", "")
    return _ESCAPED_IN_QUOTES.sub(lambda found: found[1].strip("\n"), text) if "\\" in text else text


def _ansi(text: str) -> str:
    text = re.sub(r"\\(?:x|u00)([0-9a-fA-F]{1,2})", lambda found: chr(int(found[1], 16)), text)
    text = re.sub(r"\\([0-7]{1,3})", lambda found: chr(int(found[1], 8) % 256), text)
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text)


def _parameter(part: Node, known: KnownVariables) -> str:  # noqa: PLR0911 - one answer for each kind of expansion
    name = part["Param"]["Value"]
    if part.get("Length"):
        return TAME
    if name == "BASH_SOURCE":
        return SELF
    if part.get("Names") and "SLURM_JOB_ID".startswith(name):
        return "SLURM_JOB_ID"
    if part.get("Excl") and not part.get("Names"):
        return known.texts.get(known.texts.get(name, ""), UNKNOWN)
    if any(part.get(key) for key in ("Slice", "Repl", "Excl", "Names")):
        return _cut(part, known) if name in known.texts and not part.get("Index") else UNKNOWN
    if part.get("Index"):
        index = fold(part["Index"], known)
        listed = known.lists.get(name, [])
        if f"{name}[{index}]" in known.texts:
            return known.texts[f"{name}[{index}]"]
        return " ".join(listed) if index in {"@", "*"} and listed else _element(listed, index)
    expansion = part.get("Exp") or {}
    if expansion:
        return _expanded(name, expansion, known)
    return _value(name, known)


def _element(listed: list[str], index: str) -> str:
    return listed[int(index)] if index.isdecimal() and int(index) < len(listed) else UNKNOWN


def _value(name: str, known: KnownVariables) -> str:
    if name in known.texts:
        return known.texts[name]
    if name in {"@", "*"} and name in known.lists:
        return " ".join(known.lists[name])
    if name in _OWN:
        return OWN_JOB
    if name in {"0", "BASH_SOURCE"}:
        return SELF
    if name in {"@", "*"} or name.isdecimal():
        return POSITIONAL
    return TAME if name in _TAME or name.startswith(("SLURM_", "SLURMD_")) else UNKNOWN


def _expanded(name: str, expansion: Node, known: KnownVariables) -> str:
    """`${X:-default}`, and `${X%...}` which only cuts."""
    operator = expansion.get("Op")
    if operator in {":-", "-", ":=", "="}:
        value = known.texts.get(name)
        if value is not None:
            return value
        other = fold(expansion.get("Word"), known)
        kept = _value(name, known)
        return other if kept == UNKNOWN and name not in known.computed and name not in known.many else kept
    if operator in {":?", "?"}:
        return _value(name, known)
    value = known.texts.get(name)
    if value is None or unreadable(value):
        return UNKNOWN
    if operator in {":+", "+"}:
        return fold(expansion.get("Word"), known) if value else ""
    from slurm_agent_tools.text import shell_expansions  # noqa: PLC0415 - as above

    made = shell_expansions.changed(operator or "", value, fold(expansion.get("Word"), known))
    return UNKNOWN if made is None else made


def _cut(part: Node, known: KnownVariables) -> str:
    """`${x:0:3}` and `${x/a/b}` of a constant."""
    from slurm_agent_tools.text import shell_expansions  # noqa: PLC0415 - as above

    value, made = known.texts[part["Param"]["Value"]], None
    if part.get("Slice") and not unreadable(value):
        bounds = part["Slice"]
        length = fold(bounds["Length"], known) if bounds.get("Length") else None
        made = shell_expansions.sliced(value, fold(bounds.get("Offset"), known), length)
    elif part.get("Repl") and not unreadable(value):
        change = part["Repl"]
        old, new = fold(change.get("Orig"), known), fold(change.get("With"), known)
        made = shell_expansions.replaced(value, old, new, everywhere=bool(change.get("All")))
    return UNKNOWN if made is None else made


def _output(part: Node, known: KnownVariables) -> str:  # noqa: PLR0911 - one answer for each command
    """What a few commands of constants print: echo, printf, which, command -v."""
    statements = part.get("Stmts", ())
    if len(statements) != 1:
        return UNKNOWN
    command = statements[0].get("Cmd") or {}
    if command.get("Type") == "BinaryCmd":
        return _of_two(command, known)
    if command.get("Type") != "CallExpr":
        return UNKNOWN
    words = expand(command.get("Args", ()), known)
    match words:
        case ["echo", *rest] if rest:
            return " ".join(word for word in rest if word not in {"-n", "-e"})
        case ["printf", pattern, *rest] if pattern != "-v":
            from slurm_agent_tools.text import shell_expansions  # noqa: PLC0415 - as above

            made = shell_expansions.formatted(pattern, rest)
            return UNKNOWN if made is None else made.rstrip("\n")
        case ["which" | "type", only] | ["type", "-P" | "-p", only]:
            return only if "%" not in only else UNKNOWN
        case ["command", "-v", only]:
            return only
        case ["readlink" | "realpath" | "basename", *_, last] if last.startswith(SELF):
            return last
        case (
            ["pwd" | "hostname" | "nproc" | "date" | "whoami" | "mktemp" | "seq" | "wc", *_]
            | ["scontrol", "show", "hostname" | "hostnames", *_]
            | ["srun", *_, "hostname"]
        ):
            return TAME if _SAID.match(" ".join(words)) is None else UNKNOWN
        case _:
            return UNKNOWN


# `date +sbatch` prints a command.
_SAID = re.compile(r"(?:date|seq)\s.*?(?<!%)[+=\s](?>(?:(?![A-Za-z]{4})[^%\s+=])*)[A-Za-z]{4}")
_FILTERS = frozenset({"head", "tail", "sort", "uniq", "paste", "tr", "cut", "wc", "nl", "shuf", "tac", "xargs"})


def _of_two(command: Node, known: KnownVariables) -> str:
    if command.get("Op") == "||":
        return _either(*(_output({"Stmts": [command[side]]}, known) for side in ("X", "Y")))
    return _filtered(command, known) if command.get("Op") == "|" else UNKNOWN


def _filtered(command: Node, known: KnownVariables) -> str:
    """`scontrol show hostnames | sort -u | paste -sd,`: what stands in names and numbers stays there."""
    words = expand((command["Y"].get("Cmd") or {}).get("Args", ()), known) or [""]
    made = any(re.search(r"(?<!\\)[A-Za-z]", word) for word in words[1:] if not word.startswith("-"))
    plain = words[0] in _FILTERS and (words[0] not in {"tr", "xargs"} or not made)
    return TAME if plain and _output({"Stmts": [command["X"]]}, known) == TAME else UNKNOWN


def _either(first: str, second: str) -> str:
    """`$(command -v a || command -v b)`: the first one, unless the second one submits jobs."""
    known = [text for text in (first, second) if text != UNKNOWN]
    submits = (text for text in known if text.rpartition("/")[2].startswith(("sbatch", "salloc", "scontrol")))
    return next(submits, known[0] if known else UNKNOWN)


def line_of(node: Node) -> int:
    """The line that a node starts on."""
    return int(node.get("Pos", 0))
