"""cuda-visible-devices: the variables by which Slurm tells a job its GPUs are Slurm's to set."""

from __future__ import annotations

import re
from collections.abc import Iterator

from slurm_agent_tools.models.request import Directive, Finding, ScriptLayout, ShellCommand
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules import script_mending
from slurm_agent_tools.policy.rules.examples import asks, does
from slurm_agent_tools.policy.rules.rule import SCRIPTS, Example, Judgement, Rule, passed, reading_of, speak
from slurm_agent_tools.policy.rules.script_mending import Change, Mend, Place

ID = "cuda-visible-devices"

DEVICE_VARIABLES = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "ZE_AFFINITY_MASK",
    }
)

_WHY = "Slurm sets this variable to the GPUs that the job was given; another value reaches for somebody else's."

_ADVICE = "the GPUs of the job are already the only visible ones; ask for their number with #SBATCH --gpus=N."


def _judge(plan: PlannedRequest, _: Policy) -> Judgement:
    reading = reading_of(plan)
    found = [finding for finding in reading.findings if finding.rule == ID]
    lines = {finding.evidence.line for finding in found}
    found += [
        _exported(directive)
        for directive in reading.request.find("export")
        if directive.source != "pinned" and directive.evidence.line not in lines and _names(directive)
    ]
    if not found:
        return passed("The script leaves the choice of GPUs to Slurm.")
    return speak(reading, found, _WHY, _MEND, _ADVICE)


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

_MEND = Mend(_settings, _without_line, lambda _: _WORDS)


def _names(directive: Directive) -> set[str]:
    """Device variables that an --export list gives a value or passes on."""
    words = {item.partition("=")[0].strip() for item in (directive.value or "").split(",")}
    return words & DEVICE_VARIABLES


def _exported(directive: Directive) -> Finding:
    return Finding(ID, f"--export passes {', '.join(sorted(_names(directive)))} to the job", directive.evidence)


RULE = Rule(
    id=ID,
    what=f"A script never sets {', '.join(sorted(DEVICE_VARIABLES))}.",
    why=_WHY,
    levels=("warn", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge,
    passing=(
        Example("reading the variable", asks("#SBATCH --gpus=1", 'echo "$CUDA_VISIBLE_DEVICES"', gpus=1), "pass"),
        Example(
            "exporting something else",
            asks("#SBATCH --export=ALL,SEED=7", "python train.py", export="ALL,SEED=7"),
            "pass",
        ),
    ),
    failing=(
        Example(
            "setting it",
            does(ID, "sets CUDA_VISIBLE_DEVICES", "export CUDA_VISIBLE_DEVICES=0,1"),
            "deny",
        ),
        Example(
            "setting it in a directive",
            asks(
                "#SBATCH --export=ALL,CUDA_VISIBLE_DEVICES=0",
                "python train.py",
                export="ALL,CUDA_VISIBLE_DEVICES=0",
            ),
            "deny",
        ),
    ),
)
