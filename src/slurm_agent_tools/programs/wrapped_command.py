"""One command as it stands in a text, and those that start another command: where that one's words begin."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.models.sbatch_options import SHORT, TABLE
from slurm_agent_tools.programs.program import Program, spend
from slurm_agent_tools.programs.shell_words import TAME, UNKNOWN, KnownVariables

SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash"})


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How one wrapper's own words look: options with a value, words before the command, words that are skipped."""

    valued: Collection[str] = ()
    before: int = 0
    words: Collection[str] = field(default=())  # subcommands such as `exec` and `run`
    settings: bool = False  # NAME=value words stand before the command
    numbers: bool = False  # numbers stand before the command
    lists: bool = False  # lists of hosts that are only known at run time may stand before the command


_SRUN_ONLY = """
--mpi --cpu-bind --jobid --het-group --pack-group --relative --task-prolog --task-epilog --prolog --epilog
--accel-bind --wait --slurmd-debug --msg-timeout -W -r -T -E
"""

_SRUN = Wrapper(
    frozenset(_SRUN_ONLY.split())
    | {f"--{row.spelled}" for row in TABLE if row.takes == "value"}
    | {f"-{flag}" for flag, row in SHORT.items() if row.takes == "value"},
    lists=True,
)

_PLAIN = """
nohup setsid time builtin unbuffer catchsegv coproc xvfb-run dbus-run-session busybox proxychains torsocks fakeroot
faketime cpulimit systemd-inhibit valgrind command noglob nocorrect setpriv -
"""

_MPI_VALUED = """
-np -n -N -x -H -host --host --hostfile -hostfile -machinefile --map-by -map-by --bind-to -bind-to -ppn -genv -env
--npernode -npernode -f
"""

_MPI = Wrapper(tuple(_MPI_VALUED.split()), lists=True)
_ACCELERATE = """
--num_processes --config_file --gpu_ids --main_process_port --num_machines --machine_rank --mixed_precision
--main_process_ip --dynamo_backend
"""

_PARALLEL = "-j --jobs -a --arg-file --joblog --retries --delay --timeout -S --colsep -n -N"
_IMAGE = ("-B", "--bind", "--env", "--env-file", "-H", "--home", "--pwd", "--workdir", "-W", "--overlay", "-S", "-o")
_NAMED = ("-n", "--name", "-p", "--prefix", "--cwd")

WRAPPERS: dict[str, Wrapper] = {
    **dict.fromkeys(_PLAIN.split(), Wrapper()),
    "env": Wrapper(("-u", "--unset", "-C", "--chdir"), settings=True),
    "exec": Wrapper(("-a",)),
    **dict.fromkeys(("repeat", "sched"), Wrapper(before=1, words=("{",))),  # of zsh
    "timeout": Wrapper(("-k", "-s", "--signal", "--kill-after"), before=1),
    "nice": Wrapper(("-n",)),
    "ionice": Wrapper(("-c", "-n", "-p")),
    "chrt": Wrapper((), numbers=True),
    "sudo": Wrapper(("-u", "-g", "-U", "-h", "-p"), settings=True),
    "doas": Wrapper(("-u",)),
    "xargs": Wrapper(("-n", "-P", "-I", "-L", "-a", "-d", "-s", "-E")),
    "stdbuf": Wrapper(("-i", "-o", "-e")),
    "numactl": Wrapper(("-N", "-m", "-C", "-i", "-p")),
    "taskset": Wrapper(("-p",), before=1),
    "watch": Wrapper(("-n", "--interval")),
    "parallel": Wrapper(tuple(_PARALLEL.split())),
    **dict.fromkeys(("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prun", "aprun", "ibrun", "jsrun"), _MPI),
    "srun": _SRUN,
    **dict.fromkeys(("singularity", "apptainer"), Wrapper(_IMAGE, before=1, words=("exec", "run", "shell"))),
    "strace": Wrapper(("-e", "-o", "-p", "-s")),
    "ltrace": Wrapper(("-e", "-o")),
    "perf": Wrapper(("-o", "-e", "-F"), words=("stat", "record")),
    "nsys": Wrapper(("-o", "-t", "-f", "--trace", "--output"), words=("profile", "launch")),
    "ncu": Wrapper(("-o", "--set", "--section", "-k", "-c")),
    "accelerate": Wrapper(tuple(_ACCELERATE.split()), words=("launch",)),
    "uv": Wrapper(("--with", "-p", "--python", "--project", "--directory", "--extra", "--group"), words=("run",)),
    **dict.fromkeys(("poetry", "pipenv", "pdm", "hatch", "rye"), Wrapper(words=("run",))),
    "pixi": Wrapper(("-e", "--environment", "--manifest-path", "-m"), words=("run", "exec")),
    **dict.fromkeys(("conda", "mamba", "micromamba"), Wrapper(_NAMED, words=("run",))),
    **dict.fromkeys(("coverage", "kernprof"), Wrapper(words=("run",))),
    "flock": Wrapper(("-w", "-E"), before=1),
    "screen": Wrapper(("-S", "-dmS", "-DmS", "-Sdm", "-c", "-h", "-t", "-T", "-Logfile")),
    **dict.fromkeys(("pdsh", "clush"), Wrapper(("-w", "-g", "-x", "-f", "-l", "-R", "-t", "-u"))),
    **dict.fromkeys(("ld-linux-x86-64.so.2", "ld-linux.so.2", "ld-linux-aarch64.so.1"), Wrapper(("--library-path",))),
    "systemd-run": Wrapper(("-p", "-u", "--unit", "--property")),
}

# Wrappers that do something else without one of their subcommands (`uv pip install`, `conda activate`).
_WITH_WORD = "uv poetry pipenv pdm hatch rye pixi conda mamba micromamba accelerate perf nsys"
_NEEDS_WORD = frozenset(_WITH_WORD.split())
RUNNING = frozenset({*WRAPPERS, *SHELLS, "eval", "ssh"}) - {"conda", "mamba", "micromamba"}

_SSH_VALUED = "-p -i -l -o -F -J -L -R -D -W -w -b -c -e -I -m -O -Q -S"
SSH = Wrapper(tuple(_SSH_VALUED.split()))
JOB_ID_VARIABLES = frozenset({"SLURM_JOB_ID", "SLURM_JOBID"})
"""Without them a command does not know that it runs in a job."""


FILLING = frozenset({"xargs", "parallel"})
"""They put words into the command that they start."""


def filled_in(words: Sequence[str]) -> Sequence[str]:
    """The words of one of these with a sign in the place of what it puts in, in front of a shell's text too."""
    mark = "{}"
    for index, word in enumerate(words[:-1]):
        if word in {"-I", "--replace"}:
            mark = words[index + 1]
        elif word.startswith("-I") and len(word) > 2:
            mark = word[2:]
    made = [word.replace(mark, UNKNOWN) if mark in word and word != f"-I{mark}" else word for word in words]
    if name_of(made[-2]) in SHELLS and re.fullmatch(r"-\w*c", made[-1]) if len(made) > 1 else False:
        made.append(UNKNOWN)
    return made


def name_of(word: str) -> str:
    """A command's name without its folder."""
    return word.rpartition("/")[2]


def starts(words: Sequence[str], passing: Collection[str] = ()) -> Iterator[int]:
    """Positions where a command's name stands: the first word, and behind each wrapper in turn."""
    position = 0
    while position < len(words):
        yield position
        name = name_of(words[position])
        if name == "find":
            yield from _executed(words, position)
            return
        if name in passing:
            position += 1
            continue
        wrapper = WRAPPERS.get(name)
        if wrapper is None or (name == "command" and words[position + 1 : position + 2] in (["-v"], ["-V"])):
            return
        following = behind(words, position, wrapper)
        if name in _NEEDS_WORD and not any(word in wrapper.words for word in words[position + 1 : following]):
            return
        position = following


def _executed(words: Sequence[str], position: int) -> Iterator[int]:
    for index in range(position, len(words) - 1):
        if words[index] in {"-exec", "-execdir", "-ok", "-okdir"}:
            yield from (index + 1 + start for start in starts(words[index + 1 :]))


# Numbers and names that are only known at run time, like `$HOSTS`: no program is called so.
_NO_COMMAND = re.compile(rf"[\s\d,:;@=+.{TAME}]+")


def behind(words: Sequence[str], position: int, wrapper: Wrapper) -> int:
    """The first word that is neither an option of the wrapper nor one of its own words."""
    position += 1
    before = wrapper.before
    while position < len(words):
        word = words[position]
        if word == "--":
            position += 1
            if not before:
                return position
        elif word in wrapper.words:
            position += 1
        elif word.startswith("-") and len(word) > 1:
            position += 2 if word in wrapper.valued else 1
        elif (wrapper.settings and re.match(r"[A-Za-z_]\w*=", word)) or (wrapper.numbers and word.isdecimal()):
            position += 1
        elif before or (wrapper.lists and TAME in word and _NO_COMMAND.fullmatch(word)):
            before -= bool(before)
            position += 1
        else:
            return position
    return position


def takes_job_away(before: Sequence[str]) -> bool:
    """Whether the words before a command, as `env -i` and `sudo` do, take the job's id away from it."""
    name, words = name_of(before[0]), before[1:]
    if name == "sudo":
        return not any(word.startswith(("-E", "--preserve-env")) for word in words)
    if name in {"setpriv", "exec"}:
        return "--reset-env" in words or (name == "exec" and any(re.fullmatch(r"-[al]*c\w*", word) for word in words))
    cleared = any(word in {"-i", "-", "--ignore-environment"} for word in before)
    said = [word for word in before if word.startswith(("-u", "--unset", "SLURM_"))]
    named = any(variable in word for word in said for variable in JOB_ID_VARIABLES)
    return name == "env" and (cleared or named)


# --- One command as it stands in a text -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Command:
    """One command as it stands in a text. `outside`: the job's id was taken away before.

    `appended`: what starts it puts more words behind or into it (xargs, find, parallel).
    """

    program: Program
    words: Sequence[str]
    line: int
    known: KnownVariables
    script: str = ""
    outside: bool = False
    appended: bool = False

    def __post_init__(self) -> None:
        spend(len(self.words))  # a row of commands that start each other costs by its square

    @property
    def name(self) -> str:
        """The command's name without its folder."""
        return name_of(self.words[0])

    def given(self, position: int) -> tuple[str, ...]:
        """The words from a position on, as the arguments of a program; none where they are not known."""
        return () if self.appended else tuple(self.words[position:])

    @property
    def rest(self) -> list[str]:
        """The words behind the name."""
        return list(self.words[1:])


def options(rest: Sequence[str]) -> list[tuple[str, str]]:
    """Each option with its value, glued or in the next word."""
    found = []
    for index, word in enumerate(rest):
        if word.startswith(("-", "+devices")):
            option, sign, value = word.partition("=")
            found.append((option, value if sign else "".join(rest[index + 1 : index + 2])))
    return found
