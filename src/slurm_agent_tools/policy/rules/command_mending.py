"""How commands are taken out of a script that a rule found something against; and how each such rule mends a script."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from slurm_agent_tools.models.request import Finding, ScriptLayout, ShellCommand
from slurm_agent_tools.policy.rules import device_mending, script_mending
from slurm_agent_tools.policy.rules.script_mending import Change, Mend, Place, does_work

# --- auto-retry -------------------------------------------------------------------------------------------------------

_END = (
    "run the work once, with all that stands around it, and let the job end when it fails; "
    "after analyze_log, submit the corrected script again"
)

_OPTIONS = re.compile(r"--(?:retries|restart-times|max[-_]restarts?)|-process\.(?:errorStrategy|maxRetries)")

_SETTINGS = (
    (r"\bauto_requeue\s*=\s*True", "auto_requeue=False"),
    (r"\b(max_(?:failures|restarts|retries))\s*=\s*-?\d+", r"\1=0"),
)

_AGAIN = frozenset({"sbatch", "scontrol"})

_ITSELF = re.compile(r"\$0|\$\{0\}|BASH_SOURCE")

# What a loop of tries does between them: it goes with the loop.
_BETWEEN = frozenset({"sleep", "echo", "printf", "break", "continue", "exit", "return", "true", "false", ":", "date",
                      "let", "[", "test"})  # fmt: skip

_TRYING = frozenset({"while", "until", "for"})


def _once(place: Place) -> Change | None:
    """The work run once: without the loop, the second try, or the option that asks for one."""
    puts = [put for command in place.here for put in _options(place, command)]
    if puts:
        return Change(puts=tuple(puts))
    gone = frozenset(one.index for one in place.here if _sends_again(one))
    if gone:
        return Change(gone)
    loops = [one for one in place.here if one.kind in _TRYING and _tries(place.layout, one)]
    chains = [one for one in place.here if one.kind == "or"]
    if len(loops) == 1:
        return _without_loop(place, loops[0])
    return _first_try(place.layout, chains[0]) if chains and not loops else None


def _tries(layout: ScriptLayout, loop: ShellCommand) -> bool:
    """Whether a loop can be the one that tries again: it leaves itself, asks for success, or has no end."""
    inner = list(layout.within(loop))
    asked = [one for one in inner if one.parent == loop.index and one.role == "condition"]
    if any(does_work(one) or one.negated or script_mending.program(one) in {"true", ":", "false"} for one in asked):
        return True
    own = [one for one in inner if next(out.index for out in layout.around(one) if out.kind in _TRYING) == loop.index]
    return any(script_mending.program(one) in {"break", "exit", "return"} for one in own) or bool(asked)


def _sends_again(command: ShellCommand) -> bool:
    """Whether a command starts the job or its script again, and does nothing else."""
    words = script_mending.tail(command)
    if command.kind != "call" or not words:
        return False
    if script_mending.program(command) == "trap":
        return re.fullmatch(r"\s*(?:echo [^;&|]*[;&]+\s*)?(?:scontrol requeue|sbatch)\b[^;&|\n]*", words[1]) is not None
    again = any(_ITSELF.search(word.text) for word in command.words)
    return script_mending.program(command) in _AGAIN or (
        again and command.words[0].text in {"exec", "bash", "sh", "$0"}
    )


def _options(place: Place, command: ShellCommand) -> Iterator[tuple[int, int, str]]:
    """Options and settings that ask for another try, in the words of a command."""
    for number, word in enumerate(command.words):
        name, sign, _ = word.text.partition("=")
        if _OPTIONS.fullmatch(name) and sign:
            yield script_mending.without_word(place, word)
        elif _OPTIONS.fullmatch(word.text) and number + 1 < len(command.words):
            yield script_mending.without_words(place, word, command.words[number + 1])
        else:
            source = place.reading.text[word.start : word.end]
            new = _set_once(source)
            if new is not None:
                yield (word.start, word.end, new)


def _set_once(text: str) -> str | None:
    """A line, or a word, whose setting asks for another try, with one that does not."""
    new = text
    for pattern, plain in _SETTINGS:
        new = re.sub(pattern, plain, new)
    return None if new == text else new


def _first_try(layout: ScriptLayout, command: ShellCommand) -> Change | None:
    """`A || A again`: the first alone, where nothing stands in the second but the try."""
    second = layout.children(command)[-1]
    leaves = [one for one in (second, *layout.within(second)) if one.kind in {"call", "declaration"}]
    first = script_mending.program(layout.children(command)[0])
    tried = [one for one in leaves if one.words and script_mending.program(one) not in _BETWEEN]
    if any(script_mending.program(one) != first and not _sends_again(one) for one in tried):
        return None
    return Change(frozenset(one.index for one in leaves))


def _without_loop(place: Place, loop: ShellCommand) -> Change | None:
    """The work of a loop, run once, where the loop does nothing else and the work does not ask for its number."""
    inner = list(place.layout.within(loop))
    work = [one for one in inner if one.kind in {"call", "declaration"} and not _between(one)]
    units = list(dict.fromkeys(_unit(place.layout, one, loop) for one in work if one.role != "inside"))
    behind = _behind(place.layout, loop)
    if loop.redirected or not units or None in units or behind is None:
        return None
    sources = [place.source(unit).removeprefix("!").lstrip() for unit in units if unit is not None]
    set_here = {one.name for one in (loop, *inner)} | {
        word.text.partition("=")[0].rstrip("+") for one in inner for word in one.assigns
    }
    used = set(re.findall(r"\$\{?(\w+)", "\n".join(sources)))
    if used & set_here or any(unit.heredocs for unit in units if unit is not None):
        return None
    return Change(behind, ((loop.start, loop.end, _in_turn(place, loop, sources)),))


def _in_turn(place: Place, loop: ShellCommand, sources: Sequence[str]) -> str:
    """Several commands in the place of one: each in its line, or held together where something hangs on the whole."""
    if len(sources) == 1:
        return sources[0]
    if loop.role != "body" or loop.background or loop.negated:
        return "{ " + "; ".join(sources) + "; }"
    begin = place.reading.text.rfind("\n", 0, loop.start) + 1
    blank = re.match(r"[ \t]*", place.reading.text[begin:])
    return f"\n{blank[0] if blank else ''}".join(sources)


def _behind(layout: ScriptLayout, loop: ShellCommand) -> frozenset[int] | None:
    """What stands behind a loop that a try's success leaves for good: the end for when all failed, which goes with it.

    None where it is more than that.
    """
    ends = [one for one in layout.within(loop) if script_mending.program(one) in {"exit", "return"}]
    if not ends:
        return frozenset()
    after = [one for one in layout.commands if one.parent == loop.parent and one.branch == loop.branch]
    after = [one for one in after if one.index > loop.index]
    plain = all(one.kind == "call" and script_mending.program(one) in _BETWEEN for one in after)
    return frozenset(one.index for one in after) if plain else None


def _between(command: ShellCommand) -> bool:
    return not command.words or script_mending.program(command) in _BETWEEN


def _unit(layout: ScriptLayout, command: ShellCommand, loop: ShellCommand) -> ShellCommand | None:
    """The command with the pipe that it stands in; None where it runs under a condition of the loop's own."""
    unit = command
    for outer in layout.around(command):
        if outer.index == loop.index:
            return None if unit.background else unit
        if outer.kind in {"pipe", "timed"}:
            unit = outer
        elif unit.role in {"right", "body"} and outer.kind != "group":
            return None
    return None


_RETRY = Mend(_once, _set_once, lambda _: _END)


# --- interactive ------------------------------------------------------------------------------------------------------

_PTY = re.compile(r"--pty(?:=\S+)?")

_IDLING = frozenset({"sleep", "tail", "while", "until", "for"})

_TYPED = "write the commands that somebody would type there; for work at a terminal ask a person"


def _without_terminal(place: Place) -> Change | None:
    """The step without its terminal; a shell that nobody types into goes, where other work is left."""
    gone, puts = set[int](), list[tuple[int, int, str]]()
    for command in place.here:
        terminals = [word for word in command.words if _PTY.fullmatch(word.text)]
        if not terminals and script_mending.program(command) != "salloc":
            continue
        if not script_mending.does_work(command) and not command.redirected:
            gone.add(command.index)
            continue
        puts += [script_mending.without_word(place, word) for word in terminals]
    return Change(frozenset(gone), tuple(puts))


_TERMINAL = Mend(_without_terminal, lambda _: None, lambda _: _TYPED)


def _waiting(place: Place) -> Change | None:
    """`wait` in the place of what only waits."""
    idle = [one for one in place.here if one.kind in _IDLING or script_mending.program(one) in _IDLING]
    return Change(puts=((idle[0].start, idle[0].end, "wait"),)) if idle else None


_WAITING = Mend(_waiting, lambda _: None, lambda _: "write `wait` in its place")


# --- direct-submission ------------------------------------------------------------------------------------------------

_COMMANDS = frozenset({"sbatch", "scontrol", "scancel", "sacctmgr"})

_WORKFLOW = re.compile(r"submits jobs|workflow|launcher|setting")

_INSIDE = (
    'let the workflow run its work inside this job, with `--cores "$SLURM_CPUS_PER_TASK"` or its local executor in '
    "place of the option that submits, or submit one array with submit_job"
)

_STEP = "run the work as a step of this job, without the options or settings that ask Slurm for another one"

_NEXT = "take the submission out and keep the rest of the line; submit that script with submit_job after this one"


def _commands(place: Place) -> Change | None:
    """The commands that submit or change jobs; one that starts work itself is kept."""
    calls = [one for one in place.here if one.kind == "call" and one.words]
    gone = [one for one in calls if script_mending.program(one) in _COMMANDS]
    named = [one for one in calls if script_mending.program(one).startswith("$")]  # the command's name in a variable
    if not gone and len(named) == 1 and place.finding.what == "it runs sbatch":
        gone = named
    return Change(frozenset(one.index for one in gone)) if gone else None


def _advice(finding: Finding) -> str:
    if _WORKFLOW.search(finding.what):
        return _INSIDE
    return _STEP if "srun" in finding.what or "salloc" in finding.what else _NEXT


_SUBMISSION = Mend(_commands, lambda _: None, _advice)


# --- opaque-code ------------------------------------------------------------------------------------------------------

_READABLE = "write the commands that it would run in its place, or into a file of the project and run that file"

_OPAQUE = Mend(lambda _: None, lambda _: None, lambda _: _READABLE)


# --- The mending of each rule -----------------------------------------------------------------------------------------


MENDS = {
    "cuda-visible-devices": device_mending.VARIABLES,
    "device-index": device_mending.NUMBERS,
    "auto-retry": _RETRY,
    "interactive": _TERMINAL,
    "kept-nodes": _WAITING,
    "direct-submission": _SUBMISSION,
    "opaque-code": _OPAQUE,
}
"""By the id of its rule; `kept-nodes` is what `interactive` does about nodes that wait for their workers."""
