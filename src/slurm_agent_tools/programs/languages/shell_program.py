"""What a shell program does: one walk over the syntax tree of shfmt, collecting what the policy asks about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from slurm_agent_tools.programs import shell_inputs, shell_tree
from slurm_agent_tools.programs.job_work import Restarts, is_work, work_of
from slurm_agent_tools.programs.languages import shell_commands
from slurm_agent_tools.programs.program import DEVICES, NUMBERED, PassedCommand, Program, RunFile, TooLarge
from slurm_agent_tools.programs.shell_tree import TreePosition, calls, flatten, learn, words_of
from slurm_agent_tools.programs.shell_words import (
    POSITIONAL,
    UNKNOWN,
    KnownVariables,
    Node,
    expand,
    fold,
    line_of,
    possible_commands,
    unreadable,
    variable,
)
from slurm_agent_tools.programs.wrapped_command import JOB_ID_VARIABLES, SHELLS, Command, name_of

_COMPARING = frozenset({"==", "!=", "<=", ">="})


def read_shell(
    tree: Node,
    *,
    args: Sequence[str] | None = None,
    script: str = "",
    zero: str | None = None,
    variables: Mapping[str, str] | None = None,
) -> Program:
    """Walk the whole tree. `args` are the script's arguments where they are known, `script` its file name.

    `zero` is what `$0` is in a text that is not the script, `variables` are those that it finds set.

    Bounded: a tree that is too large or too deep is itself a finding.
    """
    program = Program()
    try:
        places = flatten(tree)
        known = learn(places, args, variables)
        one = {name: [text] for name, text in known.texts.items() if not name.isdigit()}
        for name, values in {**known.many, **one}.items():
            program.variables[name] = [text for text in values if not unreadable(text)]
        if zero is not None:
            known.texts["0"] = zero
        own = shell_tree.inside_functions(known, args) if known.functions else known
        shifts = shell_tree.shifts_before(tree, places, known)
        passed = shell_tree.taken(known, shifts) if shifts.all else []
        _walk(program, places, known, own, shifts, script)
        if program.passes:
            _pass_on(program, places, known, own, passed, script)
        if program.idles:
            _judge_idles(program, tree, known)
    except (TooLarge, RecursionError):
        program.opaque("the text is too large or nested too deeply to be read", 1)
    return program


def _judge_idles(program: Program, tree: Node, known: KnownVariables) -> None:
    from slurm_agent_tools.programs import kept_nodes  # noqa: PLC0415 - few scripts keep a node

    kept_nodes.judge_idles(program, tree, workers=any(is_work([name]) for name in known.started))


def _pass_on(
    program: Program,
    places: Sequence[TreePosition],
    known: KnownVariables,
    own: KnownVariables,
    args: Sequence[str],
    script: str,
) -> None:
    """Judge what functions, and the text itself, run out of their arguments; what cannot be told is opaque."""
    called = [
        (place.function, words_of(place.node, known if place.function is None else own), line_of(place.node))
        for place in places
        if place.node.get("Type") == "CallExpr" and place.node.get("Args")
    ]
    done: set[PassedCommand] = set()
    for _ in range(shell_tree.MAX_ROUNDS):
        waiting, program.passes = [one for one in program.passes if one not in done], []
        for one in waiting:
            done.add(one)
            _hand_over(program, one, called, args if one.own else (), Command(program, ("",), one.line, known, script))
    for one in program.passes:
        program.opaque("it runs its own arguments as a command", one.line)


def _hand_over(
    program: Program, one: PassedCommand, called: Sequence[shell_tree.Called], args: Sequence[str], by: Command
) -> None:
    """One such command, for each call of its function or with the arguments of the text."""
    calls_of: list[tuple[str | None, list[str], int]] = [(None, list(args), one.line)] if args else []
    if one.function is not None:
        calls_of = list(shell_tree.passed_arguments(one.function, called))
    if not calls_of and not one.quiet:
        program.opaque("it runs its own arguments as a command", one.line)
    for scope, words, line in calls_of:
        before = len(program.passes)
        for whole in shell_tree.filled(one, words):
            shell_commands.judge(replace(by, words=whole, line=line))
        program.passes[before:] = [replace(new, function=scope, quiet=one.quiet) for new in program.passes[before:]]


def _walk(
    program: Program,
    places: Sequence[TreePosition],
    known: KnownVariables,
    own: KnownVariables,
    shifts: shell_tree.Shifts,
    script: str,
) -> None:
    """Every place in order; what went before matters to `srun` without its job, and to a test of the last status."""
    outside, last = False, None
    tests = any(place.node.get("Type") in {"IfClause", "CaseClause"} for place in places)
    held = _held(places) if tests else set[str]()
    restarts = Restarts()
    everywhere = known
    for place in places:
        known = everywhere if place.function is None else own
        before = len(program.passes)
        _visit(program, place, known, script, outside=outside)
        program.passes[before:] = [shifts.placed(one, place, known) for one in program.passes[before:]]
        restarts.look(place.node, known)
        if place.node.get("Type") in {"IfClause", "CaseClause"}:
            _judge_status(program, place.node, known, last, held)
        words = words_of(place.node, known) if place.node.get("Type") == "CallExpr" else []
        if not words:
            outside = outside or _emptied(place.node, known)
        if words:
            outside = outside or (words[0] == "unset" and not JOB_ID_VARIABLES.isdisjoint(words[1:]))
            last = work_of(words) if is_work(words) else last
            if words[0] == "shift":
                shifts.pass_over(place, words)
    if restarts.again:
        restarts.judge(program)


def _visit(program: Program, place: TreePosition, known: KnownVariables, script: str, *, outside: bool) -> None:
    node = place.node
    kind = node.get("Type")
    if "Redirs" in node:
        shell_inputs.read_statement(program, node, known)
    if kind == "CallExpr":
        _assigned(program, node.get("Assigns", ()), known)
        _called(program, place, known, script, outside=outside)
    elif kind == "DeclClause":
        _declared(program, node, known)
    elif kind == "WordIter":
        _listed(program, node, known)
    elif kind in {"WhileClause", "ForClause", "IfClause", "FuncDecl"}:
        _again(program, node, known)
    elif kind == "BinaryCmd":
        _joined(program, node, known)
    elif kind in {"BinaryArithm", "UnaryArithm", "ParamExp"}:
        _computed(program, node, known)


def _listed(program: Program, node: Node, known: KnownVariables) -> None:
    """`for NAME in words`."""
    program.sets(node["Name"]["Value"], line_of(node))
    for value in expand(node.get("Items", ()), known):
        if NUMBERED.fullmatch(value):
            program.find("device-index", f"it goes through devices by their number: {value}", line_of(node))


def _joined(program: Program, node: Node, known: KnownVariables) -> None:
    if node.get("Op") in {"|", "|&"}:
        shell_inputs.read_pipe(program, node, known)
    elif node.get("Op") == "||":
        _again(program, node, known)


def _again(program: Program, node: Node, known: KnownVariables) -> None:
    """Loops, branches and functions, which may do the same work again."""
    from slurm_agent_tools.programs.languages import shell_loops  # noqa: PLC0415 - 4 ms, and plain commands have none

    shell_loops.judge(program, node, known)


def _held(places: Sequence[TreePosition]) -> set[str]:
    """Variables that hold a status."""
    from slurm_agent_tools.programs.languages import shell_loops  # noqa: PLC0415 - as above

    return shell_loops.status_variables(place.node for place in places)


def _judge_status(
    program: Program, node: Node, known: KnownVariables, before: tuple[str, ...] | None, held: set[str]
) -> None:
    from slurm_agent_tools.programs.languages import shell_loops  # noqa: PLC0415 - as above

    shell_loops.judge_status(program, node, known, before, held)


def _computed(program: Program, node: Node, known: KnownVariables) -> None:
    """Assignments inside arithmetic and expansions: `((X=1))`, `((X++))`, `${X:=1}`."""
    kind, operator = node["Type"], node.get("Op", "")
    if kind == "ParamExp":
        if (node.get("Exp") or {}).get("Op") in {":=", "="}:
            program.sets(node["Param"]["Value"], line_of(node))
    elif (kind == "UnaryArithm" and operator in {"++", "--"}) or (
        operator.endswith("=") and operator not in _COMPARING
    ):
        program.sets(fold(node.get("X"), known), line_of(node))


def _called(program: Program, place: TreePosition, known: KnownVariables, script: str, *, outside: bool) -> None:
    node = place.node
    args = node.get("Args", ())
    words, line = words_of(node, known) if args else [], line_of(node)
    if not words or not words[0]:
        return
    # After `declare -n x=y` it is what y holds that `$x` runs.
    words = [known.texts.get(words[0], words[0]), *words[1:]] if "renamed" in program.notes else words
    name, held_in = name_of(words[0]), variable(args[0])
    if name == "eval" and (
        shell_inputs.is_setup(list(args[1:]), known) or shell_inputs.is_getopt(list(args[1:]), known)
    ):
        return
    program_word = next((word for word in args[1:] if not fold(word, known).startswith("-")), None)
    runs = name in SHELLS or name in {"source", "."} or shell_inputs.PYTHON.fullmatch(name) is not None
    if runs and program_word is not None and shell_inputs.substituted(program, program_word, known):
        return
    for word in words[1:] if name in known.functions and "reference" in program.notes else ():
        program.sets(word, line)
    outside = outside or _emptied(node, known)
    if not words[0].strip(UNKNOWN) and any(part["Type"] == "CmdSubst" for part in args[0].get("Parts", ())):
        program.opaque("it runs a command whose name another command prints", line)
    if place.function is not None and (held_in in {"@", "*", "1"} or words[0] == POSITIONAL):
        program.passes.append(PassedCommand((POSITIONAL, *words[1:]), line, quiet=True))
        return
    if place.function is None and (held_in or "").isdecimal() and "" in known.shifting:
        program.passes.append(PassedCommand((POSITIONAL, *words[1:]), line))
    for start in [words[0]] if held_in is None else possible_commands(args[0], words[0], known):
        whole = [*start.split(), *words[1:]] if start != words[0] else words
        if whole:
            shell_commands.judge(Command(program, whole, line, known, script, outside))


def _emptied(node: Node, known: KnownVariables) -> bool:
    """`SLURM_JOB_ID= srun ...`."""
    assigns = node.get("Assigns" if node.get("Type") == "CallExpr" else "Args", ())
    return node.get("Type") in {"CallExpr", "DeclClause"} and any(
        (item.get("Name") or {}).get("Value") in JOB_ID_VARIABLES
        and not item.get("Naked")
        and not fold(item.get("Value"), known)
        for item in assigns
    )


def _assigned(program: Program, assigns: Sequence[Node], known: KnownVariables) -> None:
    for assign in assigns:
        name, line = (assign.get("Name") or {}).get("Value", ""), line_of(assign)
        _set(program, name, assign.get("Value"), line)
        if assign.get("Index"):
            program.sets(_key(assign["Index"], known), line)
        for element in (assign.get("Array") or {}).get("Elems", ()):
            if element.get("Index"):
                program.sets(_key(element["Index"], known), line_of(element))
        elements = [fold(item.get("Value"), known) for item in (assign.get("Array") or {}).get("Elems", ())]
        for value in [fold(assign.get("Value"), known), *elements]:
            if NUMBERED.fullmatch(value):
                program.find("device-index", f"it names a device by its number: {name}={value}", line)
        shell_inputs.read_first(program, name, fold(assign.get("Value"), known), line)


def _key(index: Node, known: KnownVariables) -> str:
    return fold(index, known).strip("'\"")


def _set(program: Program, name: str, value: Node | None, line: int) -> None:
    """A variable is set; to hand on what Slurm set (`X=$CUDA_VISIBLE_DEVICES`) is worth a word only."""
    passed = _handed_on(value)
    if DEVICES.fullmatch(name) and passed is not None and DEVICES.fullmatch(passed):
        program.find("cuda-visible-devices", f"it hands {passed} on as {name}", line, "warn")
    else:
        program.sets(name, line)


def _handed_on(value: Node | None) -> str | None:
    """The name where a value is `$NAME` or `${NAME:-}`, uncut."""
    parts = (value or {}).get("Parts", ())
    if len(parts) == 1 and parts[0]["Type"] == "DblQuoted":
        parts = parts[0].get("Parts", ())
    expansion = (parts[0].get("Exp") or {}) if parts else {}
    whole = not expansion or (expansion.get("Op") in {":-", "-", ":?", "?"} and not expansion.get("Word"))
    return variable(value) if whole else None


def _declared(program: Program, node: Node, known: KnownVariables) -> None:
    """export, declare, local, readonly, typeset; also of names that are computed, and references to a name."""
    args = node.get("Args", ())
    _assigned(program, [item for item in args if not item.get("Naked")], known)
    flags = "".join(fold(item.get("Value"), known) for item in args if item.get("Naked") and item.get("Value"))
    if re.search(r"-\w*u", flags):
        program.notes.add("capitals")
    if re.search(r"-\w*n", flags) and (node.get("Variant") or {}).get("Value") != "export":
        program.notes.add("renamed")
        for item in args:
            named = fold(item.get("Value"), known)
            program.sets(named, line_of(item))
            program.notes |= {"reference"} if unreadable(named) else set()
    for item in args:
        if item.get("Naked") and item.get("Value"):
            _named(program, item, known)


def _named(program: Program, item: Node, known: KnownVariables) -> None:
    """`export "$name=0"`, `export $(cat .env)`: what is set is only known where the name is."""
    from slurm_agent_tools.text import shell_expansions  # noqa: PLC0415 - few scripts have any

    texts = shell_expansions.braces(fold(item["Value"], known))
    for text in texts[1:]:
        program.sets(text.partition("=")[0], line_of(item))
    name, sign, _ = texts[0].partition("=")
    if "capitals" in program.notes:  # of `declare -u`
        program.sets(name.upper(), line_of(item))
    if sign and not unreadable(name):
        program.sets(name, line_of(item))
    elif sign:
        program.sets(name, line_of(item))
        program.opaque("it sets a variable whose name is computed", line_of(item))
    elif unreadable(name) and not name.startswith("-"):
        _exported(program, item, known)


def _exported(program: Program, item: Node, known: KnownVariables) -> None:
    """`export $(grep -v '^#' .env | xargs)` reads settings from a file, which is followed; else it is opaque."""
    parts = item["Value"].get("Parts", ())
    inner = [part for part in parts if part["Type"] == "CmdSubst"]
    files = [word for part in inner for words in _calls(part, known) for word in words[1:] if ".env" in name_of(word)]
    if not inner:
        return
    for path in files:
        program.files.append(RunFile("source", path, line_of(item)))
    level = "warn" if files else "approve"
    program.opaque("it exports variables that a command prints", line_of(item), level)  # type: ignore[arg-type]


def _calls(part: Node, known: KnownVariables) -> list[list[str]]:
    return list(calls(part.get("Stmts", []), known))
