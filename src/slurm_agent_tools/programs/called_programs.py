"""Calls that mean something to the policy: interpreters of texts that are read, and Slurm's own commands."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from slurm_agent_tools.programs.job_work import is_work
from slurm_agent_tools.programs.program import BEFORE_PYTHONS_OWN, DEVICES, InnerText, Program, RunFile, included
from slurm_agent_tools.programs.shell_words import OWN_JOB, POSITIONAL, SELF, SIGNS, TAME, UNKNOWN, unreadable
from slurm_agent_tools.programs.wrapped_command import WRAPPERS, Command, behind, name_of, options

# What GNU parallel puts an argument, or a part of it, in the place of: {}, {.}, {/}, {//}, {/.}, {#}, {%}, {1}, {1/.}.
_REPLACED = re.compile(r"\{(?:[+-]?\d+)?(?:\.|//?|/\.|#|%|##|\+/|\+\.)?\}|\{=(?>(?:(?!\{=|=\}).)*)=\}")
_PROGRAM = re.compile(r"[^-]\S*\.(?:[rR]|jl|pl|rb|m|js|lua|tcl|awk|php)")
_SUBMITS = re.compile(r"(?<![\w.-])(?:sbatch|salloc)(?![\w.-])")


_LONG = re.compile(
    r"--?(?:(rcfile|init-file)|login|no(?:editing|profile|rc)|posix|restricted|verbose|dump-(?:po-)?strings|pretty-print)|--.*"
)
"""A shell's long option; the first two take the next word, as each `o` and `O` of short ones does."""


def shell(call: Command) -> None:
    """`bash -c text`, `bash -euo pipefail -c text`, `bash -ce text`, `bash file`."""
    rest, text, taken = call.rest, False, 0
    for index, word in enumerate(rest):
        if taken:
            taken -= 1
        elif word.startswith(("-", "+")):
            long = _LONG.fullmatch(word)
            text = text or (long is None and word[0] == "-" and "c" in word)
            taken = int(bool(long[1])) if long else len(re.findall("[oO]", word))
        elif text:
            return _program(call, index + 1)
        else:
            if SELF in word or (call.script and name_of(word) == call.script and "/" not in word.lstrip("./")):
                call.program.find("auto-retry", "it starts itself again", call.line)
            call.program.files.append(RunFile("shell", word, call.line, call.given(index + 2)))
            return None
    return None


def _text(call: Command, text: str, *, before: str = "") -> None:
    """A text for a shell, with what holds `before` it; one that is wholly computed is opaque."""
    if text.strip() and not text.strip(UNKNOWN + POSITIONAL + " \"'"):
        call.program.opaque("it runs a computed text", call.line)
    elif text:
        call.program.texts.append(InnerText("shell", before + text, call.line))


def _program(call: Command, position: int) -> None:
    """`-c text zero arguments`: the first word behind the text is its `$0`."""
    text, behind_it = "".join(call.words[position : position + 1]), call.words[position + 1 :]
    plain = not behind_it or (call.appended and not re.fullmatch(r"_|-+|\w*sh", behind_it[0]))
    zero = (POSITIONAL if call.appended else call.name) if plain else behind_it[0]
    if not text.strip() or not text.strip(UNKNOWN + POSITIONAL + " \"'"):
        _text(call, text)
    elif POSITIONAL in text or SELF in text:  # put in before: `$0` and `$1` are not this text's own
        call.program.texts.append(InnerText("shell", text, call.line))
    else:
        call.program.texts.append(InnerText("shell", text, call.line, call.given(position + 2), zero))


_AWAY = "unset SLURM_JOB_ID; "  # a fresh login knows nothing of the job


def dash_c(call: Command) -> None:
    """su, flock, script: `-c text`."""
    fresh = call.name in {"su", "runuser"} and not {"-", "-l", "--login"}.isdisjoint(call.rest)
    for index, word in enumerate(call.rest):
        if word in {"-c", "--command"}:
            _text(call, "".join(call.rest[index + 1 : index + 2]), before=_AWAY if fresh else "")


def ssh(call: Command) -> None:
    """A command on another machine."""
    rest, position = call.rest, 0
    while position < len(rest) and rest[position].startswith("-"):
        position += (
            2 if rest[position] in {"-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-W", "-w", "-f"} else 1
        )
    _text(call, " ".join(rest[position + 1 :]), before=_AWAY)


def evaluate(call: Command) -> None:
    """eval of a text that is known; any other is opaque."""
    text = " ".join(call.rest)
    if unreadable(text):
        call.program.opaque("it evaluates a computed text", call.line)
    elif text:
        call.program.texts.append(InnerText("shell", text, call.line))


def trap(call: Command) -> None:
    """A text that runs at a signal or at the end."""
    rest = [word for word in call.rest if word != "--"]
    if len(rest) > 1 and rest[0] not in {"", "-", "-p", "-l"}:
        _text(call, _known(call, rest[0]))


def _known(call: Command, text: str) -> str:
    """A text for the same shell, with the variables that have one value."""
    texts = call.known.texts if len(text) < 2_000 else {}
    found = re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda name: texts.get(name[1] or name[2], name[0])[:1000], text)
    return found if len(found) < 10_000 else text


def alias(call: Command) -> None:
    """A text under a new name."""
    for word in call.rest:
        if "=" in word:
            _text(call, word.partition("=")[2])


def python(call: Command) -> None:
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
                call.program.texts.append(InnerText("python", text, call.line))
            return
        if word == "-m" and position + 1 < len(rest):
            module = rest[position + 1]
            if not re.match(r"(torch|accelerate|deepspeed|horovod|coverage|cProfile|pdb|debugpy|kernprof)\b", module):
                call.program.files.append(RunFile("module", module, call.line))
                call.program.notes.add(BEFORE_PYTHONS_OWN)  # the folder where it is started
                if "." in module:
                    call.program.files.append(RunFile("import", module.rpartition(".")[0], call.line))
                return
            position += 2
            continue
        if not word.startswith("-") and (word.endswith(".py") or call.name.startswith(("python", "pypy"))):
            call.program.files.append(RunFile("python", word, call.line))
            return
        position += 2 if word in {"-W", "-X"} else 1


def notebook(call: Command) -> None:
    """papermill, jupyter nbconvert --execute: the notebooks that they run."""
    if call.name == "papermill" or any(word.startswith("--execute") or word == "execute" for word in call.rest):
        files = [word for word in call.rest if word.endswith(".ipynb")]
        call.program.files += [RunFile("notebook", word, call.line) for word in files]


def tmux(call: Command) -> None:
    """Command lines for a session of tmux."""
    for word in call.rest:
        if " " in word:
            _text(call, word)


def other_interpreter(call: Command) -> None:
    """One-liners of other languages: looked at for the words themselves, as are the files that they run."""
    call.program.files += [RunFile("other", word, call.line) for word in call.rest if _PROGRAM.fullmatch(word)][:1]
    for word in call.rest:
        call.program.files += [RunFile("other", path, call.line) for path in included(word, "")]
        if call.name in {"perl", "ruby", "node", "php"} and re.search(r"\beval\b\s*+\(?\s*+[$\w]", word):
            call.program.opaque(f"it evaluates a computed text in {call.name}", call.line)
        if _SUBMITS.search(word) and re.search(r"system|exec|run|spawn|popen|`|\|", word):
            call.program.find("direct-submission", f"it runs sbatch from {call.name}", call.line)
        assigns = "=" in word or re.search(r"\bsetenv\s|\bset\s+-\w*x", word)
        if DEVICES.search(word) and assigns and re.search(r"ENV|environ|\bset\s", word, re.IGNORECASE):
            call.program.find("cuda-visible-devices", f"it sets a device variable in {call.name}", call.line)


def lines_of_text(call: Command) -> None:
    """watch, parallel, env -S: a word that is a whole command line."""
    position = behind(call.words, 0, WRAPPERS[call.name])
    if call.name == "env":
        moves(call)
    for index, word in enumerate(call.words[1:], start=1):
        if word in {"-S", "--split-string"} and call.name == "env":
            _text(call, "".join(call.words[index + 1 : index + 2]))
        elif word.startswith("-S") and call.name == "env" and len(word) > 2:
            _text(call, word[2:])
    if call.name == "watch" and position < len(call.words) and is_work(" ".join(call.words[position:]).split()):
        call.program.find("auto-retry", "watch starts its command again and again", call.line)
    if call.name in {"watch", "parallel"} and position < len(call.words) and " " in call.words[position]:
        text = call.words[position]
        _text(call, _REPLACED.sub(POSITIONAL, text) if call.name == "parallel" else text)
    if call.name == "parallel" and (position >= len(call.words) or call.words[position].startswith(":::")):
        _lines(call)


def _lines(call: Command) -> None:
    """Without a command parallel runs each line of its files, and each of its arguments, as one."""
    before, sign = list(takewhile(lambda word: not word.startswith(":::"), call.rest)), ""
    paths = [value for option, value in options(before) if option in {"-a", "--arg-file"}]
    paths += [word[2:] for word in before if re.match(r"-a.", word)]
    for word in call.rest[len(before) :]:
        if word.startswith(":::"):
            sign = word.rstrip("+")
        elif sign == ":::":
            _text(call, word)
        else:
            paths.append(word)
    call.program.files += [RunFile("shell", path, call.line) for path in paths]


# --- Files and folders that a script makes, changes or goes to --------------------------------------------------------


def changes(call: Command) -> None:
    """cd."""
    folders = [word for word in call.rest if not word.startswith("-")]
    behind = SIGNS.split(folders[0])[-1] if folders else ""
    if folders and SIGNS.search(folders[0]):  # `cd "$ROOT/sub"`: the rest is looked for
        call.program.folders += [behind.strip("/")] if behind.strip("/.") else []
    elif folders:
        before = call.program.folders[-1:]
        call.program.folders.append(folders[0])
        if before and not posixpath.isabs(folders[0]) and ".." not in folders[0]:
            call.program.folders.append(posixpath.join(before[0], folders[0]))


def moves(call: Command) -> None:
    """`srun --chdir=sub`, `env -C sub`: the folder in which the command behind it runs."""
    for place, word in enumerate(call.words[:-1]):
        option, sign, value = word.partition("=")
        if option in _MOVING[call.name]:
            changes(replace(call, words=["cd", value if sign else call.words[place + 1]]))


_MOVING = {"srun": ("-D", "--chdir"), "env": ("-C", "--chdir")}


def copies(call: Command) -> None:
    """cp, mv, ln, install: the same text under another name."""
    files = [word for word in call.rest if not word.startswith("-")]
    if len(files) == 2:
        call.program.copied[name_of(files[1])] = files[0]


def hashes(call: Command) -> None:
    """`hash -p FILE NAME`: a command under another name."""
    if call.rest[:1] == ["-p"] and len(call.rest) == 3:
        call.program.copied[call.rest[2]] = call.rest[1]


def unpacks(call: Command) -> None:
    """git clone, unzip and tar bring folders whose programs cannot be seen now."""
    rest = call.rest
    if call.name == "git":
        words = [word for word in rest if not word.startswith("-")]
        if words[:1] == ["clone"] and len(words) > 1:
            call.program.fetched.append(words[2] if len(words) > 2 else name_of(words[1]).removesuffix(".git"))
        return
    for index, word in enumerate(rest[:-1]):
        if word in {"-d", "-C", "--directory"}:
            call.program.fetched.append(rest[index + 1])


def edits(call: Command) -> None:
    """sed -i and patch change files in a way that is not followed."""
    files = [word for word in call.rest if not word.startswith("-")]
    for word in call.rest if call.name == "sed" else ():
        started = re.match(r"[\d,/$]*e\s+(.+)", word)
        if started is not None:
            call.program.texts.append(InnerText("shell", started[1], call.line))
    if call.name == "patch" or any(re.match(r"-\w*i|--in-place", word) for word in call.rest):
        for name in files[-2:]:
            call.program.written[name_of(name)] = None


def fetches(call: Command) -> None:
    """curl and wget write files that cannot be seen now."""
    for index, word in enumerate(call.rest[:-1]):
        if re.fullmatch(r"-[a-zA-Z]*[oO]|--output(?:-document)?", word):
            call.program.written[name_of(call.rest[index + 1])] = None
    if "-O" in call.rest or call.name == "wget":
        for word in call.rest:
            if "://" in word:
                call.program.written.setdefault(name_of(word), None)


# --- What a script's calls of Slurm's own commands mean: job steps and questions pass, jobs of their own do not -------


_SUBMITTING = "sbatch salloc sinteractive qrsh qlogin qsub bsub msub scrontab crontab at strigger qlaunch condor_submit"
SUBMITTERS = frozenset(_SUBMITTING.split())
_ASKING = frozenset({"--help", "-h", "--version", "-V", "--usage", "-l", "--list"})
_READING = "show ping help version listpids getaddrs write wait_job pidinfo hostname details"
_RETRYING = ("requeue", "requeuehold")


def submits(program: Program, name: str, rest: Sequence[str], line: int, *, script: str) -> None:
    """sbatch and its like. `script` is the name of the script that is read, for resubmission of itself."""
    if rest and rest[0] in (_ASKING if name == "crontab" else _ASKING - {"-l"}):
        return
    program.find("direct-submission", f"it runs {name}", line)
    if name == "salloc":
        program.find("interactive", "it runs salloc, which waits for a terminal", line)
    rest = [program.copied.get(word.rpartition("/")[2], word) for word in rest]
    if any(SELF in word or (script and word.rpartition("/")[2] == script) for word in rest):
        program.find("auto-retry", "it submits itself again", line)
    if any("afternotok" in word or "afterany" in word for word in rest):
        program.find("auto-retry", f"it runs {name} for when this job has ended", line)
    for index, word in enumerate(rest):
        if word.startswith("--wrap"):
            text = word.partition("=")[2] or "".join(rest[index + 1 : index + 2])
            program.texts.append(InnerText("shell", text, line))


STARTING = {
    "kubectl": {"create", "apply", "run", "replace", "patch", "scale"},
    "sky": {"launch", "exec", "start", "up"},
}
"""What starts work on a cluster of another kind or in a cloud, by the words that do."""


def starts(call: Command) -> None:
    """kubectl and sky: a job or a machine that nobody checked."""
    words = STARTING[call.name] & {*call.rest}
    if words and not _ASKING & {*call.rest} - {"-l"}:
        call.program.find("direct-submission", f"it runs {call.name} {min(words)}", call.line)


def controls(program: Program, rest: Sequence[str], line: int) -> None:
    """scontrol: everything but looking. Its verbs may be abbreviated."""
    verbs = [word for word in rest if not word.startswith("-") or word == "-"]
    verb = verbs[0].lower() if verbs else ""
    if not verb:
        if not any(word in _ASKING for word in rest):
            program.find("direct-submission", "it runs scontrol with commands from its input", line)
    elif any(word.startswith(verb) for word in _RETRYING) and verb not in {"r", "re"}:
        program.find("auto-retry", f"it runs scontrol {verb}", line)
    elif unreadable(verb):
        program.opaque("it runs scontrol with a computed command", line)
    elif not any(word.startswith(verb) for word in _READING.split()):
        program.find("direct-submission", f"it runs scontrol {verb}, which changes jobs or the cluster", line)


def administers(program: Program, rest: Sequence[str], line: int) -> None:
    """sacctmgr: everything but looking."""
    verbs = [word.lower() for word in rest if not word.startswith("-")]
    if verbs and not any(word.startswith(verbs[0]) for word in ("show", "list", "ping", "help", "version", "dump")):
        program.find("direct-submission", f"it runs sacctmgr {verbs[0]}, which changes the cluster", line)


def cancels(program: Program, rest: Sequence[str], line: int) -> None:
    """scancel of anything but the job itself; without words it gets the jobs from elsewhere (xargs)."""
    options = [word for word in rest if word.startswith("-")]
    jobs = [
        word for word in rest if not word.startswith("-") and not re.fullmatch(r"(SIG)?[A-Z]{3,6}\d?|\d{1,2}", word)
    ]
    broad = [
        word
        for word in options
        if re.match(r"(-[untpAqwj](?![a-z])|--(user|name|state|partition|account|qos|me))", word)
    ]
    if not rest or broad or any(OWN_JOB not in word and not set(word) <= {TAME, "_"} for word in jobs):
        program.find("direct-submission", "it runs scancel on other jobs", line)


def steps(program: Program, words: Sequence[str], line: int, *, outside: bool) -> None:
    """srun: a job step, unless it wants a terminal or leaves the job. `outside`: the job's id was taken away."""
    end = behind(words, 0, WRAPPERS["srun"])
    options = words[1:end]
    if any(re.match(r"--pty?(=|$)", word) for word in options):
        program.find("interactive", "it runs srun --pty, which waits for a terminal", line)
    if outside:
        program.find("direct-submission", "it runs srun outside of its job, which makes a new one", line)
    for index, word in enumerate(options):
        if re.match(r"--jobid(=|$)", word):
            value = word.partition("=")[2] or "".join(options[index + 1 : index + 2])
            if not any(sign in value for sign in (OWN_JOB, TAME)):
                program.find("direct-submission", "it runs srun in another job", line, "approve")
    if "--multi-prog" in options and end < len(words):
        program.files.append(RunFile("multi-prog", words[end], line))
