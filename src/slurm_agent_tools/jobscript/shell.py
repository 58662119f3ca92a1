"""What a shell program does: one walk over the syntax tree of shfmt, collecting what the policy asks about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from slurm_agent_tools.jobscript import commands
from slurm_agent_tools.jobscript.words import UNKNOWN, Node, fold, line_of

DEVICES = re.compile(
    r"(?:SINGULARITYENV_|APPTAINERENV_)?"
    r"(?:CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|HIP_VISIBLE_DEVICES|ROCR_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ZE_AFFINITY_MASK)"
)
MAX_NODES = 400_000
_TESTS = {
    "[",
    "[[",
    "test",
    "((",
    ":",
    "true",
    "false",
    "read",
    "sleep",
    "kill",
    "pgrep",
    "grep",
    "squeue",
    "ls",
    "nc",
    "curl",
}


@dataclass(slots=True)
class Program:
    """What was found in one text, and what should be read next."""

    findings: list[tuple[str, str, str, int]] = field(default_factory=list)  # rule, what, level, line
    texts: list[tuple[str, str, int]] = field(default_factory=list)  # language, text, line
    files: list[tuple[str, str, int]] = field(default_factory=list)  # how (run, source, python), path, line
    own: str = ""  # the file name of the script itself
    written: dict[str, tuple[str, int]] = field(default_factory=dict)  # path -> text that a heredoc wrote

    def find(self, rule: str, what: str, line: int, level: str = "deny") -> None:
        """Note a finding once per rule and line."""
        entry = (rule, what, level, line)
        if entry not in self.findings:
            self.findings.append(entry)


def read_shell(tree: Node, own: str = "") -> Program:
    """Walk the whole tree of the script with the file name `own`. A tree that is too large is itself a finding."""
    program = Program(own=own)
    known = constants(tree)
    for count, (node, outer) in enumerate(walk(tree)):
        if count > MAX_NODES:
            program.find("opaque-code", "the script is too large to be read", 1, "approve")
            break
        _visit(program, node, outer, known)
    return program


def walk(tree: Node) -> Iterator[tuple[Node, Node | None]]:
    """Every node with the nearest statement around it, in order of the text; no recursion, so no depth limit."""
    stack: list[tuple[object, Node | None]] = [(tree, None)]
    while stack:
        item, outer = stack.pop()
        if isinstance(item, list):
            stack += [(inner, outer) for inner in reversed(item)]
        elif isinstance(item, dict):
            yield item, outer
            inside = item if "Cmd" in item or "Redirs" in item else outer
            stack += [(value, inside) for value in reversed(list(item.values())) if isinstance(value, dict | list)]


def constants(tree: Node) -> dict[str, str]:
    """Variables that are given exactly one constant value in the whole text."""
    values: dict[str, str] = {}
    times: Counter[str] = Counter()
    for node, _ in walk(tree):
        for assign in (*node.get("Assigns", ()), *(node.get("Args", ()) if node.get("Type") == "DeclClause" else ())):
            name = (assign.get("Name") or {}).get("Value")
            if name is None or assign.get("Naked"):
                continue
            times[name] += 1
            values[name] = fold(assign.get("Value"), values)
        if node.get("Type") == "WordIter":
            times[node["Name"]["Value"]] += 2
    return {name: value for name, value in values.items() if times[name] == 1 and UNKNOWN not in value}


def _visit(program: Program, node: Node, outer: Node | None, known: dict[str, str]) -> None:
    kind = node.get("Type")
    if kind == "CallExpr":
        _assigned(program, node.get("Assigns", ()))
        words = [fold(word, known) for word in node.get("Args", ())]
        if words and not (words[0] == "eval" and _is_setup(node, known)):
            commands.judge(program, words, line_of(node), outer or node, known)
            if commands.runs_files(words) and any(_is_stream(word) for word in node["Args"]):
                program.find("opaque-code", "it runs text that another command prints", line_of(node), "approve")
    elif kind == "DeclClause":
        _assigned(program, [item for item in node.get("Args", ()) if not item.get("Naked")])
        _computed_names(program, node, known)
    elif kind == "WordIter":
        _named(program, node["Name"]["Value"], line_of(node))
    elif kind in {"WhileClause", "ForClause"}:
        _loop(program, node, known)
    elif kind == "BinaryArithm" and node.get("Op", "").endswith("=") and node["Op"] not in {"==", "!=", "<=", ">="}:
        _named(program, fold(node.get("X"), {}), line_of(node))
    elif kind == "ParamExp" and (node.get("Exp") or {}).get("Op") in {":=", "="}:
        _named(program, node["Param"]["Value"], line_of(node))
    elif kind == "BinaryCmd" and node.get("Op") in {"|", "|&"}:
        _pipe(program, node, known)


def _is_stream(word: Node) -> bool:
    """`<(command)`."""
    return any(part.get("Type") == "ProcSubst" for part in word.get("Parts", ()))


_SETUP = re.compile(
    r"(?:.*/)?(?:conda|mamba|micromamba|modulecmd|lmod|spack|ssh-agent|pyenv|direnv|dircolors|brew|starship"
    r"|register-python-argcomplete)"
)
_SETUP_NAMES = re.compile(r"_*(?:conda|mamba)_setup")


def _is_setup(node: Node, known: dict[str, str]) -> bool:
    """`eval "$(conda shell.bash hook)"` and its like: what every real script does to set up its environment."""
    inner = [part for part, _ in walk({"Args": node["Args"][1:]}) if part.get("Type") in {"CmdSubst", "ParamExp"}]
    outer = inner[0] if inner else {}
    if outer.get("Type") == "ParamExp":
        return _SETUP_NAMES.fullmatch(outer["Param"]["Value"]) is not None
    names = _commands(outer.get("Stmts", []), known) if outer else []
    return bool(names) and all(_SETUP.fullmatch(name) for name in names)


def _assigned(program: Program, assigns: list[Node] | tuple[Node, ...]) -> None:
    for assign in assigns:
        name = (assign.get("Name") or {}).get("Value", "")
        _named(program, name, line_of(assign))
        index = assign.get("Index")
        if index is not None:
            _named(program, fold(index, {}), line_of(assign))
        for element in (assign.get("Array") or {}).get("Elems", ()):
            if element.get("Index") is not None:
                _named(program, fold(element["Index"], {}).strip("'\""), line_of(element))


def _computed_names(program: Program, node: Node, known: dict[str, str]) -> None:
    """`export "$name=0"`: what is set is only known where the name is."""
    for item in node.get("Args", ()):
        text = fold(item.get("Value"), known) if item.get("Naked") else ""
        name, sign, _ = text.partition("=")
        if not sign:
            continue
        if UNKNOWN in name:
            program.find("opaque-code", "it exports a variable whose name is computed", line_of(item), "approve")
        else:
            _named(program, name, line_of(item))


def _named(program: Program, name: str, line: int) -> None:
    if DEVICES.fullmatch(name):
        program.find("cuda-visible-devices", f"it sets {name}", line)


def _loop(program: Program, node: Node, known: dict[str, str]) -> None:
    """A loop that repeats a command until it succeeds is a retry; waiting for a file or counting is not."""
    body = node.get("Do", [])
    condition = _commands(node.get("Cond", []), known)
    negated = any(statement.get("Negated") for statement in node.get("Cond", []))
    repeats = (node.get("Until") or negated) and any(word not in _TESTS for word in condition)
    if repeats or _breaks_on_success(body):
        program.find("auto-retry", "it repeats a command until it succeeds", line_of(node))


def _commands(statements: list[Node], known: dict[str, str]) -> list[str]:
    found = []
    for node, _ in walk({"Stmts": statements}):
        if node.get("Type") == "CallExpr" and node.get("Args"):
            found.append(fold(node["Args"][0], known).rpartition("/")[2])
        elif node.get("Type") in {"TestClause", "ArithmCmd"}:
            found.append("[[")
    return found


def _breaks_on_success(body: list[Node]) -> bool:
    """`work && break` in a loop, with work being more than a test."""
    for node, _ in walk({"Stmts": body}):
        if node.get("Type") == "BinaryCmd" and node.get("Op") == "&&" and _commands([node["Y"]], {})[:1] == ["break"]:
            return any(word not in _TESTS for word in _commands([node["X"]], {}))
        if node.get("Type") == "IfClause" and _commands(node.get("Then", []), {})[:1] == ["break"]:
            words = _commands(node.get("Cond", []), {})
            if words and all(word not in _TESTS for word in words):
                return True
    return False


def _pipe(program: Program, node: Node, known: dict[str, str]) -> None:
    """Text that is piped into a shell runs: it is read where it is constant, otherwise it is opaque."""
    target = node["Y"].get("Cmd") or {}
    words = [fold(word, known) for word in target.get("Args", ())]
    if target.get("Type") != "CallExpr" or not commands.reads_program(words):
        return
    source = node["X"].get("Cmd") or {}
    text = [fold(word, known) for word in source.get("Args", ())]
    if text[:1] in (["echo"], ["printf"]) and not any(UNKNOWN in word for word in text):
        program.texts.append((commands.language(words), " ".join(text[1:]), line_of(node)))
    elif not any(redirect.get("Hdoc") for redirect in node["X"].get("Redirs", ())):
        program.find("opaque-code", "it runs text that another command prints", line_of(node), "approve")
