"""What one command of a shell program does, and every command that it starts in turn."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping, Sequence

from slurm_agent_tools.jobscript import clients, starters
from slurm_agent_tools.jobscript.call import Call
from slurm_agent_tools.jobscript.inputs import PYTHON
from slurm_agent_tools.jobscript.program import NUMBERED, SETS_DEVICES, File
from slurm_agent_tools.jobscript.words import POSITIONAL, SELF, UNKNOWN, unreadable
from slurm_agent_tools.jobscript.wrappers import SHELLS, name_of, starts

_PRINTING_WORDS = """
echo printf logger grep egrep fgrep rg sed awk test [ true false : cat head tail ls rm mkdir touch cp mv unset
cd date which type read set sleep wc printenv diff cut sort uniq tr tee man info help mail mailx git wall write
basename dirname return exit squeue sacct sinfo sstat scancel
"""
_PRINTING = frozenset(_PRINTING_WORDS.split())
_LAUNCHERS = frozenset(
    {"torchrun", "deepspeed", "horovodrun", "accelerate", "python", "python3", "coverage", "kernprof", "ray"}
)
_OTHER_LANGUAGES = re.compile(r"perl|ruby|node|Rscript|julia|awk|gawk|mawk|tclsh|expect|lua|php")
_SUBMITS = re.compile(r"(?<![\w.-])(?:sbatch|salloc)(?![\w.-])")
_JOB_API = re.compile(r"/slurm/v0[\d.]*/jobs?/(?:submit|allocate)")
_PASSED = re.compile(r"\$\{?(?:CUDA|NVIDIA|HIP|ROCR)_VISIBLE_DEVICES\}?")


def judge(call: Call) -> None:
    """Look at a command, at each command that it starts, and at the settings among its words."""
    words = call.words
    for start in starts(words, call.known.passing):
        outside = call.outside or clients.leaves(words, start)
        _one(Call(call.program, words[start:], call.line, call.known, call.script, outside))
    _arguments(call)


def _one(call: Call) -> None:
    first = call.words[0]
    name = _meant(call.name)
    if name in clients.SUBMITTERS:
        clients.submits(call.program, name, call.rest, call.line, script=call.script)
    elif name in _HANDLERS:
        _HANDLERS[name](call)
    elif PYTHON.fullmatch(name) or name in _LAUNCHERS:
        starters.python(call)
    elif _OTHER_LANGUAGES.fullmatch(name):
        starters.other(call)
    elif SELF in first:
        call.program.find("auto-retry", "it starts itself again", call.line)
    elif unreadable(name) and name not in call.known.functions:
        _computed(call, name)
    elif "/" in first or first.endswith((".sh", ".py", ".bash")):
        call.program.files.append(File("run", first, call.line))


def _meant(name: str) -> str:
    """A name with a pattern in it, as the shell would complete it to a command that matters."""
    if not any(sign in name for sign in "*?[") or name in {"[", "[["}:
        return name
    return next((known for known in ("sbatch", "salloc", "scontrol", "srun") if fnmatch.fnmatchcase(known, name)), name)


def _computed(call: Call, name: str) -> None:
    """A command whose name is only known at run time. One from the caller's environment is worth a word only."""
    what = "it runs a command whose name is computed"
    if POSITIONAL in name:
        call.program.opaque("it runs its own arguments as a command", call.line)
    elif name.strip(UNKNOWN):
        call.program.opaque(what, call.line, "warn")
    else:
        call.program.opaque(what, call.line, "warn" if not call.known.computed else "approve")


def _source(call: Call) -> None:
    if call.rest:
        call.program.files.append(File("source", call.rest[0], call.line))


def _changes(call: Call) -> None:
    """cd."""
    folders = [word for word in call.rest if not word.startswith("-")]
    if folders and not unreadable(folders[0]):
        call.program.folders.append(folders[0])


def _copies(call: Call) -> None:
    """cp, mv, ln, install: the same text under another name."""
    files = [word for word in call.rest if not word.startswith("-")]
    if len(files) == 2:
        call.program.copied[name_of(files[1])] = files[0]


def _fetches(call: Call) -> None:
    """curl and wget write files that cannot be seen now."""
    for index, word in enumerate(call.rest[:-1]):
        if word in {"-o", "-O", "--output", "--output-document"}:
            call.program.written[name_of(call.rest[index + 1])] = None
    if "-O" in call.rest or call.name == "wget":
        for word in call.rest:
            if "://" in word:
                call.program.written.setdefault(name_of(word), None)


def _assigns(call: Call) -> None:
    """Commands that set the variables that they name."""
    rest = call.rest
    if call.name == "printf":
        targets = rest[1:2] if rest[:1] == ["-v"] else []
    elif call.name == "wait":
        targets = rest[1:2] if rest[:1] == ["-p"] else []
    elif call.name == "getopts":
        targets = rest[1:2]
    else:
        targets = [word for word in rest if not word.startswith("-")]
    for target in targets:
        call.program.sets(target.partition("[")[0], call.line)


def _workflows(call: Call) -> None:
    """Workflow managers that submit jobs, and wrappers that try again."""
    if call.name in {"retry", "autorestart", "supervisord", "forever"}:
        call.program.find("auto-retry", "it runs a command again when it fails", call.line)
    for word, value in _options(call.rest):
        if word in {
            "--retries",
            "--restart-times",
            "-T",
            "--errorStrategy",
            "-process.errorStrategy",
        } and value not in {"0", "terminate"}:
            call.program.find("auto-retry", f"{call.name} {word} starts failed work again", call.line)
        slurm = word in {"--slurm", "--cluster", "--cluster-generic-submit-cmd", "--cluster-sync", "--drmaa"}
        if slurm or (word.strip("-") in {"profile", "executor", "e", "process.executor"} and "slurm" in value.lower()):
            call.program.find("direct-submission", f"{call.name} {word} submits jobs by itself", call.line)


def _options(rest: Sequence[str]) -> list[tuple[str, str]]:
    """Each option with its value, glued or in the next word."""
    found = []
    for index, word in enumerate(rest):
        if word.startswith("-"):
            option, sign, value = word.partition("=")
            found.append((option, value if sign else "".join(rest[index + 1 : index + 2])))
    return found


def _arguments(call: Call) -> None:
    """Settings, device numbers and commands in the words of anything but a command that only prints or looks."""
    if call.name in _PRINTING:
        return
    for option, value in _options(call.rest):
        if re.fullmatch(r"--max[-_]restarts?", option) and value not in {"0", ""}:
            call.program.find("auto-retry", f"{option} starts failed work again", call.line)
        chosen = re.fullmatch(r"--gpu[-_]ids", option) if "accelerate" in call.words else None
        if (
            (chosen or (option == "--include" and call.name == "deepspeed"))
            and re.search(r"\d", value)
            and value != "all"
        ):
            call.program.find("device-index", f"it names devices by number: {option} {value}", call.line)
        if option in {"--executor", "--cluster", "-profile", "--retries"} and call.name == "parallel" and value != "0":
            call.program.find("auto-retry", f"parallel {option} starts failed work again", call.line)
    for word in call.words:
        _word(call, word)


def _word(call: Call, word: str) -> None:
    setting = SETS_DEVICES.search(word)
    if setting is not None and not word.startswith(("#", "s/")):
        call.program.find("cuda-visible-devices", f"it sets {setting[1]}", call.line)
    if "\n" in word or word is call.words[0]:
        return
    if NUMBERED.search(word):
        call.program.find("device-index", f"it names a device by its number: {word[:80]}", call.line)
    if _JOB_API.search(word):
        call.program.find("direct-submission", "it submits a job through Slurm's web interface", call.line)
    if re.search(r"(?:launcher|executor|cluster)\S*=\S*slurm", word):
        call.program.find("direct-submission", f"it chooses a launcher that submits jobs: {word[:80]}", call.line)
    hands_over = " " in word and call.name not in {*SHELLS, "ssh", "eval", "trap", "alias", "su", "python"}
    if hands_over and _SUBMITS.search(word) and _submits_in(word):
        call.program.find("direct-submission", "it hands an sbatch command to another program", call.line)


def _submits_in(word: str) -> bool:
    """Whether a word is a command line with sbatch at its start, behind a separator or behind `CMD=`."""
    parts = (part.split() for part in re.split(r"[;&|\n]+", re.sub(r"^\w+=", "", word)))
    return any(name_of(words[0].strip("'\"(")) in {"sbatch", "salloc"} for words in parts if words)


def _controls(call: Call) -> None:
    clients.controls(call.program, call.rest, call.line)


def _cancels(call: Call) -> None:
    clients.cancels(call.program, call.rest, call.line)


def _steps(call: Call) -> None:
    clients.steps(call.program, call.words, call.line, outside=call.outside)


_HANDLERS: Mapping[str, Callable[[Call], None]] = {
    **dict.fromkeys(SHELLS, starters.shell),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts", "printf", "wait"), _assigns),
    **dict.fromkeys(
        ("retry", "autorestart", "supervisord", "forever", "snakemake", "nextflow", "cromwell"), _workflows
    ),
    **dict.fromkeys(("su", "runuser", "script", "flock", "sg"), starters.dash_c),
    **dict.fromkeys(("cp", "mv", "ln", "install"), _copies),
    **dict.fromkeys(("curl", "wget"), _fetches),
    **dict.fromkeys(("cd", "pushd"), _changes),
    **dict.fromkeys(("watch", "parallel", "env"), starters.lines),
    "scontrol": _controls,
    "scancel": _cancels,
    "srun": _steps,
    "ssh": starters.ssh,
    "eval": starters.evaluate,
    "trap": starters.trap,
    "alias": starters.alias,
}
