"""Commands by which a job keeps its nodes for a person: servers to look at, tunnels, terminals, and sleeping.

Loaded by the scripts that hold such a command. A command that only waits counts where the job itself comes to it: not
in the background, not in a pipe that feeds a program, and, where it ends by itself, not in a loop.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from slurm_agent_tools.programs import called_programs
from slurm_agent_tools.programs.program import LONG, IdleCommand, Program
from slurm_agent_tools.programs.shell_words import Node, line_of
from slurm_agent_tools.programs.wrapped_command import Command

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}

_NOTEBOOKS = frozenset({"lab", "notebook", "server", "nbclassic", "kernelgateway", "edit"})

# Subcommands with which a program waits for a person; the empty one stands for no word at all.
_SUBCOMMANDS = {
    "jupyter": _NOTEBOOKS,
    "marimo": _NOTEBOOKS,
    **dict.fromkeys(("code", "code-insiders", "cursor"), frozenset({"tunnel", "serve-web"})),
    "tmux": frozenset({"", "new", "new-session", "attach", "attach-session", "a"}),
    "ngrok": frozenset({"http", "tcp", "tls", "start"}),
    "cloudflared": frozenset({"tunnel", "access"}),
    "bore": frozenset({"local"}),
    "rstudio-server": frozenset({"start", "restart"}),
}

_LOOKING = re.compile(
    r"--?(?:version|help|list|kill|clean|wipe|ls|X|V|h|v|t|generate-config)|-list|-kill:?\S*|-Q|-q", re.IGNORECASE
)

_REVERSE = re.compile(r"-[fnNqTtvxXY46AaCgkKMs]*R(?:\d\S*)?|(?is:-oRemoteForward\b.*)")
_PASSING = frozenset({"|", "|&"})


def keeps(call: Command) -> None:
    """One command: what it may keep the node for, and what else it does."""
    if call.name in {"sleep", "tail"}:
        _waits(call)
        return
    waits = _forwards(call) if call.name in {"ssh", "autossh"} else _serves(call)
    if waits:
        call.program.find("interactive", f"it keeps the node for a person: {_shown(call)}", call.line, "justify")
    if call.name in {"ssh", "autossh"}:
        called_programs.ssh(call)
    elif call.name == "jupyter":
        called_programs.notebook(call)
    elif call.name == "tmux":
        called_programs.tmux(call)


def _shown(call: Command) -> str:
    return f"`{' '.join(word for word in call.words[:3] if word.isprintable())[:60]}`"


def _serves(call: Command) -> bool:
    """A server or a terminal of its own, unless it is only asked, stopped or told something."""
    if any(_LOOKING.fullmatch(word) for word in call.rest[:1]):
        return False
    wanted = _SUBCOMMANDS.get(call.name)
    plain = [word for word in call.rest if not word.startswith("-")] or [""]
    return (wanted is None or plain[0] in wanted) and not {"list", "stop", "password", "--version"} & set(call.rest[:2])


def _forwards(call: Command) -> bool:
    """`ssh -R`: a way from elsewhere into the job. Options may stand behind the host, too."""
    position, hosts, rest = 0, 0, call.rest
    while position < len(rest) and hosts < 2:  # the second plain word is a command
        option = rest[position]
        value = rest[position + 1] if position + 1 < len(rest) else ""
        if _REVERSE.fullmatch(option) or (option == "-o" and value.lower().startswith("remoteforward")):
            return True
        hosts += not option.startswith("-")
        position += 2 if re.fullmatch(r"-\w*[pilFJLDWwoEMbcemSOQB]", option) else 1
    return False


def _waits(call: Command) -> None:
    """`sleep infinity`, `sleep 8h` and `tail -f`: judged when it is known where in the text they stand."""
    if call.name == "tail":
        follows = any(re.fullmatch(r"-(?=\w*[fF])\w+|--follow\S*", word) for word in call.rest)
        ends = any(word.startswith("--pid") for word in call.rest)
        if follows and not ends:
            call.program.idles.append(IdleCommand("endless", _shown(call), call.line))
        return
    seconds = _seconds(call.rest)
    if seconds >= LONG:
        ends = seconds != float("inf")
        call.program.idles.append(IdleCommand("long" if ends else "endless", _shown(call), call.line))


def _seconds(words: Sequence[str]) -> float:
    """How long sleep sleeps; what is not known counts nothing."""
    total = 0.0
    for word in words:
        match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?|inf(?:inity)?)([smhd]?)", word)
        if match is not None:
            total += float(match[1]) * _UNITS[match[2]]
    return total


def judge_idles(program: Program, tree: Node, *, workers: bool) -> None:
    """Keep of `program.idles` those that the text itself comes to. `workers`: work was started in the background."""
    plain, looped, elsewhere = _places(tree)
    kept = []
    for idle in program.idles:
        place = (idle.line, idle.kind == "loop")
        reached = place in plain or (place in looped and idle.kind != "long")
        if reached and place not in elsewhere:
            kept.append(replace(idle, workers=workers))
    program.idles = kept


_Places = set[tuple[int, bool]]


def _places(tree: Node) -> tuple[_Places, _Places, _Places]:
    """(line, whether it is a loop) of what runs in the foreground, outside of loops and in them, and elsewhere."""
    found: tuple[_Places, _Places, _Places] = (set(), set(), set())
    functions: dict[str, Node] = {}
    statements = tree.get("Stmts", ())
    waits = any(_first_word(statement) == "wait" for statement in statements)
    rest: deque[tuple[Node, bool]] = deque((statement, False) for statement in statements)
    while rest:
        statement, looped = rest.popleft()
        command = statement.get("Cmd") or {}
        kind = command.get("Type")
        if kind == "FuncDecl":
            functions[(command.get("Name") or {}).get("Value", "")] = command.get("Body") or {}
            continue
        loops = kind in {"WhileClause", "ForClause"}
        if statement.get("Background") and not (waits and kind == "CallExpr"):
            found[2].add((line_of(command), loops))
            continue
        if kind == "CallExpr" or loops:
            found[looped].add((line_of(command), loops))
        if kind == "BinaryCmd" and command.get("Op") in _PASSING:
            found[2].add((line_of(command["X"]), False))
        body = functions.pop(_first_word(statement), None) if kind == "CallExpr" else None
        rest.extendleft([(body, looped)] if body is not None else [])
        rest.extendleft((inner, looped or loops) for inner in reversed(_below(command)))
    return found


def _first_word(statement: Node) -> str:
    words = (statement.get("Cmd") or {}).get("Args") or [{}]
    return "".join(part.get("Value", "") for part in words[0].get("Parts", ()))


_BRANCHES = ("Cond", "Then", "Do", "Stmts")


def _below(command: Node) -> list[Node]:
    """The statements that a command consists of; of a pipe only its end, which decides when it is over."""
    if command.get("Type") == "BinaryCmd":
        return [command["Y"]] if command.get("Op") in _PASSING else [command["X"], command["Y"]]
    found = [inner for name in _BRANCHES for inner in command.get(name) or () if isinstance(inner, dict)]
    if command.get("Else"):
        found.append({"Cmd": {**command["Else"], "Type": "IfClause"}})
    if command.get("Stmt"):  # time
        found.append(command["Stmt"])
    return [*found, *(inner for item in command.get("Items") or () for inner in item.get("Stmts") or ())]
