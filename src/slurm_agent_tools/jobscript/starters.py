"""Commands that run a text or a file in a language that is read: shells, Python, and what hands text to them."""

from __future__ import annotations

import re

from slurm_agent_tools.jobscript.call import Call
from slurm_agent_tools.jobscript.program import DEVICES, File, Text
from slurm_agent_tools.jobscript.words import POSITIONAL, SELF, UNKNOWN, unreadable
from slurm_agent_tools.jobscript.work import works
from slurm_agent_tools.jobscript.wrappers import WRAPPERS, behind, name_of

# What GNU parallel puts an argument, or a part of it, in the place of: {}, {.}, {/}, {//}, {/.}, {#}, {%}, {1}, {1/.}.
_REPLACED = re.compile(r"\{(?:[+-]?\d+)?(?:\.|//?|/\.|#|%|##|\+/|\+\.)?\}|\{=.*?=\}")
_PROGRAM = re.compile(r"[^-]\S*\.(?:[rR]|jl|pl|rb|m|js|lua|tcl|awk|php)")
_SUBMITS = re.compile(r"(?<![\w.-])(?:sbatch|salloc)(?![\w.-])")


def shell(call: Call) -> None:
    """`bash -c text`, `bash file`."""
    rest = call.rest
    for index, word in enumerate(rest):
        if re.fullmatch(r"-[a-zA-Z]*c", word):
            _program(call, index + 2)
            return
        if not word.startswith(("-", "+")) and rest[index - 1 : index] != ["-o"]:
            if SELF in word or (call.script and name_of(word) == call.script and "/" not in word.lstrip("./")):
                call.program.find("auto-retry", "it starts itself again", call.line)
            call.program.files.append(File("shell", word, call.line, call.given(index + 2)))
            return


def _text(call: Call, text: str) -> None:
    if text.strip() and not text.strip(UNKNOWN + POSITIONAL + " \"'"):
        call.program.opaque("it runs a computed text", call.line)
    elif text:
        call.program.texts.append(Text("shell", text, call.line))


def _program(call: Call, position: int) -> None:
    """`-c text zero arguments`: the first word behind the text is its `$0`."""
    text, behind_it = "".join(call.words[position : position + 1]), call.words[position + 1 :]
    plain = not behind_it or (call.appended and not re.fullmatch(r"_|-+|\w*sh", behind_it[0]))
    zero = (POSITIONAL if call.appended else call.name) if plain else behind_it[0]
    if not text.strip() or not text.strip(UNKNOWN + POSITIONAL + " \"'"):
        _text(call, text)
    elif POSITIONAL in text or SELF in text:  # put in before: `$0` and `$1` are not this text's own
        call.program.texts.append(Text("shell", text, call.line))
    else:
        call.program.texts.append(Text("shell", text, call.line, call.given(position + 2), zero))


def dash_c(call: Call) -> None:
    """su, flock, script: `-c text`."""
    for index, word in enumerate(call.rest):
        if word in {"-c", "--command"}:
            _text(call, "".join(call.rest[index + 1 : index + 2]))


def ssh(call: Call) -> None:
    """A command on another machine."""
    rest, position = call.rest, 0
    while position < len(rest) and rest[position].startswith("-"):
        position += (
            2 if rest[position] in {"-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-W", "-w", "-f"} else 1
        )
    _text(call, " ".join(rest[position + 1 :]))


def evaluate(call: Call) -> None:
    """eval of a text that is known; any other is opaque."""
    text = " ".join(call.rest)
    if unreadable(text):
        call.program.opaque("it evaluates a computed text", call.line)
    elif text:
        call.program.texts.append(Text("shell", text, call.line))


def trap(call: Call) -> None:
    """A text that runs at a signal or at the end."""
    rest = [word for word in call.rest if word != "--"]
    if len(rest) > 1 and rest[0] not in {"", "-", "-p", "-l"}:
        _text(call, _known(call, rest[0]))


def _known(call: Call, text: str) -> str:
    """A text for the same shell, with the variables that have one value."""
    texts = call.known.texts if len(text) < 2_000 else {}
    found = re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda name: texts.get(name[1] or name[2], name[0])[:1000], text)
    return found if len(found) < 10_000 else text


def alias(call: Call) -> None:
    """A text under a new name."""
    for word in call.rest:
        if "=" in word:
            _text(call, word.partition("=")[2])


def python(call: Call) -> None:
    """Python and launchers of Python programs: their restarts, `-c` text, module or file."""
    rest, position = call.rest, 0
    while position < len(rest):
        word = rest[position]
        if word == "-c":
            text = "".join(rest[position + 1 : position + 2])
            if text.startswith("!") and call.name.startswith("ipython"):
                _text(call, text[1:])
            elif unreadable(text.strip()) and not text.strip(UNKNOWN + POSITIONAL):
                call.program.opaque("it runs a computed text", call.line)
            else:
                call.program.texts.append(Text("python", text, call.line))
            return
        if word == "-m" and position + 1 < len(rest):
            module = rest[position + 1]
            if not re.match(r"(torch|accelerate|deepspeed|horovod|coverage|cProfile|pdb|debugpy|kernprof)\b", module):
                call.program.files.append(File("module", module, call.line))
                if "." in module:
                    call.program.files.append(File("import", module.rpartition(".")[0], call.line))
                return
            position += 2
            continue
        if not word.startswith("-") and (word.endswith(".py") or call.name.startswith(("python", "pypy"))):
            call.program.files.append(File("python", word, call.line))
            return
        position += 2 if word in {"-W", "-X"} else 1


def notebook(call: Call) -> None:
    """papermill, jupyter nbconvert --execute: the notebooks that they run."""
    if call.name == "papermill" or any(word.startswith("--execute") or word == "execute" for word in call.rest):
        files = [word for word in call.rest if word.endswith(".ipynb")]
        call.program.files += [File("notebook", word, call.line) for word in files]


def tmux(call: Call) -> None:
    """Command lines for a session of tmux."""
    for word in call.rest:
        if " " in word:
            _text(call, word)


def other(call: Call) -> None:
    """One-liners of other languages: looked at for the words themselves, as are the files that they run."""
    call.program.files += [File("other", word, call.line) for word in call.rest if _PROGRAM.fullmatch(word)][:1]
    for word in call.rest:
        if call.name in {"perl", "ruby", "node", "php"} and re.search(r"\beval\b\s*\(?\s*[$\w]", word):
            call.program.opaque(f"it evaluates a computed text in {call.name}", call.line)
        if _SUBMITS.search(word) and re.search(r"system|exec|run|spawn|popen|`|\|", word):
            call.program.find("direct-submission", f"it runs sbatch from {call.name}", call.line)
        assigns = "=" in word or re.search(r"\bsetenv\s|\bset\s+-\w*x", word)
        if DEVICES.search(word) and assigns and re.search(r"ENV|environ|\bset\s", word, re.IGNORECASE):
            call.program.find("cuda-visible-devices", f"it sets a device variable in {call.name}", call.line)


def lines(call: Call) -> None:
    """watch, parallel, env -S: a word that is a whole command line."""
    position = behind(call.words, 0, WRAPPERS[call.name])
    for index, word in enumerate(call.words[1:], start=1):
        if word in {"-S", "--split-string"} and call.name == "env":
            _text(call, "".join(call.words[index + 1 : index + 2]))
        elif word.startswith("-S") and call.name == "env" and len(word) > 2:
            _text(call, word[2:])
    if call.name == "watch" and position < len(call.words) and works(" ".join(call.words[position:]).split()):
        call.program.find("auto-retry", "watch starts its command again and again", call.line)
    if call.name in {"watch", "parallel"} and position < len(call.words) and " " in call.words[position]:
        text = call.words[position]
        _text(call, _REPLACED.sub(POSITIONAL, text) if call.name == "parallel" else text)
