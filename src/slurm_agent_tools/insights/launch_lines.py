"""How the processes of a distributed job are started: torchrun, accelerate, deepspeed, MPI, or srun's own ranks. Pure.

Each form was run on two nodes. srun starts what has to run on each node, so nothing needs ssh between nodes, and Slurm
sees, limits and ends every process.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from slurm_agent_tools.models.script_arguments import Format, Launcher

ONE_TASK_PER_NODE: frozenset[Launcher] = frozenset({"torchrun", "accelerate"})
"""They start a node's processes themselves; the others have one task for each process."""

MEETING_POINT = """\
# Where the processes meet: this script runs on the first node, and each job has a port of its own.
MASTER_ADDR=$(hostname)
MASTER_PORT=$((10000 + SLURM_JOB_ID % 10000))
export MASTER_ADDR MASTER_PORT"""

_MEETING_POINT_OF_SKYPILOT = """\
MASTER_ADDR=$(head -n 1 <<<"$SKYPILOT_NODE_IPS")
MASTER_PORT=29500
export MASTER_ADDR MASTER_PORT"""

_ONE_NODE = "can use one node only there, as its processes would not find each other"

_NODE = '"$SLURM_NODEID"'

_STEP = "srun --kill-on-bad-exit=1"  # or the other nodes wait for the process that failed until the time limit
_RANKS = (
    'export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID"',
    'export WORLD_SIZE="$SLURM_NTASKS" LOCAL_WORLD_SIZE="$SLURM_NTASKS_PER_NODE"',
)
_SHIELD = 'trap "" USR1  # until the program takes it up, the signal ends nothing'
_NOT_ONE_COMMAND = re.compile(r"[\n;&|<>()`#]|^(?:[A-Za-z_]\w*=|(?:cd|source|export|set|if|for|while|exec|eval|\.)\s)")
_WORD = re.compile(r"""(?:[^\s'"\\]|\\.|'[^']*'|"(?:\\.|[^"\\])*")+""")
_PYTHON = re.compile(r"(?:.*/)?python(?:3(?:\.\d+)?)?")
_NAMES: dict[str, Launcher] = {
    "torchrun": "torchrun",
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate": "accelerate",
    "accelerate.commands.launch": "accelerate",
    "deepspeed": "deepspeed",
    "mpirun": "mpi",
    "mpiexec": "mpi",
}
_MEETING = ("node-rank", "master-addr", "master-port", "rdzv-id", "rdzv-backend", "rdzv-endpoint")
_LAYOUT: dict[Launcher, frozenset[str]] = {
    "torchrun": frozenset(("nnodes", "nproc-per-node", "standalone", *_MEETING)),
    "accelerate": frozenset(
        (
            "num-machines",
            "num-processes",
            "machine-rank",
            "main-process-ip",
            "main-process-port",
            "multi-gpu",
            *_MEETING,
        )
    ),
    "deepspeed": frozenset(("num-nodes", "num-gpus", "hostfile", "launcher", "no-ssh", *_MEETING)),
    "mpi": frozenset(
        ("np", "n", "c", "N", "npernode", "ppn", "perhost", "host", "H", "hostfile", "machinefile", "hosts", "f")
    ),
    "srun": frozenset(),
}
"""Options by which a launcher is told what Slurm tells it here; a leading dash less, underscores as dashes."""
_WITHOUT_VALUE = frozenset({"standalone", "multi-gpu", "no-ssh"})
_SHORT = 2  # such an option may well be the program's


def launcher_of(command: str) -> Launcher | None:
    """The launcher that a command names with its first words."""
    words = _words(command)
    named = words[2] if len(words) > 2 and _PYTHON.fullmatch(words[0]) and words[1] == "-m" else "".join(words[:1])
    return _NAMES.get(named.rpartition("/")[2])


def launch(launcher: Launcher, command: str, processes_per_node: int, nodes: int, *, signalled: bool) -> str:
    """The lines that start `command` with that many processes on each node.

    `signalled`: USR1 comes before the time limit. Raises ValueError for a command that the launcher cannot start.
    """
    if signalled and launcher in {"torchrun", "accelerate", "mpi"}:
        raise ValueError("gets no signal before the time limit, because Slurm tells only the process that srun started")
    if launcher == "mpi":
        return _mpi(command)
    if launcher in {"srun", "deepspeed"}:
        command = _deepspeed(command) if launcher == "deepspeed" else command
        return f"{MEETING_POINT}\n{_ranks(command, signalled=signalled)}"
    _one_command(command)
    write = {"torchrun": _torchrun, "accelerate": _accelerate}[launcher]
    return f"{MEETING_POINT}\n{step([write(command, processes_per_node, nodes)])}"


def launch_elsewhere(launcher: Launcher, command: str, processes_per_node: int, nodes: int, scheduler: Format) -> str:
    """The lines that start `command` where there is no srun: on one node, or on those that the scheduler names.

    Raises ValueError for what cannot be started there.
    """
    _one_command(command)
    if launcher == "srun":
        raise ValueError("is started by srun, which only Slurm has: set launcher to torchrun or mpi")
    if nodes == 1:
        return _on_one_node(launcher, command, processes_per_node)
    if launcher == "mpi" and scheduler == "pbs":
        words = _without_layout("mpi", _words(command)[1:]) if launcher_of(command) == "mpi" else _words(command)
        return " ".join(["mpirun", "-np", str(nodes * processes_per_node), '-machinefile "$PBS_NODEFILE"', *words])
    if launcher in {"torchrun", "accelerate"} and scheduler == "skypilot":
        write = {"torchrun": _torchrun, "accelerate": _accelerate}[launcher]
        line = write(command, processes_per_node, nodes, rank='"$SKYPILOT_NODE_RANK"')
        return f"{_MEETING_POINT_OF_SKYPILOT}\n{line}"
    known = {"pbs": "mpi", "skypilot": "torchrun or accelerate"}.get(scheduler)
    raise ValueError(f"can use one node only; on several nodes set launcher to {known}" if known else _ONE_NODE)


def _on_one_node(launcher: Launcher, command: str, processes: int) -> str:
    words = _words(command)
    if launcher == "mpi":
        words = _without_layout("mpi", words[1:]) if launcher_of(command) == "mpi" else words
        return " ".join(["mpirun", "-np", str(processes), *words])
    if launcher == "deepspeed":
        named = launcher_of(command) == "deepspeed"
        words = words[1:] if named else words[1:] if _PYTHON.fullmatch(words[0]) else ["--no_python", *words]
        return " ".join(["deepspeed", f"--num_gpus={processes}", *_without_layout("deepspeed", words)])
    if launcher == "accelerate":
        start, rest = _start_and_rest("accelerate", command, "accelerate launch", "accelerate.commands.launch")
        several = "--multi_gpu " if processes > 1 else ""
        return f"{start} {several}--num_machines=1 --num_processes={processes} {rest}"
    start, rest = _start_and_rest("torchrun", command, "torchrun", "torch.distributed.run")
    return f"{start} --standalone --nproc-per-node={processes} {rest}"


def step(lines: Sequence[str], *, signalled: bool = False) -> str:
    """srun with a shell of these lines, the last of which is the program; each task has variables of its own.

    With `signalled` the program takes the shell's place: Slurm sends a step's signal to what srun started, and to none
    of its children (measured with control groups). Raises ValueError where that cannot be.
    """
    *before, last = lines
    if signalled:
        _one_command(last)
        before = [_SHIELD, *before]
    program = f"exec {last}" if is_one_command(last) else last
    return f"{_STEP} bash -euo pipefail -c " + shlex.quote("\n".join(["", *before, program, ""]))


def is_one_command(command: str) -> bool:
    """Whether a shell can replace itself by it: one program with its arguments."""
    return _NOT_ONE_COMMAND.search(command) is None


def _ranks(command: str, *, signalled: bool) -> str:
    """One task per process, with the variables that programs read to find each other."""
    words = _words(command)
    if words[0] == "srun":
        if words[1].startswith("-"):
            return command
        command = command.partition("srun")[2].strip()
    return step([*_RANKS, command], signalled=signalled)


def _torchrun(command: str, processes_per_node: int, nodes: int, rank: str = _NODE) -> str:
    start, rest = _start_and_rest("torchrun", command, "torchrun", "torch.distributed.run")
    layout = f"--nnodes={nodes} --nproc-per-node={processes_per_node} --node-rank={rank}"
    return f'{start} {layout} --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" {rest}'


def _accelerate(command: str, processes_per_node: int, nodes: int, rank: str = _NODE) -> str:
    start, rest = _start_and_rest("accelerate", command, "accelerate launch", "accelerate.commands.launch")
    processes = nodes * processes_per_node
    several = "--multi_gpu " if processes > 1 else ""  # also where there are no GPUs: the name is accelerate's
    layout = f"{several}--num_machines={nodes} --num_processes={processes} --machine_rank={rank}"
    return f'{start} {layout} --main_process_ip="$MASTER_ADDR" --main_process_port="$MASTER_PORT" {rest}'


def _deepspeed(command: str) -> str:
    """The program itself: deepspeed.init_distributed takes ranks from the environment; its launcher needs ssh."""
    _one_command(command)
    words = _words(command)
    if launcher_of(command) != "deepspeed":
        return command
    return " ".join(["python", *_without_layout("deepspeed", words[1:])])


def _mpi(command: str) -> str:
    _one_command(command)
    words = _words(command)
    if launcher_of(command) != "mpi":
        return f"mpirun {command}"
    return " ".join([words[0], *_without_layout("mpi", words[1:])])


def _start_and_rest(launcher: Launcher, command: str, program: str, module: str) -> tuple[str, str]:
    """The launcher's own command, in the same Python where one is named, and the program with its arguments."""
    words = _words(command)
    named = launcher_of(command) == launcher
    if _PYTHON.fullmatch(words[0]):
        python, *words = words
        words = words[2:] if named else _without_interpreter_options(words)
        start = f"{python} -m {module}"
    else:
        start = program
        words = (
            words[len(program.split()) :]
            if named
            else ["--no_python" if launcher == "accelerate" else "--no-python", *words]
        )
    rest = _without_layout(launcher, words)
    if not rest:
        raise ValueError("names no program")
    return start, " ".join(rest)


def _without_interpreter_options(words: list[str]) -> list[str]:
    """`-u` and its like go; `-m NAME` is the launchers' option too."""
    while words and words[0].startswith("-") and words[0] != "-m":
        if words[0] not in {"-u", "-O", "-B", "-I", "-s", "-E"}:
            raise ValueError(f"starts Python with {words[0]}, which the launcher cannot pass on")
        words = words[1:]
    return words


def _without_layout(launcher: Launcher, words: list[str]) -> list[str]:
    """Without the launcher's own options for nodes and processes, which come first. Raises ValueError for a later one.

    Behind another option it is not known which word is the program, so nothing is taken away there.
    """
    while words and (option := _option(words[0])) in _LAYOUT[launcher]:
        words = words[1 if "=" in words[0] or option in _WITHOUT_VALUE else 2 :]
    for word in words:
        option = _option(word)
        if option in {"include", "exclude"} and launcher == "deepspeed":
            raise ValueError(f"chooses GPUs with {word}, and Slurm does that")
        if len(option) > _SHORT and option in _LAYOUT[launcher]:
            raise ValueError(
                f"has {word} behind other words; leave it out, the number of processes follows from the job"
            )
    return words


def _option(word: str) -> str:
    """`num-nodes` for --num_nodes=2; empty for a word that is none."""
    return word.lstrip("-").partition("=")[0].replace("_", "-") if word.startswith("-") else ""


def _one_command(command: str) -> None:
    if not is_one_command(command):
        raise ValueError("is more than one program")


def _words(command: str) -> list[str]:
    """Words as they are written, quotes and all."""
    return _WORD.findall(command)
