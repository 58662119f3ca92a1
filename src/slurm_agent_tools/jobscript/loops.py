"""Loops and chains that run the same work again when it fails.

A loop that waits for a file or a port, counts, or goes through a list is none: only work whose success ends the
repetition makes it one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from slurm_agent_tools.jobscript.program import Program
from slurm_agent_tools.jobscript.tree import calls, flatten, inside
from slurm_agent_tools.jobscript.words import Known, Node, expand, fold, line_of
from slurm_agent_tools.jobscript.wrappers import name_of, starts

# Looking, waiting, printing and fetching: to repeat these is no retry of a job's work.
_IDLE_WORDS = """
[ [[ test : true false read sleep kill pgrep ps grep egrep fgrep rg squeue sacct sinfo sstat scontrol ls stat nc
ncat curl wget rsync scp ping nslookup host dig lsof ss netstat pg_isready redis-cli mysqladmin mongo mongosh
nvidia-smi mkdir ln flock lockfile echo printf cat tail head wc awk sed cut tr date expr let export set unset
local declare cd pushd popd break continue exit return shift wait trap touch rm mv cp find which type command
module pip conda mamba git tar unzip gzip cmp diff md5sum sha256sum seq basename dirname hostname jq df du free
uptime tee sync chmod bc source . eval
"""
_IDLE = frozenset(_IDLE_WORDS.split())
_ENDING = frozenset({"break", "exit", "return"})


def judge_loop(program: Program, node: Node, known: Known) -> None:
    """A while, until or for loop."""
    body, condition = node.get("Do", []), node.get("Cond", [])
    watched = _variables(condition)
    found = (
        _condition_works(node, known)
        or _repeats_for_ever(condition, body, known, until=bool(node.get("Until")))
        or any(_ends_on_success(statement, body, watched, known) for statement in _statements(body))
        or (_from_status(body, watched, known) and _tests_status(condition))
    )
    if found:
        program.find("auto-retry", "it repeats a command until it succeeds", line_of(node))


def judge_chain(program: Program, node: Node, known: Known) -> None:
    """`work || work` and `if ! work; then work; fi`: the same command a second time."""
    if node.get("Type") == "BinaryCmd" and node.get("Op") == "||":
        first, second = node["X"], node["Y"]
    elif node.get("Type") == "IfClause" and _polarity(node.get("Cond", []), known) is False:
        first, second = node["Cond"], node.get("Then", [])
    else:
        return
    before = [essence(words) for words in calls(first, known) if works(words)]
    again = [essence(words) for words in calls(second, known) if works(words)]
    if any(words in before for words in again):
        program.find("auto-retry", "it runs the same command again when it fails", line_of(node))


def judge_status(program: Program, node: Node, known: Known, before: tuple[str, ...] | None, names: set[str]) -> None:
    """`work; if [ $? -ne 0 ]; then work; fi`. `before` is the work that ran last, `names` hold a status."""
    condition = node.get("Cond", [])
    command = condition[-1].get("Cmd") or {} if condition else {}
    tests = command.get("Type") in {"TestClause", "ArithmCmd"} or _is_test(command, known)
    if before is None or not tests or _status_test(command, (), known, names) is None:
        return
    if any(essence(words) == before for words in calls([node.get("Then", []), node.get("Else") or {}], known)):
        program.find("auto-retry", "it runs the same command again when it fails", line_of(node))


def judge_function(program: Program, node: Node, known: Known) -> None:
    """A function that calls itself behind a failure."""
    name = (node.get("Name") or {}).get("Value", "")
    for inner in inside(node.get("Body") or {}):
        if inner.get("Type") == "BinaryCmd" and inner.get("Op") == "||":
            branch, work = inner["Y"], inner["X"]
        elif inner.get("Type") == "IfClause":
            branch, work = [inner.get("Then", []), inner.get("Else", {})], inner.get("Cond", [])
        else:
            continue
        worked = any(works(words) for words in calls(work, known))
        if worked and any(words[0] == name for words in calls(branch, known)):
            program.find("auto-retry", f"the function {name} calls itself again when its work fails", line_of(inner))


def works(words: Sequence[str]) -> bool:
    """Whether a command is more than looking, waiting, printing or fetching."""
    last = words[list(starts(words))[-1]] if words else ""
    return bool(words) and name_of(last) not in _IDLE


def essence(words: list[str]) -> tuple[str, ...]:
    """What makes two calls the same work: the program and its script, wherever they stand."""
    tail = words[list(starts(words))[-1] :]
    script = next((word for word in tail[1:] if not word.startswith("-")), "")
    return (name_of(tail[0]).rstrip("0123456789."), script)


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


def _condition_works(node: Node, known: Known) -> bool:
    """`until work` and `while ! work`."""
    condition = node.get("Cond", [])
    if not condition or _polarity(condition, known, only_work=True) is None:
        return False
    succeeded = _polarity(condition, known, only_work=True)
    return bool(node.get("Until")) is bool(succeeded)


def _repeats_for_ever(condition: list[Node], body: list[Node], known: Known, *, until: bool) -> bool:
    """`while true; do work; done`, with nothing in it that could end it."""
    words = list(calls(condition, known))
    endless = words in ([["true"]], [[":"]]) if not until else words == [["false"]]
    inner = list(calls(body, known))
    return endless and any(works(one) for one in inner) and not any(one[0] in _ENDING for one in inner)


def _ends_on_success(statement: Node, body: list[Node], watched: set[str], known: Known) -> bool:
    """A statement that leaves the loop, or sets what the loop looks at, because work went well."""
    command = statement.get("Cmd") or {}
    if command.get("Type") == "IfClause":
        succeeded = _polarity(command.get("Cond", []), known, body=body)
        good, bad = command.get("Then", []), (command.get("Else") or {}).get("Then", [])
    elif command.get("Type") == "BinaryCmd" and command.get("Op") in {"&&", "||"}:
        succeeded = _polarity([command["X"]], known, body=body)
        good, bad = ([command["Y"]], []) if command["Op"] == "&&" else ([], [command["Y"]])
    else:
        return False
    if succeeded is None:
        return False
    if not succeeded:
        good, bad = bad, good
    return _leaves(good, watched, known) or (_goes_on(bad, known) and _leaves(body[-1:], set(), known))


def _leaves(statements: Sequence[Node], watched: set[str], known: Known) -> bool:
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


def _goes_on(statements: Sequence[Node], known: Known) -> bool:
    return any(words[0] == "continue" for words in calls(list(statements), known))


def _polarity(
    condition: Sequence[Node], known: Known, *, body: Sequence[Node] = (), only_work: bool = False
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
        found = True if works(expand(command["Args"], known)) else None
    elif command.get("Type") in {"BinaryCmd", "TimeClause", "Subshell", "Block"}:
        found = True if any(works(words) for words in calls(command, known)) else None
    else:
        found = None
    return None if found is None else found is not negated


def _is_test(command: Node, known: Known) -> bool:
    return (
        command.get("Type") == "CallExpr"
        and bool(command.get("Args"))
        and fold(command["Args"][0], known) in {"[", "test"}
    )


def _status_test(command: Node, body: Sequence[Node], known: Known, held: Collection[str] = ()) -> bool | None:
    """A test of `$?`, or of a variable that was set from it: True for success."""
    text = " ".join(_plain(command))
    names = {"?", *held, *(status_variables(inside(list(body))) if body else ())}
    if not names & set(re.findall(r"\$([\w?]+)", text)) and not names & set(re.findall(r"\w+", text)):
        return None
    if body and not any(works(words) for words in calls(list(body), known)):
        return None
    if re.search(r"(-eq|==|=)\s+0\b", text) or re.search(r"(^|\s)!\s", text):
        return True
    return False if re.search(r"(-ne|!=|-gt|>)\s+0\b", text) else None


def _plain(node: Node) -> list[str]:
    """The words and operators of a test, in order, variables as `$name`."""
    match node.get("Type"):
        case "TestClause" | "ArithmCmd" | "ParenArithm" | "ParenTest":
            return _plain(node.get("X") or {})
        case "BinaryTest" | "BinaryArithm":
            return [*_plain(node["X"]), node.get("Op", ""), *_plain(node["Y"])]
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
        for assign in node.get("Assigns", ()) if node.get("Type") == "CallExpr" else ():
            if _plain(assign.get("Value") or {}) == ["$?"]:
                found.add(assign["Name"]["Value"])
    return found


def _from_status(body: list[Node], watched: set[str], known: Known) -> bool:
    """Whether the loop looks at a variable that its body sets from the status of work."""
    return bool(watched & status_variables(inside(body))) and any(works(words) for words in calls(body, known))


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
