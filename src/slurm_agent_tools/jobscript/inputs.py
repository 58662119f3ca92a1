"""Text that reaches a program by its input or a file: heredocs, pipes, redirections, files written and then run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slurm_agent_tools.jobscript.program import File, Language, Program, Text
from slurm_agent_tools.jobscript.tree import calls, inside
from slurm_agent_tools.jobscript.words import UNKNOWN, Known, Node, expand, fold, fold_heredoc, line_of, unreadable
from slurm_agent_tools.jobscript.wrappers import SHELLS, name_of, starts

PYTHON = re.compile(r"i?python[\d.]*|pypy[\d.]*")
_QUEUES = frozenset({"at", "crontab"})
_WRITING = frozenset({">", ">>", ">|", "&>", "&>>", "<>"})
# Programs that print what a setup needs, so that `eval "$(...)"` and `source <(...)` of it are everyday lines.
_SETUP = re.compile(
    r"(?:conda|mamba|micromamba|modulecmd|lmod|spack|ssh-agent|pyenv|rbenv|nodenv|direnv|dircolors|brew|starship|guix|nix"
    r"|register-python-argcomplete|kubectl|gh|uv|poetry|pixi|fzf|zoxide|thefuck|keychain|lesspipe|tset|resize|jenv|opam|easybuild)"
)
_SETUP_NAMES = re.compile(r"_*(?:conda|mamba)_setup")


def is_setup(words: Sequence[Node], known: Known) -> bool:
    """Whether words are only `$(conda shell.bash hook)`, `$__conda_setup` or their like."""
    parts: list[Node] = [part for word in words for part in word.get("Parts", ())]
    parts = [inner for part in parts for inner in (part.get("Parts", ()) if part["Type"] == "DblQuoted" else (part,))]
    return bool(parts) and all(_sets_up(part, known) for part in parts)


def _sets_up(part: Node, known: Known) -> bool:
    if part["Type"] == "ParamExp":
        name = part["Param"]["Value"]
        return _SETUP_NAMES.fullmatch(name) is not None
    if part["Type"] not in {"CmdSubst", "ProcSubst"}:
        return False
    names = [name_of(words[list(starts(words))[-1]]) for words in calls(part.get("Stmts", []), known)]
    return bool(names) and all(_SETUP.fullmatch(name) for name in names)


def language(words: Sequence[str], passing: Sequence[str] = ()) -> Language | None:  # noqa: PLR0911 - one per kind
    """The language of a program that a command reads from its input; None where it reads none."""
    for start in starts(words, passing):
        name, rest = name_of(words[start]), list(words[start + 1 :])
        if name in SHELLS and _from_input(rest):
            return "shell"
        if PYTHON.fullmatch(name) and _from_input(rest):
            return "python"
        if name in _QUEUES:
            return "shell"
        if name == "ssh" and len([word for word in rest if not word.startswith("-")]) == 1:
            return "shell"
        if name in {"source", "."} and rest[:1] == ["/dev/stdin"]:
            return "shell"
        if name in {"perl", "ruby", "Rscript", "node", "julia", "awk"} and rest[:1] in ([], ["-"]):
            return "other"
    return None


def _from_input(rest: list[str]) -> bool:
    """No script and no text among the words: the program comes by the input."""
    for word in rest:
        if word in {"-", "-s", "/dev/stdin"}:
            return True
        if re.fullmatch(r"-[a-zA-Z]*[cm]", word) or not word.startswith(("-", "+")):
            return False
    return True


def read_statement(program: Program, statement: Node, known: Known) -> None:
    """The redirections of one statement: programs by input, and files that are written."""
    command = statement.get("Cmd") or {}
    words = expand(command.get("Args", ()), known) if command.get("Type") == "CallExpr" else []
    for redirect in statement.get("Redirs", ()):
        name = ((redirect.get("N") or {}).get("Value") or "").strip("{}")
        program.sets(name, line_of(redirect))
        text = _text_of(redirect, known)
        runs = language(words, tuple(known.passing)) if words else None
        if text is not None and runs is not None:
            _run(program, runs, text, line_of(redirect) + (1 if redirect.get("Hdoc") else 0))
        elif redirect.get("Op") == "<" and runs is not None:
            program.files.append(
                File("python" if runs == "python" else "shell", fold(redirect.get("Word"), known), line_of(redirect))
            )
    _write(program, statement, words, known)


def _text_of(redirect: Node, known: Known) -> str | None:
    if redirect.get("Hdoc"):
        quoted = any(
            part["Type"] != "Lit" or "\\" in part.get("Value", "") for part in redirect["Word"].get("Parts", ())
        )
        text = fold_heredoc(redirect["Hdoc"], known, quoted=quoted)
        return re.sub(r"(?m)^\t+", "", text) if redirect.get("Op") == "<<-" else text
    return fold(redirect.get("Word"), known) if redirect.get("Op") == "<<<" else None


def _run(program: Program, runs: Language, text: str, line: int) -> None:
    if text.strip() and not text.strip(UNKNOWN + " \n\4"):
        program.opaque("it runs a computed text", line)
    else:
        program.texts.append(Text(runs, text, line))


def _write(program: Program, statement: Node, words: list[str], known: Known) -> None:
    """What a statement writes to files, for the case that one of them is run later."""
    redirects = statement.get("Redirs", ())
    targets = [fold(item.get("Word"), known) for item in redirects if item.get("Op") in _WRITING]
    name = name_of(words[0]) if words else ""
    if name == "tee":
        targets += [word for word in words[1:] if not word.startswith("-")]
    targets = [target for target in targets if target not in {"/dev/null", "/dev/stderr", "/dev/stdout"}]
    if not targets:
        return
    heredoc = next(
        ((item, _text_of(item, known)) for item in redirects if item.get("Hdoc") or item.get("Op") == "<<<"), None
    )
    if name in {"cat", "tee", "dd"} and heredoc is not None:
        item, text = heredoc
        made = Text("other", text or "", line_of(item) + (1 if item.get("Hdoc") else 0))
    elif name in {"echo", "printf"}:
        made = Text("other", printed(words), line_of(statement))
    elif not words:
        lines = [printed(one) for one in calls(statement.get("Cmd") or {}, known) if one[0] in {"echo", "printf"}]
        made = Text("other", "".join(lines), line_of(statement))
    else:
        made = None
    for target in targets:
        _keep(program, target, made)


def _keep(program: Program, target: str, made: Text | None) -> None:
    key = name_of(target)
    before = program.written.get(key)
    if made is not None and before is not None:
        made = Text("other", before.text + made.text, before.line)
    program.written[key] = made


def printed(words: Sequence[str]) -> str:
    """What echo or printf prints, near enough to be read as a program."""
    name, rest = words[0], list(words[1:])
    while name == "echo" and rest and re.fullmatch(r"-[neE]+", rest[0]):
        rest.pop(0)
    if name == "printf" and len(rest) > 1:
        ends = "\n" if "\\n" in rest[0] else ""
        rest = [rest[0].replace("%s", "").replace("\\n", ""), *(f"{word}{ends}" for word in rest[1:])]
        return "".join(rest)
    return " ".join(rest).replace("\\n", "\n") + "\n"


def read_pipe(program: Program, node: Node, known: Known) -> None:
    """Text that is piped into a program: read where it is constant, else it cannot be seen."""
    target = _first_call(node["Y"])
    words = expand(target.get("Args", ()), known) if target is not None else []
    runs = language(words, tuple(known.passing)) if words else None
    if runs is None:
        return
    statement = node["X"]
    source = _last_call(statement)
    text = expand(source.get("Args", ()), known) if source is not None else []
    heredoc = next((_text_of(item, known) for item in statement.get("Redirs", ()) if item.get("Hdoc")), None)
    line = line_of(node)
    if heredoc is not None:
        _run(program, runs, heredoc, line + 1)
    elif text[:1] in (["echo"], ["printf"]) and statement.get("Cmd") is source:
        _run(program, runs, printed(text), line)
    elif text[:1] == ["cat"] and len(text) == 2 and not unreadable(text[1]):
        program.files.append(File("python" if runs == "python" else "shell", text[1], line))
    elif text[:1] == ["yes"]:
        return
    else:
        program.opaque("it runs text that another command prints", line)


def _first_call(statement: Node) -> Node | None:
    command = statement.get("Cmd") or {}
    while command.get("Type") == "BinaryCmd":
        command = command["X"].get("Cmd") or {}
    return (
        command
        if command.get("Type") == "CallExpr"
        else next((inner for inner in inside(command) if inner.get("Type") == "CallExpr"), None)
    )


def _last_call(statement: Node) -> Node | None:
    command = statement.get("Cmd") or {}
    while command.get("Type") == "BinaryCmd":
        command = command["Y"].get("Cmd") or {}
    return command if command.get("Type") == "CallExpr" else None


def substituted(program: Program, word: Node, known: Known) -> bool:
    """`bash <(…)`, `source <(…)`: true where the word is such a substitution; its text is read or opaque."""
    parts = word.get("Parts", ())
    if len(parts) != 1 or parts[0]["Type"] != "ProcSubst" or parts[0].get("Op") != "<(":
        return False
    found = list(calls(parts[0].get("Stmts", []), known))
    if is_setup([word], known):
        return True
    if len(found) == 1 and found[0][0] in {"echo", "printf"}:
        _run(program, "shell", printed(found[0]), line_of(word))
    else:
        program.opaque("it runs text that another command prints", line_of(word))
    return True
