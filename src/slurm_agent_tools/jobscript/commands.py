"""What one command of a shell program does, with the wrappers around it taken off."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from slurm_agent_tools.jobscript.words import OWN_NAME, UNKNOWN, Node, fold

if TYPE_CHECKING:
    from slurm_agent_tools.jobscript.shell import Program

SHELLS = {"bash", "sh", "dash", "zsh", "ksh"}
_PRINTING = frozenset(
    """
    echo printf logger grep egrep sed awk test [ true false : cat head tail ls rm mkdir touch cp mv unset cd date which
    type read set sleep wc
    """.split()  # noqa: SIM905 - a list of words reads best as words
)
# Wrapper -> its options that take a value.
_WRAPPERS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(
        """
        nohup time command builtin setsid numactl taskset srun singularity apptainer catchsegv strace perf unbuffer
        accelerate torchrun find
        """.split(),  # noqa: SIM905 - a list of words reads best as words
        (),
    ),
    "env": ("-u", "-C", "-S"),
    "exec": ("-a",),
    "timeout": ("-k", "-s"),
    "nice": ("-n",),
    "ionice": ("-c", "-n"),
    "sudo": ("-u", "-g"),
    "xargs": ("-n", "-P", "-I", "-L", "-a", "-d"),
    "stdbuf": ("-i", "-o", "-e"),
    "watch": ("-n",),
    "parallel": ("-j",),
    "mpirun": ("-np", "-n", "-x", "-H", "--hostfile"),
    "mpiexec": ("-n", "-np"),
}
_SUBMIT = {"sbatch", "salloc", "qsub", "bsub"}
_CONTROL = {
    "update",
    "release",
    "hold",
    "uhold",
    "suspend",
    "resume",
    "create",
    "delete",
    "reconfigure",
    "shutdown",
    "top",
}
_DEVICE = re.compile(r"(?:^|[^A-Za-z])(?:cuda|hip|xpu):\d+\b|/GPU:\d+")
_SET = re.compile(
    r"(?:^|[\s,;'\"=])((?:SINGULARITYENV_|APPTAINERENV_)?(?:CUDA|NVIDIA|HIP|ROCR)_VISIBLE_DEVICES"
    r"|GPU_DEVICE_ORDINAL|ZE_AFFINITY_MASK)="
)


def judge(program: Program, words: list[str], line: int, statement: Node, known: dict[str, str]) -> None:
    """Look at one command, and at every command that it starts in turn."""
    first = words[0]
    if (
        UNKNOWN not in first and " " in first and first in known.values()
    ):  # an unquoted variable that holds several words
        words = [*_split(first), *words[1:]]
    _heredocs(program, words, line, statement, known)
    for start in _starts(words):
        _command(program, words[start:], line)
    _arguments(program, words, line)


def _starts(words: list[str]) -> list[int]:
    """Positions where a command's name stands: the first word, and behind each wrapper."""
    found, position = [0], 0
    while position < len(words):
        name = _name(words[position])
        if name not in _WRAPPERS:
            break
        position = _behind(words, position, _WRAPPERS[name])
        if position < len(words):
            found.append(position)
    if _name(words[0]) == "find" and "-exec" in words:
        found.append(words.index("-exec") + 1)
    return [start for start in found if start < len(words)]


def _behind(words: list[str], position: int, valued: tuple[str, ...]) -> int:
    name = _name(words[position])
    position += 1
    while position < len(words):
        word = words[position]
        if word.startswith("-") and len(word) > 1:
            position += 2 if word in valued else 1
        elif (
            re.match(r"[A-Za-z_]\w*=", word)
            or (name in {"timeout", "taskset", "nice"} and re.match(r"[\d.]", word))
            or (name in {"singularity", "apptainer"} and word in {"exec", "run"})
            or (name == "accelerate" and word == "launch")
            or (name == "srun" and not _looks_like_command(word))
        ):
            position += 1
        else:
            break
    return position


def _looks_like_command(word: str) -> bool:
    return not re.fullmatch(r"\d+([:-]\d+)*[KMGkmg]?", word)


def _name(word: str) -> str:
    return word.rpartition("/")[2]


def _command(program: Program, words: list[str], line: int) -> None:
    name, rest = _name(words[0]), words[1:]
    if name in _HANDLERS:
        _HANDLERS[name](program, name, rest, line)
    elif re.fullmatch(r"python[\d.]*", name):
        _python(program, name, rest, line)
    elif UNKNOWN in words[0]:
        program.find("opaque-code", "it runs a command whose name is computed", line, "warn")
    elif "/" in words[0]:
        program.files.append(("run", words[0], line))


def _submit(program: Program, name: str, rest: list[str], line: int) -> None:
    program.find("direct-submission", f"it runs {name}", line)
    if name == "salloc":
        program.find("interactive", "it runs salloc", line)
    if any(word == OWN_NAME or _name(word) == program.own for word in rest):
        program.find("auto-retry", "it submits itself again", line)
    elif any(UNKNOWN in word for word in rest):
        program.find("auto-retry", "it may submit itself again", line, "warn")


def _ssh(program: Program, _: str, rest: list[str], line: int) -> None:
    text = " ".join(rest[1:])
    if text.strip(UNKNOWN + " "):
        program.texts.append(("shell", text, line))


def _source(program: Program, _: str, rest: list[str], line: int) -> None:
    if rest:
        program.files.append(("source", rest[0], line))


def _trap(program: Program, _: str, rest: list[str], line: int) -> None:
    if rest and rest[0] and not rest[0].startswith("-"):
        program.texts.append(("shell", rest[0], line))


def _alias(program: Program, _: str, rest: list[str], line: int) -> None:
    for word in rest:
        program.texts.append(("shell", word.partition("=")[2], line))


def _scontrol(program: Program, _: str, rest: list[str], line: int) -> None:
    verb = next((word for word in rest if not word.startswith("-")), "")
    if verb.startswith("requeue"):
        program.find("auto-retry", f"it runs scontrol {verb}", line)
    elif verb in _CONTROL:
        program.find("direct-submission", f"it runs scontrol {verb}", line)


def _srun(program: Program, _: str, rest: list[str], line: int) -> None:
    options = [word for word in rest if word.startswith("-")]
    if any(option.startswith("--pty") for option in options):
        program.find("interactive", "it runs srun --pty", line)


def _shell(program: Program, _: str, rest: list[str], line: int) -> None:
    for index, word in enumerate(rest):
        if re.fullmatch(r"-[a-z]*c", word):
            text = rest[index + 1] if index + 1 < len(rest) else ""
            if not text.strip(UNKNOWN + " "):
                program.find("opaque-code", "it runs a computed text", line, "approve")
            else:
                program.texts.append(("shell", text, line))
            return
        if not word.startswith("-"):
            program.files.append(("shell", word, line))
            return


def _eval(program: Program, _: str, rest: list[str], line: int) -> None:
    text = " ".join(rest)
    if UNKNOWN not in text:
        program.texts.append(("shell", text, line))
    else:
        program.find("opaque-code", "it evaluates a computed text", line, "approve")


def _python(program: Program, _: str, rest: list[str], line: int) -> None:
    position = 0
    while position < len(rest):
        word = rest[position]
        if word.startswith("--max") and re.fullmatch(r"--max[-_]restarts(=.*)?", word):
            value = word.partition("=")[2] or (rest[position + 1] if position + 1 < len(rest) else "")
            if value not in {"0", ""}:
                program.find("auto-retry", f"{word} starts failed work again", line)
        if word == "-c":
            program.texts.append(("python", rest[position + 1] if position + 1 < len(rest) else "", line))
            return
        if word == "-m":
            return
        if not word.startswith("-"):
            if word.endswith(".py"):
                program.files.append(("python", word, line))
            return
        position += 2 if word in {"-W", "-X"} else 1


def _assigning(program: Program, name: str, rest: list[str], line: int) -> None:
    if name == "printf":
        targets = rest[1:2] if rest[:1] == ["-v"] else []
    else:
        targets = [word for word in rest if not word.startswith("-")]
    for target in targets:
        if _SET.search(f"{target}="):
            program.find("cuda-visible-devices", f"it sets {target}", line)


def _retrying(program: Program, name: str, rest: list[str], line: int) -> None:
    if name == "retry":
        program.find("auto-retry", "it runs a command again when it fails", line)
    for index, word in enumerate(rest):
        option, _, value = word.partition("=")
        number = value or (rest[index + 1] if index + 1 < len(rest) else "0")
        if option in {"--retries", "--restart-times", "-T"} and number != "0":
            program.find("auto-retry", f"{name} {word} starts failed work again", line)
        if option in {
            "--slurm",
            "--profile",
            "--executor",
            "--cluster",
            "--cluster-generic-submit-cmd",
            "-profile",
            "-executor",
        }:
            program.find("direct-submission", f"{name} {word} submits jobs by itself", line)


_HANDED = re.compile(r"(?:^|[\s'\"/;])sbatch\s")
_READ_ELSEWHERE = SHELLS | {"ssh", "eval", "trap"}


def _arguments(program: Program, words: list[str], line: int) -> None:
    """Settings and device numbers in the arguments of anything but a command that only prints or looks."""
    name = _name(words[0])
    if name in _PRINTING:
        return
    for word in words[1:]:
        setting = _SET.search(word)
        if setting is not None:
            program.find("cuda-visible-devices", f"it sets {setting[1]}", line)
        if "\n" in word:  # a program of its own, which is read as one
            continue
        if _DEVICE.search(word):
            program.find("device-index", f"it names a device by number: {word[:80]}", line)
        if _HANDED.search(word) and name not in _READ_ELSEWHERE:
            program.find("direct-submission", "it hands an sbatch command to another program", line)


def _heredocs(program: Program, words: list[str], line: int, statement: Node, known: dict[str, str]) -> None:
    """Heredocs that a program reads run; those that go into a file are kept until it is seen whether that runs."""
    redirects = statement.get("Redirs", ())
    target = next((fold(item.get("Word"), known) for item in redirects if item.get("Op") in {">", ">>", ">|"}), None)
    if target is None and _name(words[0]) == "tee":
        target = next((word for word in words[1:] if not word.startswith("-")), None)
    for item in redirects:
        text = (
            fold(item["Hdoc"], known)
            if item.get("Hdoc")
            else fold(item.get("Word"), known)
            if item.get("Op") == "<<<"
            else None
        )
        if text is None:
            continue
        if reads_program(words):
            program.texts.append((language(words), text, line + 1))
        elif target is not None:
            program.written[target.removeprefix("./")] = (text, line + 1)
    if target is not None and _name(words[0]) in {"echo", "printf"}:
        key = target.removeprefix("./")
        before = program.written.get(key, ("", line))
        program.written[key] = (before[0] + " ".join(words[1:]) + "\n", before[1])


def reads_program(words: list[str]) -> bool:
    """True for an interpreter that takes its program from standard input."""
    starts = _starts(words) if words else []
    for start in starts:
        name, rest = _name(words[start]), words[start + 1 :]
        if name in SHELLS or re.fullmatch(r"python[\d.]*", name):
            return all(word.startswith("-") and word not in {"-c", "-m"} for word in rest[:1]) or rest[:1] in (
                ["-"],
                ["-s"],
            )
    return False


def runs_files(words: list[str]) -> bool:
    """True for a command that runs the file it is given."""
    name = _name(words[0])
    return name in SHELLS | {"source", "."} or re.fullmatch(r"python[\d.]*", name) is not None


def language(words: list[str]) -> str:
    """`python` or `shell`."""
    return "python" if any(re.fullmatch(r"python[\d.]*", _name(word)) for word in words) else "shell"


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


_HANDLERS: Mapping[str, Callable[[Program, str, list[str], int], None]] = {
    **dict.fromkeys(_SUBMIT, _submit),
    **dict.fromkeys(SHELLS, _shell),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(("read", "mapfile", "readarray", "getopts", "printf"), _assigning),
    **dict.fromkeys(("retry", "snakemake", "nextflow"), _retrying),
    "scontrol": _scontrol,
    "srun": _srun,
    "ssh": _ssh,
    "eval": _eval,
    "trap": _trap,
    "alias": _alias,
    "torchrun": _python,
}
