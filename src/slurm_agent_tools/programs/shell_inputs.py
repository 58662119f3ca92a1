"""Text that reaches a program by its input or a file: heredocs, pipes, redirections, files written and then run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from slurm_agent_tools.programs.program import BEFORE_PYTHONS_OWN, NUMBERED, InnerText, Language, Program, RunFile
from slurm_agent_tools.programs.shell_tree import calls, inside, quotes
from slurm_agent_tools.programs.shell_words import (
    SIGNS,
    UNKNOWN,
    KnownVariables,
    Node,
    expand,
    fold,
    fold_heredoc,
    line_of,
    unreadable,
)
from slurm_agent_tools.programs.wrapped_command import SHELLS, SSH, WRAPPERS, behind, name_of, starts

# General languages, where a text that is made at run time may do anything; the rest is for numbers and plots.
GENERAL = frozenset({"perl", "ruby", "Rscript", "node", "julia", "lua", "php", "tclsh"})
INTERPRETERS = GENERAL | {"R", "octave", "octave-cli", "matlab", "gnuplot"}

_TEXT_GIVEN = re.compile(r"-[A-Za-z]*[eE]|--?(?:eval|execute|batch|file|print|run|version|help)(?:=.*)?|-[frp]|-batch")
_STRING = r"(?:\"[^\"\\$#`]*\"|'[^'\\]*')"

_START = r"(?<![\w.:$@])(?:system2?|exec[vl]?[pe]*|popen[23]?|spawn\w*|execSync|shell_exec|passthru|qx|eval|Cmd)"

# A command that is not one literal: a variable, an expression, literals that are joined, a string with variables in it.
_COMPUTED = re.compile(
    rf"{_START}\s*\(\s*(?!{_STRING}\s*[,)])(?=[\w$@%\"'(\[])"
    rf"|{_START}\s+(?!{_STRING}\s*(?:;|,|$|\|\||or\b))[$@%\"'](?!\s*[,)])"
    r"|`[^`$]*+\$[^`]*+`|(?<![\w.])(?:system|exec)\s+[a-z_]\w*\s*$|\bqx\s*[{(/]|do\.call\(\s*[\"']?(?:system|Sys\.setenv)"
    r"|(?:ENV|environ)\s*[\[{]\s*(?![\"']?\w+[\"']?\s*[\]}])[^\]}]{0,200}+[\]}]\s*="
    r"|Sys\.setenv\s*\(\s*(?![\w.]+\s*=)\S"
)

_CODED = re.compile(r"(?:base64|pack|chr)\w{0,40}\s*\(")
_STARTS = re.compile(r"system|exec|eval")


def by_input(name: str, rest: Sequence[str]) -> bool:
    """Whether an interpreter with these words reads its program from its input."""
    if name not in INTERPRETERS:
        return False
    for word in rest:
        if word == "-":
            return True
        if _TEXT_GIVEN.fullmatch(word):
            return False
        if not word.startswith("-") and not word.isdecimal() and word != "auto" and (name != "R" or word == "CMD"):
            return False
    return True


def computed(text: str) -> int | None:
    """The line, from 1 on, that starts a command or sets a variable out of more than a literal."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.lstrip().startswith("#") and _computes(line[:2000]):
            return number
    return None


def _computes(line: str) -> bool:
    coded = _CODED.search(line)
    return (coded is not None and _STARTS.search(line, coded.end()) is not None) or _COMPUTED.search(line) is not None


PYTHON = re.compile(r"i?python[\d.]*|pypy[\d.]*")
_QUEUES = frozenset({"at", "crontab"})
_STARTUP = frozenset({".bashrc", ".profile", ".bash_profile", ".bash_login", ".zshrc", ".zshenv"})
_SETTINGS = (".yaml", ".yml", ".json", ".toml", ".ini", ".cfg", ".conf", ".env", ".list", ".lua")
_WRITING = frozenset({">", ">>", ">|", "&>", "&>>", "<>"})

# Programs that print what a setup needs, so that `eval "$(...)"` and `source <(...)` of it are everyday lines.
_SETUP = re.compile(
    r"(?:conda|mamba|micromamba|modulecmd|lmod|spack|ssh-agent|pyenv|rbenv|nodenv|direnv|dircolors|brew|starship|guix|nix"
    r"|register-python-argcomplete|kubectl|gh|uv|poetry|pixi|fzf|zoxide|thefuck|keychain|lesspipe|tset|resize|jenv|opam|easybuild)"
)

_BLANK: Node = {"Type": "Lit", "Value": " "}

_SETUP_NAMES = re.compile(r"_*(?:conda|mamba)_setup")


def is_setup(words: Sequence[Node], known: KnownVariables) -> bool:
    """Whether words are only `$(conda shell.bash hook)`, `$__conda_setup` or their like."""
    parts: list[Node] = [part for word in words for part in word.get("Parts", ())]
    parts = [inner for part in parts for inner in (part.get("Parts", ()) if part["Type"] == "DblQuoted" else (part,))]
    return bool(parts) and all(_sets_up(part, known) for part in parts)


def is_getopt(words: Sequence[Node], known: KnownVariables) -> bool:
    """Whether words are `set -- "$(getopt ...)"`, whose output is quoted: nothing but words comes of it."""
    parts: list[Node] = [part for word in words for part in (*word.get("Parts", ()), _BLANK)]
    parts = [inner for part in parts for inner in (part.get("Parts", ()) if part["Type"] == "DblQuoted" else (part,))]
    texts = [part.get("Value", "") for part in parts if part["Type"] == "Lit"]
    found = [part for part in parts if part["Type"] != "Lit"]
    if " ".join(texts).split() != ["set", "--"] or parts[0]["Type"] != "Lit" or len(found) != 1:
        return False
    if found[0]["Type"] == "ParamExp":
        bare = not any(found[0].get(key) for key in ("Exp", "Excl", "Index", "Slice", "Repl"))
        return bare and found[0]["Param"]["Value"] in known.parsed
    return found[0]["Type"] == "CmdSubst" and "getopt" not in known.functions and quotes(found[0], known)


def _sets_up(part: Node, known: KnownVariables) -> bool:
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
        if name in _QUEUES or (name == "parallel" and behind(words, start, WRAPPERS[name]) >= len(words)):
            return "shell"
        if name == "ssh":
            inner = rest[behind(["ssh", *rest], 0, SSH) - 1 :]
            return language(inner[1:], passing) if len(inner) > 1 else "shell"
        if name in {"source", "."} and rest[:1] == ["/dev/stdin"]:
            return "shell"
        if by_input(name, rest):
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


def read_statement(program: Program, statement: Node, known: KnownVariables) -> None:
    """The redirections of one statement: programs by input, and files that are written."""
    command = statement.get("Cmd") or {}
    words = expand(command.get("Args", ()), known) if command.get("Type") == "CallExpr" else []
    for redirect in statement.get("Redirs", ()):
        name = ((redirect.get("N") or {}).get("Value") or "").strip("{}")
        program.sets(name, line_of(redirect))
        text = _text_of(redirect, known)
        runs = language(words, tuple(known.passing)) if words else None
        if text is not None and runs is not None:
            _run(program, runs, text, line_of(redirect) + (1 if redirect.get("Hdoc") else 0), _last_name(words))
        elif redirect.get("Op") == "<" and runs is not None:
            program.files.append(RunFile(runs, fold(redirect.get("Word"), known), line_of(redirect)))
    _write(program, statement, words, known)


def _text_of(redirect: Node, known: KnownVariables) -> str | None:
    if redirect.get("Hdoc"):
        quoted = any(
            part["Type"] != "Lit" or "\\" in part.get("Value", "") for part in redirect["Word"].get("Parts", ())
        )
        text = fold_heredoc(redirect["Hdoc"], known, quoted=quoted)
        return re.sub(r"(?m)^\t+", "", text) if redirect.get("Op") == "<<-" else text
    return fold(redirect.get("Word"), known) if redirect.get("Op") == "<<<" else None


def _run(program: Program, runs: Language, text: str, line: int, by: str = "") -> None:
    """A program that comes by the input; `by` is its interpreter."""
    if text.strip() and not text.strip(UNKNOWN + " \n\4"):
        if runs != "other" or by in GENERAL:
            program.opaque("it runs a computed text", line)
        return
    program.texts.append(InnerText(runs, text, line))
    made = computed(text) if runs == "other" else None
    if made is not None:
        what = f"its text for {by or 'another program'} starts a command, or sets a variable, that it puts together"
        program.opaque(what, line + made - 1)


def _last_name(words: Sequence[str]) -> str:
    """The command that all the others start."""
    return name_of(words[list(starts(words))[-1]])


def _write(program: Program, statement: Node, words: list[str], known: KnownVariables) -> None:
    """What a statement writes to files, for the case that one of them is run later."""
    redirects = statement.get("Redirs", ())
    targets = [fold(item.get("Word"), known) for item in redirects if item.get("Op") in _WRITING]
    name = name_of(words[0]) if words else ""
    targets += _outputs(words)
    targets = [target for target in targets if target not in {"/dev/null", "/dev/stderr", "/dev/stdout"}]
    if not targets:
        return
    heredoc = next(
        ((item, _text_of(item, known)) for item in redirects if item.get("Hdoc") or item.get("Op") == "<<<"), None
    )
    if name in {"cat", "tee", "dd"} and heredoc is not None:
        item, text = heredoc
        made = InnerText("other", text or "", line_of(item) + (1 if item.get("Hdoc") else 0))
    elif name in {"echo", "printf"}:
        made = InnerText("other", printed(words), line_of(statement))
    elif not words:
        lines = [printed(one) for one in calls(statement.get("Cmd") or {}, known) if one[0] in {"echo", "printf"}]
        made = InnerText("other", "".join(lines), line_of(statement))
    else:
        made = None
    for target in targets:
        if made is not None or name not in {"tee", "dd"} or program.written.get(name_of(target)) is None:
            _keep(program, target, made)


def read_first(program: Program, name: str, value: str, line: int) -> None:
    """Variables that name what bash and Python read before the program itself."""
    if name in {"BASH_ENV", "ENV"} and "/" in value + "/" and not value.endswith("/"):
        program.files.append(RunFile("source", value, line))
    elif name == "PROMPT_COMMAND":
        program.texts.append(InnerText("shell", value, line))
    elif name == "PS4" and ("`" in value or "$(" in value):
        program.texts.append(InnerText("shell", f'echo "{value}"', line))
    elif name in {"NXF_EXECUTOR", "SNAKEMAKE_PROFILE"} and "slurm" in value:
        program.find("direct-submission", f"with {name}={value} jobs are submitted", line)
    elif name == "PYTHONSTARTUP":
        program.files.append(RunFile("python", value, line))
    elif name == "PYTHONPATH":
        behind = [SIGNS.split(folder)[-1].strip("/") if SIGNS.search(folder) else folder for folder in value.split(":")]
        folders = [folder for folder in behind if folder][:4]  # of `$ROOT/lib` the rest is looked for
        program.folders += folders
        program.notes |= {f"{BEFORE_PYTHONS_OWN}{folder}" for folder in folders}
        program.files += [RunFile("import", module, line) for module in ("sitecustomize", "usercustomize")]


def _read_settings(program: Program, made: InnerText) -> None:
    """A file of settings that is written for a program to read."""
    from slurm_agent_tools.programs.workflow_files import read_config  # noqa: PLC0415 - few scripts write settings

    for rule, what, level, number in read_config(made.text).findings:
        program.find(rule, what, number + made.line - 1, level)
    for number, line in enumerate(made.text.split("\n"), start=made.line):
        bare = line.strip()
        setting = re.search(r"((?:CUDA|NVIDIA|HIP|ROCR)_VISIBLE_DEVICES)\W{1,4}\w", bare)
        if bare.startswith(("#", "//", "--")):
            continue
        if setting is not None:
            program.find("cuda-visible-devices", f"it writes settings with {setting[1]}", number)
        if NUMBERED.search(bare):
            program.find("device-index", f"it writes settings with a device by its number: {bare[:80]}", number)


def _outputs(words: Sequence[str]) -> list[str]:
    """The files that tee and dd write."""
    name = name_of(words[0]) if words else ""
    if name == "tee":
        return [word for word in words[1:] if not word.startswith("-")]
    return [word[3:] for word in words[1:] if word.startswith("of=")] if name == "dd" else []


def _keep(program: Program, target: str, made: InnerText | None) -> None:
    key = name_of(target)
    if made is not None and made.text.startswith("#!") and unreadable(target):
        program.texts.append(replace(made, language="python" if "python" in made.text[:40] else "shell"))
    if made is not None and key in _STARTUP:
        program.texts.append(replace(made, language="shell"))
    if made is not None and key.endswith(_SETTINGS):
        _read_settings(program, made)
    before = program.written.get(key)
    if made is not None and before is not None:
        made = InnerText("other", before.text + made.text, before.line)
    program.written[key] = made


def printed(words: Sequence[str]) -> str:
    """What echo or printf prints, near enough to be read as a program."""
    from slurm_agent_tools.text import shell_expansions  # noqa: PLC0415 - few print into programs

    rest = [word for word in words[1:2] if word != "--"] + list(words[2:])
    if words[0] != "printf" or not rest:
        return shell_expansions.echoed(rest)
    made = shell_expansions.formatted(rest[0], rest[1:])
    return UNKNOWN if made is None else made


def read_pipe(program: Program, node: Node, known: KnownVariables) -> None:
    """Text that is piped into a program: read where it is constant, else it cannot be seen."""
    target = _first_call(node["Y"])
    words = expand(target.get("Args", ()), known) if target is not None else []
    runs = language(words, tuple(known.passing)) if words else None
    statement = node["X"]
    source = _last_call(statement)
    text = expand(source.get("Args", ()), known) if source is not None else []
    written = [target for start in starts(words) for target in _outputs(words[start:])]
    for path in written:
        constant = text[:1] in (["echo"], ["printf"]) and statement.get("Cmd") is source
        _keep(program, path, InnerText("other", printed(text), line_of(node)) if constant else None)
    if runs is None:
        return
    heredoc = next((_text_of(item, known) for item in statement.get("Redirs", ()) if item.get("Hdoc")), None)
    if heredoc is not None and text[:1] != ["cat"]:
        heredoc = None  # what a loop or a filter makes of it cannot be seen
    line = line_of(node)
    if heredoc is not None:
        _run(program, runs, heredoc, line + 1, _last_name(words))
    elif text[:1] in (["echo"], ["printf"]) and statement.get("Cmd") is source:
        _run(program, runs, printed(text), line, _last_name(words))
    elif text[:1] == ["cat"] and len(text) == 2 and not unreadable(text[1]):
        program.files.append(RunFile(runs, text[1], line))
    elif text[:1] == ["yes"] or (runs == "other" and _last_name(words) not in GENERAL):
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


def substituted(program: Program, word: Node, known: KnownVariables) -> bool:
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
