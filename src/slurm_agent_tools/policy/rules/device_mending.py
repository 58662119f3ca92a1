"""How fixed choices of GPUs are taken out of a script: settings of device variables, and numbers of devices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from slurm_agent_tools.models.request import ScriptLayout, ShellCommand, ShellWord
from slurm_agent_tools.policy.rules import script_mending
from slurm_agent_tools.policy.rules.script_commands import DEVICE_VARIABLES
from slurm_agent_tools.policy.rules.script_mending import Change, Mend, Place

# --- cuda-visible-devices ---------------------------------------------------------------------------------------------

_NAMED = "|".join(sorted(DEVICE_VARIABLES))

_SHARE = "srun -n1 --exact --gpus-per-task=1 "

_SET = re.compile(rf"(?:{_NAMED})\+?=")

_ARGUMENT = re.compile(rf"(?:{_NAMED})=\S*")

_COMPUTED = re.compile(rf"(?:\(\(|let\s+)\s*(?:{_NAMED})\s*=\s*[\w$]+\s*(?:\)\))?")

_IN_LIST = re.compile(rf",(?:{_NAMED})(?:=(?:\d+(?:,\d+)*|[^,\s\"']*))?(?=[,\"']|$)")

_IN_TEXT = re.compile(
    rf"(?<=[\"'])(\s*)(?:(?:export\s+)?(?:{_NAMED})=[\w,]*\s*(?:;|&&)\s*|(?:{_NAMED})=[\w,]*\s+(?=[\w./]))"
)

_SETTING = re.compile(rf"(\s*)(?:export\s+|setenv\s+)?(?:{_NAMED})[=\s][\w,\"'${{}}:-]*\s*(?:#.*)?")

_PREFIX = re.compile(rf"(\s*)(?:{_NAMED})=[\w,$]*[ \t]+(?=[\w./])")

_WORDS = (
    "leave this variable as Slurm set it and keep the rest; a worker that needs one GPU of several is started with "
    "`srun -n1 --exact --gpus-per-task=1 ... &`"
)


def _settings(place: Place) -> Change | None:
    """The settings that go, with the command where it does nothing else; workers beside each other become steps."""
    gone, puts = set[int](), list[tuple[int, int, str]]()
    for command in place.here:
        if command.kind == "arithmetic" and _COMPUTED.fullmatch(place.source(command)):
            gone.add(command.index)
            continue
        bad = [word for word in command.assigns if _SET.match(word.text)]
        alone = command.kind == "declaration" or not command.words
        values = [word for word in command.assigns if command.kind != "declaration" or not word.text.startswith("-")]
        if bad and alone and len(bad) == len(values):
            gone.add(command.index)
            puts += [(one.start, one.start, _SHARE) for one in _workers(place.layout, command)]
        elif bad and not alone and _beside(place.layout, command) and not script_mending.is_own(place, command):
            first = command.words[0].start
            puts += [*(script_mending.without_word(place, word) for word in bad), (first, first, _SHARE)]
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

VARIABLES = Mend(_settings, _without_line, lambda _: _WORDS)


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
    (r",\s*\b(?:device_ids|devices|gpus|gpu_ids)\s*=\s*[\[(][^\])]*[\])](?=\s*[,)])", ""),
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

_OPTION = re.compile(r"(?:--?|\+)[\w.-]*(?:gpu|device|cuda|include)[\w-]*", re.IGNORECASE)

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
