"""Python that does the same work again when it fails: loops around a try or a status, and decorators.

To fetch, to wait and to go on with the next item is no retry of a job's work.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from slurm_agent_tools.programs.program import Program
from slurm_agent_tools.programs.python_text import fold, name_of, walked

STARTERS = frozenset({"system", "run", "call", "check_call", "check_output", "Popen", "getstatusoutput"})

_WORK = re.compile(
    r"_*(?:re)?(?:train|fit|main|run|solve|simulat|fine_?tune|evaluat|infer|predict|work|job|experiment|launch|execut|pipeline"
    r"|optimi[sz]e|comput|call$|check_call|check_output|system$|Popen|do_|process|generat|sample|backtest|benchmark|rollout)",
    re.IGNORECASE,
)

_COUNTERS = re.compile(r"_*(?:attempts?|retry|retries|try|tries|trial_no|again|restarts?|n_try|tr)\d*_*", re.IGNORECASE)

_FETCHING = re.compile(
    r"(?:^|\b)(?:curl|wget|rsync|scp|git|ping|nvidia-smi|squeue|sacct|sinfo|scontrol|pip|conda|apt|ls|cp|mv|tar|nc|ssh-add"
    r"|(?:hf|huggingface-cli)\s+(?:down|up)load|aws\s+s3|gsutil|gdown|aria2c|rclone|sftp|lftp|azcopy|kaggle|prefetch)\b"
)

_ASKING_WORDS = "urlopen urlretrieve get post put request download connect recv send create from_pretrained"
_ASKING = frozenset(_ASKING_WORDS.split())

_DECORATORS = frozenset(
    {"retry", "retrying", "Retrying", "on_exception", "on_predicate", "auto_retry", "retry_on_exception"}
)


def judge(program: Program, node: ast.AST, line: int) -> None:
    """One loop or function."""
    if isinstance(node, ast.For | ast.While):
        if _repeats(node):
            program.find("auto-retry", "it repeats work in Python until it succeeds", line)
    elif isinstance(node, ast.Call):
        if _wrapped(node):
            program.find("auto-retry", "it calls work so that it is tried again when it fails", line)
    elif isinstance(node, ast.Try):
        if _again(node):
            program.find("auto-retry", "it does the same work again in the handler of its failure", line)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        if _decorated(node):
            program.find("auto-retry", f"the function {node.name} is tried again when it fails", line)
        elif _calls_itself(node):
            program.find("auto-retry", f"the function {node.name} calls itself again when it fails", line)


def _wrapped(node: ast.Call) -> bool:
    """`retry(...)(train.main)`."""
    names = [getattr(one, "attr", getattr(one, "id", "")) for one in node.args[:1]]
    inner = node.func if isinstance(node.func, ast.Call) else None
    return inner is not None and name_of(inner) in _DECORATORS and any(_WORK.match(name) for name in names)


def _again(node: ast.Try) -> bool:
    """`try: train() except: train()`, and a handler that starts the program itself again."""
    handled = [call for handler in node.handlers for call in _calls(handler.body)]
    if any(name_of(call).startswith("exec") and "sys.argv" in ast.unparse(call)[:400] for call in handled):
        return True
    before = {_essence(call) for call in _calls(node.body) if _works(call)}
    return any(_works(call) and _essence(call) in before for call in handled)


def _essence(call: ast.Call) -> str:
    first = ast.unparse(call.args[0])[:200] if name_of(call) in STARTERS and call.args else ""
    return f"{name_of(call)} {first}"


def _repeats(loop: ast.For | ast.While) -> bool:
    counts = isinstance(loop, ast.While) or _counts(loop)
    named = isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and _COUNTERS.fullmatch(loop.target.id)
    if isinstance(loop, ast.While) and any(_works(call) for call in _started(loop.test)):
        return True
    if (
        isinstance(loop, ast.For)
        and isinstance(loop.iter, ast.Call)
        and name_of(loop.iter) in {"Retrying", "AsyncRetrying"}
    ):
        return any(_works(call) for call in _calls(loop.body))
    if not counts:
        return False
    watched = (
        {inner.id for inner in walked(loop.test) if isinstance(inner, ast.Name)}
        if isinstance(loop, ast.While)
        else set()
    )
    for inner in _own(loop.body):
        if isinstance(inner, ast.Try) and _swallows(inner) and any(_works(call) for call in _calls(inner.body)):
            leaves = _leaves([*inner.body, *inner.orelse], watched) or _leaves(loop.body[-1:], watched)
            if named or leaves:
                return True
        if isinstance(inner, ast.If) and _ends_on_status(inner, loop, watched):
            return True
    return False


def _counts(loop: ast.For) -> bool:
    """`for _ in range(...)` and a few tries in a row: the loop's variable chooses no work."""
    if not isinstance(loop.target, ast.Name):
        return False
    ranged = isinstance(loop.iter, ast.Call) and name_of(loop.iter) in {"range", "count", "trange"}
    if _COUNTERS.fullmatch(loop.target.id):
        return True
    used = {id(inner) for node in loop.body for call in _calls([node]) if _works(call) for inner in walked(call)}
    names = (inner for node in loop.body for inner in walked(node) if isinstance(inner, ast.Name))
    return ranged and not any(name.id == loop.target.id and id(name) in used for name in names)


def _own(body: Sequence[ast.stmt]) -> Iterator[ast.AST]:
    """The statements of a loop, those of inner loops and functions left out."""
    rest: list[ast.AST] = list(body)
    while rest:
        node = rest.pop()
        if isinstance(node, ast.For | ast.While | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        yield node
        rest += ast.iter_child_nodes(node)


def _calls(nodes: Sequence[ast.AST]) -> Iterator[ast.Call]:
    return (inner for node in nodes for inner in walked(node) if isinstance(inner, ast.Call))


def _started(node: ast.AST) -> Iterator[ast.Call]:
    return (call for call in _calls([node]) if name_of(call) in STARTERS)


def _works(call: ast.Call) -> bool:
    name = name_of(call)
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if name in STARTERS and call.args:
        first = call.args[0]
        words = first.elts[:1] if isinstance(first, ast.List | ast.Tuple) else [first]
        return not any(_FETCHING.match((fold(word, {}) or "").rpartition("/")[2]) for word in words)
    asks = owner is not None and re.search(
        r"requests|session|client|socket|http|url|api|tokenizer", ast.unparse(owner)[:80].lower()
    )
    return _WORK.match(name) is not None and not asks


def _swallows(node: ast.Try) -> bool:
    """Some handler goes on: it neither raises, leaves the loop nor ends the program in any case."""
    return any(not _ends(handler.body[-1]) for handler in node.handlers)


def _ends(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Raise | ast.Break | ast.Return):
        return True
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and name_of(statement.value) in {"exit", "_exit"}
    )


def _leaves(body: Sequence[ast.stmt], watched: set[str]) -> bool:
    for inner in _own(body):
        if isinstance(inner, ast.Break | ast.Return):
            return True
        if isinstance(inner, ast.Assign) and watched & {getattr(target, "id", "") for target in inner.targets}:
            return True
        if (
            isinstance(inner, ast.Expr)
            and isinstance(inner.value, ast.Call)
            and name_of(inner.value) in {"exit", "_exit"}
        ):
            return True
    return False


def _ends_on_status(node: ast.If, loop: ast.For | ast.While, watched: set[str]) -> bool:
    """`rc = call(...)`, `if rc == 0: break`; and `if rc != 0: continue` before a break."""
    started = [call for call in _calls(loop.body) if name_of(call) in STARTERS and _works(call)]
    if not started:
        return False
    names = {
        getattr(target, "id", "")
        for inner in _own(loop.body)
        if isinstance(inner, ast.Assign) and any(call in started for call in _calls([inner.value]))
        for target in inner.targets
    }
    succeeded = _success(node.test, names)
    if succeeded is None:
        return False
    good, bad = (node.body, node.orelse) if succeeded else (node.orelse, node.body)
    goes_on = any(isinstance(inner, ast.Continue) for inner in _own(bad))
    return _leaves(good, watched) or (goes_on and _leaves(loop.body[-1:], watched))


def _success(test: ast.AST, names: set[str]) -> bool | None:
    """True where a test holds because a command ended well, False because it failed, None for anything else."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = _success(test.operand, names)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and _is_status(test.left, names):
        return isinstance(test.ops[0], ast.Eq) == (fold(test.comparators[0], {}) == "0")
    return False if _is_status(test, names) else None


def _is_status(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Attribute) and node.attr == "returncode":
        return True
    if isinstance(node, ast.Name):
        return node.id in names
    return isinstance(node, ast.Call) and name_of(node) in STARTERS


def _decorated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = set()
    for one in node.decorator_list:
        call = one.func if isinstance(one, ast.Call) else one
        names.add(call.attr if isinstance(call, ast.Attribute) else getattr(call, "id", ""))
    asks = any(name_of(call) in _ASKING for call in _calls(node.body))
    return bool(names & _DECORATORS) and not asks and _WORK.match(node.name) is not None


def _calls_itself(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """In a handler of its own work's failure."""
    for inner in walked(node):
        if isinstance(inner, ast.Try) and any(_works(call) for call in _calls(inner.body)):
            again = (call for handler in inner.handlers for call in _calls(handler.body))
            if any(name_of(call) == node.name for call in again):
                return True
    return False
