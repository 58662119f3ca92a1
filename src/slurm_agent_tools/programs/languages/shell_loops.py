"""Loops and chains that run the same work again when it fails.

A loop that waits for a file or a port, counts, or goes through a list is none: only work whose success ends the
repetition makes it one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from slurm_agent_tools.programs.job_work import asks_readiness, is_work, makes_progress, observes, only_waits, work_of
from slurm_agent_tools.programs.program import IdleCommand, Program
from slurm_agent_tools.programs.shell_tree import calls, flatten, inside, words_of
from slurm_agent_tools.programs.shell_words import KnownVariables, Node, expand, fold, line_of

_ASSIGNING = frozenset({"CallExpr", "DeclClause"})
_ENDING = frozenset({"break", "exit", "return"})


def judge(program: Program, node: Node, known: KnownVariables) -> None:
    """Whether a loop, a branch, a chain or a function does the same work again."""
    kind = node.get("Type")
    if kind in {"WhileClause", "ForClause"}:
        judge_loop(program, node, known)
    elif kind == "FuncDecl":
        judge_function(program, node, known)
    else:
        judge_chain(program, node, known)


def judge_loop(program: Program, node: Node, known: KnownVariables) -> None:
    """A while, until or for loop."""
    body, condition = node.get("Do", []), node.get("Cond", [])
    watched = _variables(condition)
    if _idles(node, known):
        program.idles.append(IdleCommand("loop", "a loop without an end", line_of(node)))
        return
    if only_waits(node, known, is_work):
        return
    found = (
        _condition_works(node, known)
        or _repeats_for_ever(condition, body, known, until=bool(node.get("Until")))
        or any(_ends_on_success(statement, body, watched, known) for statement in _statements(body))
        or (_from_status(body, watched, known) and _tests_status(condition))
        or _lacks_result(condition, body, known, until=bool(node.get("Until")))
    )
    if found:
        program.find("auto-retry", "it repeats a command until it succeeds", line_of(node))


def judge_chain(program: Program, node: Node, known: KnownVariables) -> None:
    """`work || work` and `if ! work; then work; fi`: the same command a second time."""
    if node.get("Type") == "BinaryCmd" and node.get("Op") == "||":
        first, second = node["X"], node["Y"]
    elif node.get("Type") == "IfClause":
        failed = _polarity(node.get("Cond", []), known) is False
        first, second = node["Cond"], node.get("Then", []) if failed else (node.get("Else") or {}).get("Then", [])
        first = first if failed or _polarity(first, known) else []
    else:
        return
    before = [work_of(words) for words in calls(first, known) if is_work(words)]
    again = [work_of(words) for words in calls(second, known) if is_work(words)]
    if any(words in before for words in again):
        program.find("auto-retry", "it runs the same command again when it fails", line_of(node))


def judge_status(
    program: Program, node: Node, known: KnownVariables, before: tuple[str, ...] | None, names: set[str]
) -> None:
    """`work; if [ $? -ne 0 ]; then work; fi`. `before` is the work that ran last, `names` hold a status."""
    if node.get("Type") == "CaseClause":
        asked = "".join(_plain(node.get("Word") or {})) in {"$?", *(f"${name}" for name in names)}
        again = calls(_branches(node.get("Items", ()), known)[1], known) if asked and before is not None else ()
        if any(work_of(words) == before for words in again):
            program.find("auto-retry", "it runs the same command again when it fails", line_of(node))
        return
    condition = node.get("Cond", [])
    command = condition[-1].get("Cmd") or {} if condition else {}
    tests = command.get("Type") in {"TestClause", "ArithmCmd"} or _is_test(command, known)
    if before is None or not tests or _status_test(command, (), known, names) is None:
        return
    if any(work_of(words) == before for words in calls([node.get("Then", []), node.get("Else") or {}], known)):
        program.find("auto-retry", "it runs the same command again when it fails", line_of(node))


def judge_function(program: Program, node: Node, known: KnownVariables) -> None:
    """A function that calls itself behind a failure."""
    name = (node.get("Name") or {}).get("Value", "")
    for inner in inside(node.get("Body") or {}):
        if inner.get("Type") == "BinaryCmd" and inner.get("Op") == "||":
            branch, work = inner["Y"], inner["X"]
        elif inner.get("Type") == "IfClause":
            branch, work = [inner.get("Then", []), inner.get("Else", {})], inner.get("Cond", [])
        else:
            continue
        worked = any(is_work(words) for words in calls(work, known))
        if worked and any(words[0] == name for words in calls(branch, known)):
            program.find("auto-retry", f"the function {name} calls itself again when its work fails", line_of(inner))


def _lacks_result(condition: list[Node], body: list[Node], known: KnownVariables, *, until: bool) -> bool:
    """`while [ ! -s result ]; do work -o result; done` and `until grep -q DONE log; do work > log; done`."""
    asked = list(calls(condition, known))
    words = asked[0] if len(asked) == 1 and len(condition) == 1 else []
    command = condition[0].get("Cmd") or {} if len(condition) == 1 else {}
    if command.get("Type") == "TestClause":
        words = ["[", *_plain(command)]
    missing = words[:1] in (["["], ["test"]) and ("!" in words) is not until and bool({"-f", "-e", "-s"} & set(words))
    silent = words[:1] == ["grep"] and bool(condition[0].get("Negated")) is not until
    said = silent and re.search(r"finish|success|done|complete|\bok\b", " ".join(words), re.IGNORECASE) is not None
    if not (missing or said):
        return False
    file = next((word for word in reversed(words) if word != "]"), "")
    worked = [inner for statement in body for inner in inside(statement) if _does_work(inner, known)]
    return bool(file) and any(file in _named(inner, known) for inner in worked)


def _does_work(node: Node, known: KnownVariables) -> bool:
    command = node.get("Cmd") or {}
    return ("Redirs" in node and any(is_work(words) for words in calls(command, known))) or (
        node.get("Type") == "CallExpr" and bool(node.get("Args")) and is_work(words_of(node, known))
    )


def _named(node: Node, known: KnownVariables) -> list[str]:
    """The words of a command, and the files that it is sent to."""
    words = words_of(node, known) if node.get("Type") == "CallExpr" else []
    return [*words, *(fold(item.get("Word"), known) for item in node.get("Redirs", ()))]


def _statements(body: list[Node]) -> list[Node]:
    """The statements of a loop's body, those of inner loops left out."""
    found: list[Node] = []
    rest = list(reversed(body))
    while rest:
        statement = rest.pop()
        found.append(statement)
        command = statement.get("Cmd") or {}
        if command.get("Type") in {"Block", "Subshell"}:
            rest += reversed(command.get("Stmts", []))
        elif command.get("Type") == "IfClause":
            branch = command
            while branch:
                rest += reversed(branch.get("Then", []))
                branch = branch.get("Else") or {}
    return found


def _condition_works(node: Node, known: KnownVariables) -> bool:
    """`until work` and `while ! work`."""
    condition = node.get("Cond", [])
    if not condition or _polarity(condition, known, only_work=True) is None:
        return False
    succeeded = _polarity(condition, known, only_work=True)
    return bool(node.get("Until")) is bool(succeeded) and not _iterates(condition, node.get("Do", []), known)


def _iterates(condition: list[Node], body: list[Node], known: KnownVariables) -> bool:
    """`until converged; do step; done`: the body does the work, and the condition looks at what came of it."""
    asked = [words for words in calls(condition, known) if is_work(words)]
    done = list(calls(body, known))
    worked = [words for words in done if is_work(words)]
    again = {work_of(words) for words in asked} & {work_of(words) for words in worked}
    if not worked or again:
        return False
    pauses = [words for words in done if words[0] == "sleep"]
    return all(asks_readiness(words) for words in asked) or makes_progress(asked, [*worked, *pauses])


def _repeats_for_ever(condition: list[Node], body: list[Node], known: KnownVariables, *, until: bool) -> bool:
    """`while true; do work; done`, with nothing in it that could end it. To look at other work is none."""
    inner = list(calls(body, known))
    worked = [one for one in inner if is_work(one)]
    watches = all(observes(one) for one in worked) and _pauses(condition, body, known)
    endless = _endless(condition, known, until=until) and not any(one[0] in _ENDING for one in inner)
    return endless and bool(worked) and not watches


def _pauses(condition: list[Node], body: list[Node], known: KnownVariables) -> bool:
    return any(one[0] == "sleep" for one in calls([*condition, *body], known))


def _endless(condition: list[Node], known: KnownVariables, *, until: bool) -> bool:
    """`while true`, `while [ 1 ]`, `while ((1))`, `while sleep 60`, `until false`."""
    command = condition[0].get("Cmd") or {} if len(condition) == 1 else {}
    if command.get("Type") in {"ArithmCmd", "TestClause"}:
        return not until and re.fullmatch(r"[1-9]\d*|true", " ".join(_plain(command))) is not None
    words = list(calls(condition, known))
    if len(words) == 1 and words[0][0] == "sleep":
        return not until
    return (
        words in ([["true"]], [[":"]], [["[", "1", "]"]], [["[", "true", "]"]]) if not until else words == [["false"]]
    )


def _idles(node: Node, known: KnownVariables) -> bool:
    """Whether a loop without an end only waits and looks, so that a job that comes to it keeps its nodes."""
    body, condition = node.get("Do", []), node.get("Cond", [])
    counted = (node.get("Loop") or {}).get("Type") == "CStyleLoop" and not (node.get("Loop") or {}).get("Cond")
    if not (counted or (condition and _endless(condition, known, until=bool(node.get("Until"))))):
        return False
    inner = list(calls(body, known))
    ends = _ENDING | {"kill", "scancel", "wait", "exec"}
    pauses = _pauses(condition, body, known)
    return bool(inner) and not any(
        one[0] in ends or _runs_text(one) or (is_work(one) and not (pauses and observes(one))) for one in inner
    )


def _runs_text(words: Sequence[str]) -> bool:
    """Whether it runs a text or a file that may hold work: `eval $commands`, `. step.sh`; not `eval "sleep 60"`."""
    text = " ".join(words[1:])
    return words[0] in {"source", "."} or (words[0] == "eval" and ("$" in text or "`" in text))


def _ends_on_success(statement: Node, body: list[Node], watched: set[str], known: KnownVariables) -> bool:
    """A statement that leaves the loop, or sets what the loop looks at, because work went well."""
    command = statement.get("Cmd") or {}
    if command.get("Type") == "IfClause":
        succeeded = _polarity(command.get("Cond", []), known, body=body)
        good, bad = command.get("Then", []), (command.get("Else") or {}).get("Then", [])
    elif command.get("Type") == "BinaryCmd" and command.get("Op") in {"&&", "||"}:
        succeeded = _polarity([command["X"]], known, body=body)
        good, bad = ([command["Y"]], []) if command["Op"] == "&&" else ([], [command["Y"]])
    elif command.get("Type") == "CaseClause" and _names_status(command.get("Word") or {}, body):
        good, bad = _branches(command.get("Items", ()), known)
        succeeded = True
    else:
        return False
    if succeeded is None:
        return False
    if not succeeded:
        good, bad = bad, good
    return _leaves(good, watched, known) or (_goes_on(bad, known) and _leaves(body[-1:], set(), known))


def _names_status(word: Node, body: list[Node]) -> bool:
    return "".join(_plain(word)) in {"$?", *(f"${name}" for name in status_variables(inside(body)))}


def _branches(items: Sequence[Node], known: KnownVariables) -> tuple[list[Node], list[Node]]:
    """The branches of `case $?` for success, and the others."""
    good: list[Node] = []
    bad: list[Node] = []
    for item in items:
        patterns = [fold(pattern, known) for pattern in item.get("Patterns", ())]
        (good if "0" in patterns else bad).extend(item.get("Stmts", ()))
    return good, bad


def _leaves(statements: Sequence[Node], watched: set[str], known: KnownVariables) -> bool:
    places = flatten(list(statements))
    for place in places:
        if place.node.get("Type") != "CallExpr":
            continue
        words = expand(place.node.get("Args", ()), known)
        if words and (words[0] == "break" or (words[0] in {"exit", "return"} and words[1:2] in ([], ["0"]))):
            return True
        if watched & {(assign.get("Name") or {}).get("Value") for assign in place.node.get("Assigns", ())}:
            return True
        if words[:1] == ["touch"] and watched & set(words[1:]):
            return True
    return False


def _goes_on(statements: Sequence[Node], known: KnownVariables) -> bool:
    return any(words[0] == "continue" for words in calls(list(statements), known))


def _polarity(
    condition: Sequence[Node], known: KnownVariables, *, body: Sequence[Node] = (), only_work: bool = False
) -> bool | None:
    """True where a condition holds because work succeeded, False where because it failed, None for anything else."""
    if not condition:
        return None
    last = condition[-1]
    negated = bool(last.get("Negated"))
    command = last.get("Cmd") or {}
    if command.get("Type") in {"TestClause", "ArithmCmd"} or _is_test(command, known):
        found = None if only_work else _status_test(command, body, known)
    elif command.get("Type") == "CallExpr" and command.get("Args"):
        found = True if is_work(expand(command["Args"], known)) else None
    elif command.get("Type") == "BinaryCmd" and command.get("Op") in {"&&", "||"}:
        sides = [_polarity([command[side]], known, body=body, only_work=only_work) for side in ("X", "Y")]
        found = sides[0] if sides[1] is None else sides[1]
    elif command.get("Type") in {"BinaryCmd", "TimeClause", "Subshell", "Block"}:
        found = True if any(is_work(words) for words in calls(command, known)) else None
    else:
        found = None
    return None if found is None else found is not negated


def _is_test(command: Node, known: KnownVariables) -> bool:
    return (
        command.get("Type") == "CallExpr"
        and bool(command.get("Args"))
        and fold(command["Args"][0], known) in {"[", "test"}
    )


def _status_test(command: Node, body: Sequence[Node], known: KnownVariables, held: Collection[str] = ()) -> bool | None:
    """A test of `$?`, or of a variable that was set from it: True for success."""
    text = " ".join(_plain(command))
    names = {"?", "PIPESTATUS", *held, *(status_variables(inside(list(body))) if body else ())}
    if not names & set(re.findall(r"\$([\w?]+)", text)) and not names & set(re.findall(r"\w+", text)):
        return None
    if body and not any(is_work(words) for words in calls(list(body), known)):
        return None
    if re.search(r"(-eq|==|=)\s+0\b|(-ne|!=)\s+[1-9]", text) or re.search(r"(^|\s)!\s", text):
        return True
    return False if re.search(r"(-ne|!=|-gt|>)\s+0\b|(-eq|==|=|-ge|>=|-gt|>)\s+[1-9]", text) else None


def _plain(node: Node) -> list[str]:
    """The words and operators of a test, in order, variables as `$name`."""
    match node.get("Type"):
        case "TestClause" | "ArithmCmd" | "ParenArithm" | "ParenTest":
            return _plain(node.get("X") or {})
        case "BinaryTest" | "BinaryArithm":
            return [*_plain(node["X"]), node.get("Op", ""), *_plain(node["Y"])]
        case "BinaryCmd":
            return [*_plain(node["X"].get("Cmd") or {}), node.get("Op", ""), *_plain(node["Y"].get("Cmd") or {})]
        case "UnaryTest" | "UnaryArithm":
            return [node.get("Op", ""), *_plain(node["X"])]
        case "CallExpr":
            return [text for word in node.get("Args", ()) for text in _plain(word)]
        case _:
            return ["".join(_letters(part) for part in node.get("Parts", ()))]


def _letters(part: Node) -> str:
    if part["Type"] == "ParamExp":
        return f"${part['Param']['Value']}"
    return "".join(_letters(inner) for inner in part.get("Parts", ())) or part.get("Value", "")


def status_variables(nodes: Iterable[Node]) -> set[str]:
    """Variables that are set from `$?`."""
    found = set()
    for node in nodes:
        kind = node.get("Type")
        for assign in node.get("Assigns" if kind == "CallExpr" else "Args", ()) if kind in _ASSIGNING else ():
            if _plain(assign.get("Value") or {}) in (["$?"], ["$PIPESTATUS"]):
                found.add((assign.get("Name") or {}).get("Value", ""))
    return found


def _from_status(body: list[Node], watched: set[str], known: KnownVariables) -> bool:
    """Whether the loop looks at a variable that its body sets from the status of work."""
    return bool(watched & status_variables(inside(body))) and any(is_work(words) for words in calls(body, known))


def _tests_status(condition: list[Node]) -> bool:
    texts = (" ".join(_plain(statement.get("Cmd") or {})) for statement in condition)
    return any(re.search(r"\s0\b", text) or re.fullmatch(r"\$?\w+", text) for text in texts)


def _variables(condition: list[Node]) -> set[str]:
    """Names of variables, and plain words such as a file's name, that a loop's condition looks at."""
    found: set[str] = set()
    rest: list[object] = [*condition]
    while rest:
        item = rest.pop()
        if isinstance(item, list):
            rest += item
        elif isinstance(item, dict):
            if item.get("Type") == "ParamExp":
                found.add(item["Param"]["Value"])
            elif item.get("Type") == "Lit":
                found.add(item.get("Value", ""))
            rest += [value for value in item.values() if isinstance(value, dict | list)]
    return found - {"", "[", "]", "-f", "-e", "-lt", "-le", "-eq", "-ne", "0", "1"}
