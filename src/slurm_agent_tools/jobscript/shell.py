"""What a shell program does: one walk over the syntax tree of shfmt, collecting what the policy asks about."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slurm_agent_tools.jobscript import clients, commands, inputs, loops
from slurm_agent_tools.jobscript.call import Call
from slurm_agent_tools.jobscript.effort import TooLarge
from slurm_agent_tools.jobscript.program import DEVICES, NUMBERED, File, Program
from slurm_agent_tools.jobscript.tree import Place, calls, flatten, learn, words_of
from slurm_agent_tools.jobscript.words import (
    Known,
    Node,
    alternatives,
    fold,
    line_of,
    unreadable,
    variable,
)
from slurm_agent_tools.jobscript.wrappers import SHELLS, name_of

_COMPARING = frozenset({"==", "!=", "<=", ">="})


def read_shell(tree: Node, *, args: Sequence[str] | None = None, script: str = "") -> Program:
    """Walk the whole tree. `args` are the script's arguments where they are known, `script` its file name.

    Bounded: a tree that is too large or too deep is itself a finding.
    """
    program = Program()
    try:
        places = flatten(tree)
        known = learn(places, args)
        _walk(program, places, known, script)
    except (TooLarge, RecursionError):
        program.opaque("the text is too large or nested too deeply to be read", 1)
    return program


def _walk(program: Program, places: Sequence[Place], known: Known, script: str) -> None:
    """Every place in order; what went before matters to `srun` without its job, and to a test of the last status."""
    outside, last = False, None
    held = loops.status_variables(place.node for place in places)
    for place in places:
        _visit(program, place, known, script, outside=outside)
        if place.node.get("Type") == "IfClause":
            loops.judge_status(program, place.node, known, last, held)
        words = words_of(place.node, known) if place.node.get("Type") == "CallExpr" else []
        if words:
            outside = outside or clients.unsets(words)
            last = loops.essence(words) if loops.works(words) else last


def _visit(program: Program, place: Place, known: Known, script: str, *, outside: bool) -> None:
    node = place.node
    kind = node.get("Type")
    if "Redirs" in node:
        inputs.read_statement(program, node, known)
    if kind == "CallExpr":
        _assigned(program, node.get("Assigns", ()), known)
        _called(program, place, known, script, outside=outside)
    elif kind == "DeclClause":
        _declared(program, node, known)
    elif kind == "WordIter":
        program.sets(node["Name"]["Value"], line_of(node))
    elif kind in {"WhileClause", "ForClause"}:
        loops.judge_loop(program, node, known)
    elif kind == "IfClause":
        loops.judge_chain(program, node, known)
    elif kind == "FuncDecl":
        loops.judge_function(program, node, known)
    elif kind == "BinaryCmd":
        _joined(program, node, known)
    elif kind in {"BinaryArithm", "UnaryArithm", "ParamExp"}:
        _computed(program, node, known)


def _joined(program: Program, node: Node, known: Known) -> None:
    if node.get("Op") in {"|", "|&"}:
        inputs.read_pipe(program, node, known)
    elif node.get("Op") == "||":
        loops.judge_chain(program, node, known)


def _computed(program: Program, node: Node, known: Known) -> None:
    """Assignments inside arithmetic and expansions: `((X=1))`, `((X++))`, `${X:=1}`."""
    kind, operator = node["Type"], node.get("Op", "")
    if kind == "ParamExp":
        if (node.get("Exp") or {}).get("Op") in {":=", "="}:
            program.sets(node["Param"]["Value"], line_of(node))
    elif (kind == "UnaryArithm" and operator in {"++", "--"}) or (
        operator.endswith("=") and operator not in _COMPARING
    ):
        program.sets(fold(node.get("X"), known), line_of(node))


def _called(program: Program, place: Place, known: Known, script: str, *, outside: bool) -> None:
    node = place.node
    args = node.get("Args", ())
    if not args:
        return
    words, line = words_of(node, known), line_of(node)
    if not words or not words[0]:
        return
    name = name_of(words[0])
    if name == "eval" and inputs.is_setup(list(args[1:]), known):
        return
    program_word = next((word for word in args[1:] if not fold(word, known).startswith("-")), None)
    runs = name in SHELLS or name in {"source", "."} or inputs.PYTHON.fullmatch(name) is not None
    if runs and program_word is not None and inputs.substituted(program, program_word, known):
        return
    if place.function is not None and variable(args[0]) in {"@", "*", "1"}:
        return  # judged where the function is called
    for start in dict.fromkeys((words[0], *alternatives(args[0], known))):
        whole = [*start.split(), *words[1:]] if start != words[0] else words
        if whole:
            commands.judge(Call(program, whole, line, known, script, outside))


def _assigned(program: Program, assigns: Sequence[Node], known: Known) -> None:
    for assign in assigns:
        name, line = (assign.get("Name") or {}).get("Value", ""), line_of(assign)
        _set(program, name, assign.get("Value"), line)
        if assign.get("Index"):
            program.sets(_key(assign["Index"], known), line)
        for element in (assign.get("Array") or {}).get("Elems", ()):
            if element.get("Index"):
                program.sets(_key(element["Index"], known), line_of(element))
        value = fold(assign.get("Value"), known)
        if NUMBERED.fullmatch(value):
            program.find("device-index", f"it names a device by its number: {name}={value}", line)


def _key(index: Node, known: Known) -> str:
    return fold(index, known).strip("'\"")


def _set(program: Program, name: str, value: Node | None, line: int) -> None:
    """A variable is set; to hand on what Slurm set (`X=$CUDA_VISIBLE_DEVICES`) is worth a word only."""
    passed = variable(value)
    if DEVICES.fullmatch(name) and passed is not None and DEVICES.fullmatch(passed):
        program.find("cuda-visible-devices", f"it hands {passed} on as {name}", line, "warn")
    else:
        program.sets(name, line)


def _declared(program: Program, node: Node, known: Known) -> None:
    """export, declare, local, readonly, typeset; also of names that are computed, and references to a name."""
    args = node.get("Args", ())
    _assigned(program, [item for item in args if not item.get("Naked")], known)
    flags = "".join(fold(item.get("Value"), known) for item in args if item.get("Naked") and item.get("Value"))
    if re.search(r"-\w*n", flags) and (node.get("Variant") or {}).get("Value") != "export":
        for item in args:
            program.sets(fold(item.get("Value"), known), line_of(item))
    for item in args:
        if item.get("Naked") and item.get("Value"):
            _named(program, item, known)


def _named(program: Program, item: Node, known: Known) -> None:
    """`export "$name=0"`, `export $(cat .env)`: what is set is only known where the name is."""
    text = fold(item["Value"], known)
    name, sign, _ = text.partition("=")
    if sign and not unreadable(name):
        program.sets(name, line_of(item))
    elif sign:
        program.sets(name, line_of(item))
        program.opaque("it sets a variable whose name is computed", line_of(item))
    elif unreadable(name) and not name.startswith("-"):
        _exported(program, item, known)


def _exported(program: Program, item: Node, known: Known) -> None:
    """`export $(grep -v '^#' .env | xargs)` reads settings from a file, which is followed; else it is opaque."""
    parts = item["Value"].get("Parts", ())
    inner = [part for part in parts if part["Type"] == "CmdSubst"]
    files = [word for part in inner for words in _calls(part, known) for word in words[1:] if ".env" in name_of(word)]
    if not inner:
        return
    for path in files:
        program.files.append(File("source", path, line_of(item)))
    level = "warn" if files else "approve"
    program.opaque("it exports variables that a command prints", line_of(item), level)  # type: ignore[arg-type]


def _calls(part: Node, known: Known) -> list[list[str]]:
    return list(calls(part.get("Stmts", []), known))
