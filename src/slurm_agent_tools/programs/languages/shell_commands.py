"""What one command of a shell program does, and every command that it starts in turn."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import pairwise, takewhile

from slurm_agent_tools.programs import called_programs
from slurm_agent_tools.programs.program import NUMBERED, NUMBERED_CALL, SETS_DEVICES, PassedCommand, RunFile
from slurm_agent_tools.programs.shell_inputs import PYTHON
from slurm_agent_tools.programs.shell_words import POSITIONAL, SELF, UNKNOWN, unreadable
from slurm_agent_tools.programs.wrapped_command import (
    FILLING,
    SHELLS,
    Command,
    filled_in,
    name_of,
    options,
    starts,
    takes_job_away,
)

_PRINTING_WORDS = """
echo printf logger grep egrep fgrep rg sed awk test [ true false : cat head tail ls rm mkdir touch cp mv unset
cd date which type read set sleep wc printenv diff cut sort uniq tr tee man info help mail mailx git wall write
basename dirname return exit squeue sacct sinfo sstat scancel
"""

_PRINTING = frozenset(_PRINTING_WORDS.split())

_LAUNCHERS = frozenset(
    {"torchrun", "deepspeed", "horovodrun", "accelerate", "python", "python3", "coverage", "kernprof", "ray"}
)

_OTHER_LANGUAGES = re.compile(r"fish|t?csh|xonsh|perl|ruby|node|R|Rscript|julia|awk|gawk|mawk|tclsh|expect|lua|php")
_JOB_API = re.compile(r"/slurm/v0[\d.]*/jobs?/(?:submit|allocate)")
_BATCH_WORDS = """
--workflow --batch-type -T --batch-system --batchSystem --executor --scheduler --cluster --provider --backend --with
--engines --controller
"""

_BATCH_OPTIONS = frozenset(_BATCH_WORDS.split())
_CHANGES = frozenset({"requeue", "requeuehold", "update", "release", "hold", "resume", "top", "reboot"})
_APPENDING = frozenset({"xargs", "find", "parallel"})
_PATTERN = re.compile(r"[*?\[]|^=")

_LONGEST = 500
"""Characters of a pattern that is read: the time to read one grows with its square."""
_PAUSE = re.compile(r"\d{1,3}s?")

_NUMBERED_OPTION = re.compile(
    r"--?(?:[\w-]+\.)*(?:gpu|device|cuda)[-_]?(?:ids?|index|idx)|--?(?:gpu|cuda)[-_]device|--(?:cuda[-_])?device"
    r"|--main[-_]gpu|-gputasks"
)

_ONLY = re.compile(  # 0 may mean the only device
    r"--(?:cuda[-_])?device(?:[-_](?:id|index|idx))?|--main[-_]gpu|--(?:gpu|device|cuda)(?:ids?|index|idx)|--\w+\..*"
)

_LISTED_OPTION = re.compile(r"--?(?:[\w.-]*[-_.])?(?:gpus?|devices?)(?:[-_]list)?")
_OTHER_SPELLING = re.compile(r"gpu:[1-9]\d*|cuda[1-9]\d*", re.IGNORECASE)  # of a device, behind --device

_NUMBERED_SETTING = re.compile(
    r"[\w.]*\b(?:(?:devices|gpus|gpu_ids?|device_ids?)=(?:\[\d[\d, ]*\]|\d+(?:,\d+)+,?|\d+,)|gpu_ids?=\d+)"
)

_LIBRARIES = re.compile(
    r"batchtools_slurm|makeClusterFunctionsSlurm|future\.batchtools|slurm_apply|clustermq\.scheduler\W+slurm"
)

_LAUNCHER = re.compile(r"(?<![-\w])hydra[/.]launcher|executor|cluster")

_HANDED = re.compile(
    r"(?:^|[;&|!`(=\n]|\b(?:shell|exec|spawn|system)\s)[^\S\n]*+[\"']?(?:[^\s;&|!`(=]*/)?(?:sbatch|salloc)[\"']?\s+[^\s|]"
)


def judge(call: Command) -> None:
    """Look at a command, at each command that it starts, and at the settings among its words."""
    words = filled_in(call.words) if call.name in FILLING else call.words
    appended = False
    for start in starts(words, call.known.passing - call.known.shifting):
        if words[start] == POSITIONAL:
            call.program.passes.append(PassedCommand(tuple(words), call.line))
            continue
        outside = call.outside or (start > 0 and takes_job_away(words[:start]))
        _one(Command(call.program, words[start:], call.line, call.known, call.script, outside, appended))
        appended = appended or name_of(words[start]) in _APPENDING
    _arguments(call)


def _one(call: Command) -> None:
    first = call.words[0]
    name = _completed(call) if _PATTERN.search(call.name) else call.name
    meant = call.program.copied.get(name)
    if meant is not None and name not in _HANDLERS:
        name = name_of(meant)
    module = "".join(call.words[2:3]) if PYTHON.fullmatch(name) and call.words[1:2] == ["-m"] else ""
    if (program := _AS_MODULES.get(module, module)) in _HANDLERS:
        _one(replace(call, words=[program, *call.words[3:]]))
        return
    if name in called_programs.SUBMITTERS:
        called_programs.submits(call.program, name, call.rest, call.line, script=call.script)
    elif name in _HANDLERS:
        _HANDLERS[name](call)
    elif PYTHON.fullmatch(name) or name in _LAUNCHERS:
        called_programs.python(call)
    elif _OTHER_LANGUAGES.fullmatch(name):
        called_programs.other_interpreter(call)
    elif SELF in first:
        call.program.find("auto-retry", "it starts itself again", call.line)
    elif unreadable(name) and name not in call.known.functions:
        _computed(call, name)
    elif " " not in first and ("/" in first or first.endswith((".sh", ".py", ".bash"))):
        call.program.files.append(RunFile("run", first, call.line, call.given(1)))


def _completed(call: Command) -> str:
    """A name with a pattern in it, as the shell would complete it to a command that matters; zsh's `=name`."""
    name = call.name.removeprefix("=")
    if len(name) > _LONGEST:
        call.program.opaque("it runs a command whose name is a long pattern", call.line)
        return name
    if len(re.sub(r"\[.*?\]|\W", "", name)) < 2:
        return name
    return next((known for known in ("sbatch", "salloc", "scontrol", "srun") if fnmatch.fnmatchcase(known, name)), name)


def _computed(call: Command, name: str) -> None:
    """A command whose name is only known at run time. One from the caller's environment is worth a word only."""
    what = "it runs a command whose name is computed"
    if POSITIONAL in name:
        call.program.opaque("it runs its own arguments as a command", call.line)
    elif name.strip(UNKNOWN):
        call.program.opaque(what, call.line, "warn")
    else:
        call.program.opaque(what, call.line, "warn" if not call.known.computed else "approve")


def _source(call: Command) -> None:
    if call.rest:
        call.program.files.append(RunFile("source", call.rest[0], call.line))


def _perl(call: Command) -> None:
    called_programs.edits(call)
    called_programs.other_interpreter(call)


def _assigns(call: Command) -> None:
    """Commands that set the variables that they name."""
    rest = call.rest
    if call.name == "printf":
        targets = rest[1:2] if rest[:1] == ["-v"] else []
    elif call.name == "wait":
        targets = [rest[index + 1] for index, word in enumerate(rest[:-1]) if word == "-p"]
    elif call.name == "getopts":
        targets = rest[1:2]
    else:
        targets = [word for word in rest if not word.startswith("-")]
    for target in targets:
        call.program.sets(target.partition("[")[0], call.line)


def _arguments(call: Command) -> None:
    """Settings, device numbers and commands in the words of anything but a command that only prints or looks."""
    if call.name in _PRINTING and not any(word.startswith("alias.") for word in call.words):
        return
    for option, value in options(call.rest):
        if _lists_devices(call, option, value):
            call.program.find("device-index", f"it names devices by number: {option} {value}", call.line)
        _option(call, option, value)
    _counted_from_zero(call)
    for word in call.words:
        _word(call, word)
    _mentioned(call)


def _mentioned(call: Command) -> None:
    """Another Slurm command with arguments among the words of a program that nothing is known of: it may start it."""
    if call.name in _HANDLERS or call.name in call.known.functions or call.words[1:2] in (["-v"], ["-V"]):
        return
    for word, after in pairwise(call.rest):
        client = name_of(word)
        if client in {"sbatch", "salloc"} or (client == "scontrol" and after in _CHANGES):
            call.program.find(
                "direct-submission", f"it gives {client} to {call.name[:40]}, which may start it", call.line, "approve"
            )


def _option(call: Command, option: str, value: str) -> None:
    if option == "--env-file":
        call.program.files.append(RunFile("source", value, call.line))
    if option in {"-genv", "-env"}:
        call.program.sets(value, call.line)
    if option in _BATCH_OPTIONS and re.fullmatch(r"slurm\w*(?::.*)?", value):
        call.program.find("direct-submission", f"{call.name} {option} {value} submits jobs by itself", call.line)
    restarts = re.fullmatch(r"--max[-_]restarts?", option) and value not in {"0", ""}
    if restarts or (option == "--retries" and call.name == "parallel" and value != "0"):
        call.program.find("auto-retry", f"{option} starts failed work again", call.line)


def _lists_devices(call: Command, option: str, value: str) -> bool:
    """`--gpu-id 1`, `-gpu_id 0`, `--trainer.devices [1]`; a plain number behind `--gpus` is a count."""
    if "accelerate" in call.words:
        return re.fullmatch(r"--gpu[-_]ids", option) is not None and re.search(r"\d", value) is not None
    if option == "--include" and call.name == "deepspeed":
        return re.search(r"\d", value) is not None
    if option == "+devices":  # NAMD
        return re.match(r"\d", value) is not None
    if _NUMBERED_OPTION.fullmatch(option):
        number = re.fullmatch(r"\d[\d,: ]*", value) is not None and not (value == "0" and _ONLY.fullmatch(option))
        return number or _OTHER_SPELLING.fullmatch(value) is not None
    return (
        _LISTED_OPTION.fullmatch(option) is not None
        and re.fullmatch(r"\[\d[\d, ]*\]|\d+(?:[,:] ?\d+)+,?|\d+,|\d+-\d+", value) is not None
    )


def _counted_from_zero(call: Command) -> None:
    """`--gpus 0 1`: several words behind one option; `--gpus 2 8` may be a count and something else."""
    for place, option in enumerate(call.words[:-2]):
        numbers = list(takewhile(str.isdecimal, call.words[place + 1 : place + 9]))
        named = _LISTED_OPTION.fullmatch(option) or _NUMBERED_OPTION.fullmatch(option)
        if named and len(numbers) > 1 and numbers[0] == "0":
            call.program.find("device-index", f"it names devices by number: {option} {' '.join(numbers)}", call.line)


def _word(call: Command, word: str) -> None:
    setting = SETS_DEVICES.search(word[2:] if re.match(r"-[a-zA-Z]\w", word) else word)
    if setting is not None and not word.startswith(("#", "s/")):
        call.program.find("cuda-visible-devices", f"it sets {setting[1]}", call.line)
    if "\n" in word or word is call.words[0]:
        return
    _devices(call, word)
    if word.endswith((".yaml", ".yml", ".json")):
        path = word.rpartition("=")[2] if re.match(r"-|\w+=", word) else word
        call.program.files.append(RunFile("settings", path, call.line))
    if _LIBRARIES.search(word):
        call.program.find("direct-submission", "it uses a library that submits jobs", call.line)
    if _JOB_API.search(word):
        call.program.find("direct-submission", "it submits a job through Slurm's web interface", call.line)
    if any(map(_launches, word.split())):
        call.program.find("direct-submission", f"it chooses a launcher that submits jobs: {word[:80]}", call.line)
    hands_over = " " in word and call.name not in {*SHELLS, "ssh", "eval", "trap", "alias", "su"}
    if hands_over and _HANDED.search(word) and not _is_read(call, word):
        call.program.find("direct-submission", "it hands an sbatch command to another program", call.line)


def _launches(setting: str) -> bool:
    """`hydra/launcher=submitit_slurm`, `--executor=slurm`."""
    named = _LAUNCHER.search(setting)
    return named is not None and "slurm" in setting[named.end() :].partition("=")[2]


def _devices(call: Command, word: str) -> None:
    """Devices that a word names by their number."""
    if call.name in {"docker", "podman", "nerdctl"} and re.search(r"(?:nvidia\.com/gpu|\bdevice)=\W*\d", word):
        call.program.find("device-index", f"it gives devices to a container by number: {word[:80]}", call.line)
    if (call.name == "yolo" and re.fullmatch(r"device=\d[\d,]*", word)) or _NUMBERED_SETTING.fullmatch(word):
        call.program.find("device-index", f"it names devices by number: {word[:80]}", call.line)
    if (NUMBERED.search(word) or NUMBERED_CALL.search(word)) and not _is_read(call, word):
        call.program.find("device-index", f"it names a device by its number: {word[:80]}", call.line)


def _is_read(call: Command, word: str) -> bool:
    """Whether a word is the text behind `python -c`, which is read as such: what it only prints is none."""
    place = call.words.index(word)
    return call.words[place - 1] == "-c" and any(PYTHON.fullmatch(name_of(one)) for one in call.words[: place - 1])


def _of_zsh(call: Command) -> None:
    """`foreach`, `repeat 3 {` and `{ ... } always {` of zsh; what stands in them is read, when it ends is not."""
    braced = "{" in call.words[1:] or call.name == "foreach"
    if braced and call.name not in call.known.functions:
        call.program.opaque(f"it is written with zsh's own `{call.name}`, which is not read", call.line)


def _controls(call: Command) -> None:
    called_programs.controls(call.program, call.rest, call.line)


def _administers(call: Command) -> None:
    called_programs.administers(call.program, call.rest, call.line)


def _cancels(call: Command) -> None:
    called_programs.cancels(call.program, call.rest, call.line)


def _steps(call: Command) -> None:
    called_programs.moves(call)
    called_programs.steps(call.program, call.words, call.line, outside=call.outside)


def _keeps(call: Command) -> None:
    """Commands that may keep the node for a person; a pause of some minutes does not."""
    if call.name == "sleep" and _PAUSE.fullmatch(" ".join(call.words[1:])):
        return
    from slurm_agent_tools.programs import kept_nodes  # noqa: PLC0415 - few scripts keep a node

    kept_nodes.keeps(call)


def _tasks(call: Command) -> None:
    """Programs that run tasks out of a file of the project."""
    from slurm_agent_tools.programs import task_files  # noqa: PLC0415 - few scripts call such a program

    if call.name in {"snakemake", "nextflow"}:
        _plans(call)
    task_files.runs(call)


def _plans(call: Command) -> None:
    """Programs that start other work by a plan of their own."""
    from slurm_agent_tools.programs import workflow_files  # noqa: PLC0415 - few scripts call such a program

    workflow_files.starts_work(call)


_TASKS = """
npm pnpm yarn bun just task pixi poe pdm hatch rye inv invoke fab doit dvc snakemake nextflow matlab octave octave-cli
"""

_PLANNING = "retry autorestart supervisord forever cromwell make gmake cylc hq systemd-run"

# Modules that Python runs as these programs.
_AS_MODULES = {"notebook": "jupyter-notebook", "jupyter_server": "jupyter-server", "marimo._cli": "marimo"}

_KEEPING = """
sleep tail ssh autossh jupyter jupyter-lab jupyter-notebook jupyter-server jupyterlab jupyterhub-singleuser marimo
code-server openvscode-server code code-insiders cursor screen tmux zellij tmate ttyd gotty vncserver tigervncserver
Xvnc Xtigervnc x11vnc x0vncserver websockify novnc_proxy rserver rstudio-server rstudio sshd dropbear mosh-server ngrok
cloudflared bore
"""

_HANDLERS: Mapping[str, Callable[[Command], None]] = {
    **dict.fromkeys(SHELLS, called_programs.shell),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts", "printf", "wait"), _assigns),
    **dict.fromkeys(_PLANNING.split(), _plans),
    **dict.fromkeys(("su", "runuser", "script", "flock", "sg", "emulate"), called_programs.dash_c),
    **dict.fromkeys(("cp", "mv", "ln", "install"), called_programs.copies),
    **dict.fromkeys(("curl", "wget"), called_programs.fetches),
    **dict.fromkeys(("git", "unzip", "tar"), called_programs.unpacks),
    **dict.fromkeys(("sed", "patch"), called_programs.edits),
    **dict.fromkeys(called_programs.STARTING, called_programs.starts),
    "perl": _perl,
    "hash": called_programs.hashes,
    "papermill": called_programs.notebook,
    **dict.fromkeys(_KEEPING.split(), _keeps),
    **dict.fromkeys(_TASKS.split(), _tasks),
    **dict.fromkeys(("cd", "pushd"), called_programs.changes),
    **dict.fromkeys(("watch", "parallel", "env"), called_programs.lines_of_text),
    "sacctmgr": _administers,
    **dict.fromkeys(("foreach", "repeat", "always"), _of_zsh),
    "scontrol": _controls,
    "scancel": _cancels,
    "srun": _steps,
    "eval": called_programs.evaluate,
    "trap": called_programs.trap,
    "alias": called_programs.alias,
}
