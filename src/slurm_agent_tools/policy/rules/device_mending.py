"""How fixed choices of GPUs are taken out of a script: settings of device variables, and numbers of devices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as changed
from itertools import takewhile

from slurm_agent_tools.models.geometry import geometry
from slurm_agent_tools.models.request import JobRequest, ScriptLayout, ScriptReading, ShellCommand, ShellWord
from slurm_agent_tools.policy.rules import script_mending
from slurm_agent_tools.policy.rules.rule import note, replace
from slurm_agent_tools.policy.rules.script_commands import DEVICE_VARIABLES
from slurm_agent_tools.policy.rules.script_mending import Change, Mend, Place
from slurm_agent_tools.units import format_memory

# --- cuda-visible-devices ---------------------------------------------------------------------------------------------

_NAMED = "|".join(sorted(DEVICE_VARIABLES))

_SET = re.compile(rf"(?:{_NAMED})\+?=")

_ARGUMENT = re.compile(rf"(?:{_NAMED})=\S*")

_COMPUTED = re.compile(rf"(?:\(\(|let\s)\s*+(?:{_NAMED})\s*=\s*[\w$]+\s*(?:\)\))?")

_IN_LIST = re.compile(rf",(?:{_NAMED})(?:=(?:\d+(?:,\d+)*|[^,\s\"']*))?(?=[,\"']|$)")

_IN_TEXT = re.compile(
    rf"(?<=[\"'])(\s*)(?:(?:export\s+)?(?:{_NAMED})=[\w,]*\s*(?:;|&&)\s*|(?:{_NAMED})=[\w,]*\s+(?=[\w./]))"
)

_SETTING = re.compile(rf"(\s*)(?:export\s+|setenv\s+)?(?:{_NAMED})[=\s][\w,\"'${{}}:-]*\s*(?:#.*)?")

_PREFIX = re.compile(rf"(?<!\s)(\s*+)(?:{_NAMED})=[\w,$]*[ \t]+(?=[\w./])")

_WORDS = (
    "leave this variable as Slurm set it and keep the rest; a worker that needs one GPU of several is started with "
    "`srun -n1 --exact --gpus=1 ... &`, and the job asks for a CPU for each of them"
)


def _settings(place: Place) -> Change | None:
    """The settings that go, with the command where it does nothing else; workers beside each other become steps."""
    gone, puts = set[int](), list[tuple[int, int, str]]()
    if "step" not in place.kept:
        place.kept["step"] = _Room.of(place.reading).step()
    step = place.kept["step"]
    for command in place.here:
        if command.kind == "arithmetic" and _COMPUTED.fullmatch(place.source(command)):
            gone.add(command.index)
            continue
        bad = [word for word in command.assigns if _SET.match(word.text)]
        alone = command.kind == "declaration" or not command.words
        values = [word for word in command.assigns if command.kind != "declaration" or not word.text.startswith("-")]
        if bad and alone and len(bad) == len(values):
            gone.add(command.index)
            puts += [(one.start, one.start, step) for one in _workers(place.layout, command)]
        elif bad and not alone and _beside(place.layout, command) and not script_mending.is_own(place, command):
            first = command.words[0].start
            puts += [*(script_mending.without_word(place, word) for word in bad), (first, first, step)]
        else:
            puts += [script_mending.without_word(place, word) for word in bad]
        puts += _in_words(place, command)
    return Change(frozenset(gone), tuple(puts))


def _in_words(place: Place, command: ShellCommand) -> list[tuple[int, int, str]]:
    """Settings in the arguments of a command: `env NAME=0`, `--export=ALL,NAME=0`, `-e NAME=0`, `bash -c '...'`."""
    puts = list[tuple[int, int, str]]()
    for number, word in enumerate(command.words):
        source = place.reading.text[word.start : word.end]
        option = command.words[number - 1] if number else None
        if _ARGUMENT.fullmatch(word.text):
            told = option if option is not None and option.text in {"-e", "--env", "-x"} else word
            puts.append(script_mending.without_words(place, told, word))
        elif re.match(rf"(?:--env=|-e)(?:{_NAMED})=", word.text):
            puts.append(script_mending.without_word(place, word))
        else:
            new = _IN_TEXT.sub(r"\1", _IN_LIST.sub("", source))
            puts += [(word.start, word.end, new)] if new != source else []
    return puts


def _beside(layout: ScriptLayout, command: ShellCommand) -> bool:
    """Whether a command runs beside others, in the background."""
    if command.kind != "call" or not script_mending.does_work(command) or command.words[0].text == "srun":
        return False
    outer = [one for one in layout.around(command) if one.kind != "function"]
    return command.background or any(one.background for one in outer)


def _workers(layout: ScriptLayout, setting: ShellCommand) -> Iterator[ShellCommand]:
    """The commands in the background that a setting before them was meant for."""
    for one in layout.commands[setting.index + 1 :]:
        if any(_SET.match(word.text) for word in one.assigns) or one.start >= _end(layout, setting):
            return
        if one.parent == setting.parent and one.branch == setting.branch and one.background and _beside(layout, one):
            yield one


def _end(layout: ScriptLayout, command: ShellCommand) -> int:
    outer = layout.parent(command)
    return outer.stop if outer is not None else layout.commands[-1].stop + 1


def _without_line(text: str) -> str | None:
    """A directive, or a line of another text, without the setting; None where the line does something else, too."""
    if text.startswith("#SBATCH"):
        new = re.sub(rf"(?<=[=,])(?:{_NAMED})(?:=[^,\s]*)?(?:,|(?=\s|$))", "", text).replace(", ", " ").rstrip(",")
        return "" if re.fullmatch(r"#SBATCH\s+--export=?\s*", new) else new
    blank = text[: len(text) - len(text.lstrip())]
    if _PYTHON.fullmatch(text):
        return f"{blank}pass"
    if _SETTING.fullmatch(text):
        return f"{blank}:"
    return _PREFIX.sub(r"\1", text) if _PREFIX.match(text) else None


_PYTHON = re.compile(
    rf"\s*(?:os\.)?(?:environ\[([\"'])(?:{_NAMED})\1\]\s*=[^=].*"
    rf"|(?:environ\.setdefault|putenv)\(\s*([\"'])(?:{_NAMED})\2\s*,[^()]*\)\s*(?:#.*)?)"
)

_STEP, _LAUNCHERS = "srun -n1 ", frozenset({"srun", "mpirun", "mpiexec", "prun"})

_MIB = 2**20

_IN_TURN = "each worker's step takes a CPU for itself; where there is none left it waits, and its GPU with it."


@dataclass(frozen=True, slots=True)
class _Room:
    """What the job has for workers that share its GPUs on one node, each a step with one GPU.

    `gpus` 0: it has one, or none that can be counted, or they lie on several nodes. `grown`: the CPUs of a task and not
    the number of tasks is what grows, as other commands of the script start one process for each task.
    """

    request: JobRequest
    gpus: int
    cpus: int
    tasks: int
    grown: bool

    @classmethod
    def of(cls, reading: ScriptReading) -> _Room:
        """As the script and the call ask for it."""
        request = reading.request
        shape = geometry(changed(request, nodes=1, nodes_max=1), None)
        words = (word.text for one in (reading.layout.commands if reading.layout else ()) for word in one.words)
        grown = bool(request.gpus_per_task or (request.cpus_per_task or 1) > 1 or _LAUNCHERS.intersection(words))
        gpus = shape.gpus if shape.gpus > 1 and max(request.nodes or 1, request.nodes_max or 1) == 1 else 0
        return cls(request, gpus, shape.cpus, max(shape.tasks, 1), grown)

    @property
    def counted(self) -> bool:
        """Whether the job's CPUs are known by number: not with its GPUs, not in a list of TRES, not by nodes."""
        return not (self.request.cpus_per_gpu or self.request.find("tres-per-task", "exclusive"))

    @property
    def short(self) -> bool:
        """Whether some GPU would wait for a CPU."""
        return self.counted and self.cpus < self.gpus

    def of_task(self) -> int:
        """CPUs of one task with which there is one for each GPU."""
        return -(-self.gpus // self.tasks)

    def step(self) -> str:
        """How a worker is started. A step without numbers of its own takes all memory that is stated for the node.

        Of the CPUs that are stated for a task it takes all or one, by the version; so both are said where the job does.
        """
        cpus = self.tasks * self.of_task() if self.short else self.cpus
        each = f"-c{cpus // self.gpus} " if self.gpus and self.counted and self._of_task_stated() else ""
        size = (self.request.memory_per_node or 0) // max(self.gpus, 1) // _MIB * _MIB
        memory = f"--mem={format_memory(size)} " if self.gpus and size else ""
        # A step takes the job's number of GPUs from the environment, whatever else it says (measured on 22.05).
        stated = [option for option in ("gpus", "gpus-per-node") if self.request.find(option)] or ["gpus"]
        gpu = " ".join(f"--{option}=1" for option in stated)
        return f"{_STEP}{each}--exact {gpu} {memory}"

    def _of_task_stated(self) -> bool:
        return (self.grown and self.short) or (self.request.cpus_per_task or 1) > 1

    def wider(self) -> str:
        """The lines that ask for a CPU for each GPU, all on the node on which the script starts its workers."""
        request, size = self.request, self.request.memory_per_cpu or 0
        lines = [] if any(one.source != "pinned" for one in request.find("nodes")) else ["#SBATCH --nodes=1"]
        if self.grown:
            options, cpus = ["cpus-per-task"], self.tasks * self.of_task()
            lines.append(f"#SBATCH --cpus-per-task={self.of_task()}")
        else:
            options, cpus = ["ntasks", "ntasks-per-node"], self.gpus
            lines.append(f"#SBATCH --ntasks={self.gpus}")
        if size:  # the same memory, by more CPUs
            options.append("mem-per-cpu")
            lines.append(f"#SBATCH --mem-per-cpu={format_memory(max(size * self.cpus // cpus // _MIB, 1) * _MIB)}")
        return replace(request.find(*options), *lines)


def _wider(reading: ScriptReading, puts: Sequence[str]) -> str:
    """What the job has to ask for so that its workers run beside each other."""
    room = _Room.of(reading)
    if not any(new.startswith(_STEP) for new in puts):
        return ""
    if (reading.request.nodes or 1) > 1:
        return note(_IN_TURN)
    return f"{room.wider()}\n{note(_IN_TURN)}" if room.short else ""


VARIABLES = Mend(_settings, _without_line, lambda _: _WORDS, _wider)


# --- device-index -----------------------------------------------------------------------------------------------------

_OTHERWISE = (
    "take the number away or take it from LOCAL_RANK or SLURM_LOCALID: the job's GPUs are the only ones it sees"
)

# Each way to write a number, and the same without it.
_MENDED = (
    (r"\b(cuda|hip|xpu|gpu):\d+", r"\1"),
    (r"/(?:device:)?GPU:\d+", "/GPU"),
    (r"\.cuda\(\s*(?:device\s*=\s*)?\d+\s*", ".cuda("),
    (r"\.to\(\s*\d+\s*\)", '.to("cuda")'),
    (r"\bdevice\(\s*([\"'])cuda\1\s*,\s*\d+\s*\)", 'device("cuda")'),
    (r"\bdevice\s*=\s*\d+\b(?!,\d)", 'device="cuda"'),
    (r",\s*\b(?:device_ids|devices|gpus|gpu_ids)\s*=\s*[\[(][^\[\]()]*+[\])](?=\s*[,)])", ""),
    (r",\s*\b(?:gpu_id|gpu_device_id|main_gpu)\s*=\s*\d+(?=\s*[,)])", ""),
    (  # YAML: nothing chosen, so that the program takes what the job has
        (
            r"^(\s*(?:-\s+)?(?:gpu_ids?|device_ids?|gpu_list|gpus|devices)\s*:\s*)"
            r"(?:\[[^\]]*\]|[\"'][\d, ]+[\"']|\d[\d, ]*)$"
        ),
        r"\1null",
    ),
    (r"\b((?:CUDA|AMDGPU)\.device(?:_id)?!)\(\s*\d+\s*\)", r'\1(parse(Int, get(ENV, "SLURM_LOCALID", "0")))'),
    (r"\bgpuDevice\(\s*\d+\s*\)", "gpuDevice()"),
)

_IN_WORD = re.compile(r"(?i:\b(cuda|hip|xpu|gpu)):\d+(?:,(?:cuda:)?\d+)*$")

_NUMBERED = re.compile(r"[+~]*(?:\w+\.)*(?:devices?|gpus?|gpu_ids?|device_ids?)=\[?\d+(?:, ?\d+)*\]?")

_OPTION = re.compile(r"(?:--?|\+)(?>(?:[\w-]*\.)*)(?=[\w-]*(?:gpu|device|cuda|include))[\w-]+", re.IGNORECASE)

_NUMBERS = re.compile(r"(?:localhost|cuda|gpu)?[@:]?\d+(?:[,:-] ?\d+)*", re.IGNORECASE)

_CHOOSING = re.compile(r"\s*(?:\w+\.)*(?:cuda\.)?set_device\(\s*[\"']?(?:cuda:)?\d+[\"']?\s*\)\s*(?:#.*)?")


def _unnumbered_line(text: str) -> str | None:
    """A line of Python, or of settings, without the number; one that only chooses a GPU does nothing."""
    if _CHOOSING.fullmatch(text):
        return f"{text[: len(text) - len(text.lstrip())]}pass"
    new = text
    for pattern, plain in _MENDED:
        new = re.sub(pattern, plain, new)
    return None if new == text else new


def _last(words: Sequence[ShellWord]) -> ShellWord:
    """The last number of a list like `0 1 2`; behind another number than 0 a second one is something else."""
    numbers = list(takewhile(lambda word: word.text.isdecimal(), words))
    return numbers[-1] if numbers and words[0].text == "0" else words[0]


def _unnumbered(place: Place) -> Change | None:
    puts = list[tuple[int, int, str]]()
    for command in place.here:
        words = [*command.assigns, *command.words[1:]]
        for number, word in enumerate(words):
            source = place.reading.text[word.start : word.end]
            name, sign, value = word.text.partition("=")
            before = words[number - 1].text if number else ""
            if _NUMBERS.fullmatch(word.text) and _OPTION.fullmatch(before) and _IN_WORD.search(word.text) is None:
                puts.append(script_mending.without_words(place, words[number - 1], _last(words[number:])))
            elif (_NUMBERED.fullmatch(word.text) and word in command.words) or (
                sign and _OPTION.fullmatch(name) and _NUMBERS.fullmatch(value) and ":" not in value
            ):
                puts.append(script_mending.without_word(place, word))
            else:
                new = _unnumbered_line(source)
                puts += [(word.start, word.end, new)] if new is not None and "\n" not in source else []
    return Change(puts=tuple(puts))


NUMBERS = Mend(_unnumbered, _unnumbered_line, lambda _: _OTHERWISE)
