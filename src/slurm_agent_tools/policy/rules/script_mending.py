"""The one place where an edit of a script's lines is made: what is taken out is the violation and nothing else.

A rule says which commands go, or which characters change. An edit that would take away another command, that
would leave a branch without its condition, or after which nothing is left that does work, is not offered: the remedy
says in words what to change.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.models.request import Evidence, Finding, ScriptLayout, ScriptReading, ShellCommand, ShellWord
from slurm_agent_tools.policy.rules.rule import both, edit, in_words, note
from slurm_agent_tools.policy.rules.script_places import LEAVES, ScriptPlaces
from slurm_agent_tools.programs.wrapped_command import SHELLS, name_of, starts

_STEPS = 50  # that are told

_MOST_LOOKS = 2_000_000  # commands that go, times those around which each is looked at: what is more is told in words

_MORE = "there is more of the same; check again after these."

_AS_IT_IS = "Ask a person to agree to the script as it is: no change of a line makes the whole of it readable."

_NO_WORK = frozenset(
    """
    echo printf cd pushd popd module ml source . export set unset local declare typeset readonly mkdir date hostname
    sleep wait nvidia-smi true false : exit return break continue conda mamba micromamba ulimit umask pwd ls env
    printenv which type command trap test [ shift read squeue sacct sinfo sstat scontrol scancel sbatch salloc sacctmgr
    shopt hash alias whoami id uname lscpu free df du cat head tail let
    """.split()  # noqa: SIM905 - words of the shell, one list
)


@dataclass(frozen=True, slots=True)
class Change:
    """What a rule changes: commands that go, by their index, and characters that are put for others."""

    gone: frozenset[int] = frozenset()
    puts: tuple[tuple[int, int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """A finding in the script itself, and the commands that begin in its line.

    `functions` are the names of the script's own, `kept` what a mend made of the script once for all its findings.
    """

    reading: ScriptReading
    layout: ScriptLayout
    finding: Finding
    here: Sequence[ShellCommand]
    functions: frozenset[str]
    kept: dict[str, str]

    def source(self, command: ShellCommand) -> str:
        """The command as it stands."""
        return self.reading.text[command.start : command.end]


@dataclass(frozen=True, slots=True)
class Mend:
    """How a rule corrects what was found. None: no edit of the lines does it.

    `commands` in the script itself; `line` one line of another text, in which the place of commands is not known;
    `advice` what to do where there is no edit, from what was found; `more` what the text that was put in place of the
    old one needs elsewhere in the script, as one step more.
    """

    commands: Callable[[Place], Change | None]
    line: Callable[[str], str | None]
    advice: Callable[[Finding], str]
    more: Callable[[ScriptReading, Sequence[str]], str] = lambda _, __: ""


def steps(reading: ScriptReading, found: Sequence[Finding], mend: Mend) -> str:
    """What to change for these findings, one step for each place; of very many the first."""
    edits = _Edits(reading, mend)
    for finding in found:
        edits.look(finding)
    return "\n".join(edits.told())


# --- what a rule may ask about a script --------------------------------------------------------------------------


def program(command: ShellCommand) -> str:
    """The name of the program that a simple command runs, without what is around it (`timeout 5`, `srun`)."""
    texts = [word.text for word in command.words]
    return name_of(texts[_begin(texts)]) if texts else ""


def tail(command: ShellCommand) -> list[str]:
    """The words of that program, itself the first."""
    texts = [word.text for word in command.words]
    return texts[_begin(texts) :] if texts else []


def without_words(place: Place, first: ShellWord, last: ShellWord) -> tuple[int, int, str]:
    """The characters to take away with these words: their own and the blanks before them, not the end of a line."""
    start, text = first.start, place.reading.text
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    if start == 0 or text[start - 1] in "\n(`":  # the first word of its line
        return (first.start, _past_blanks(text, last.end), "")
    return (start, last.end, "")


def without_word(place: Place, word: ShellWord) -> tuple[int, int, str]:
    """The same for one word."""
    return without_words(place, word, word)


def is_own(place: Place, command: ShellCommand) -> bool:
    """Whether a command runs a function of the script."""
    return bool(command.words) and command.words[0].text in place.functions


def _past_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t":
        at += 1
    return at


def _begin(texts: Sequence[str]) -> int:
    return list(starts(texts))[-1]


def does_work(command: ShellCommand) -> bool:
    """Whether a command is one for whose sake there is a job: none that only prints, sets up or asks."""
    words = tail(command)
    bare = bool(words) and name_of(words[0]) in SHELLS and all(word.startswith("-") for word in words[1:])
    return command.kind == "call" and bool(words) and name_of(words[0]) not in _NO_WORK and not bare


# --- the edits of one rule ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Edits:
    reading: ScriptReading
    mend: Mend
    lines: list[str] = field(init=False)
    places: ScriptPlaces = field(init=False)
    kept: dict[str, str] = field(default_factory=dict)
    gone: dict[int, Finding] = field(default_factory=dict)
    puts: dict[tuple[int, int, str], Finding] = field(default_factory=dict)
    single: dict[tuple[str, int], tuple[Evidence, str]] = field(default_factory=dict)
    words: dict[tuple[str, int], Finding] = field(default_factory=dict)
    whole: bool = False

    def __post_init__(self) -> None:
        self.lines = self.reading.text.split("\n")
        self.places = ScriptPlaces(self.lines, self.reading.layout)

    def look(self, finding: Finding) -> None:
        place = finding.evidence
        own = place.file == self.reading.path
        if own and place.line <= 1:  # the script as a whole
            self.whole = True
            return
        if finding.level == "warn":  # nothing has to go
            self.words.setdefault((place.file, place.line), finding)
            return
        change = self._change(finding) if own else None
        if change is not None:
            self.gone |= dict.fromkeys(change.gone, finding)
            self.puts |= dict.fromkeys(change.puts, finding)
            return
        text = self.lines[place.line - 1] if own and place.line <= len(self.lines) else place.text
        known = (
            own and self.reading.layout is not None and not text.startswith("#") and not self.places.quoted(place.line)
        )
        new = None if known or text.rstrip().endswith("\\") else self.mend.line(text)
        if new is not None and new != text:
            self.single[place.file, place.line] = (Evidence(place.file, place.line, text), new)
        else:
            self.words.setdefault((place.file, place.line), finding)

    def _change(self, finding: Finding) -> Change | None:
        layout = self.reading.layout
        if layout is None:
            return None
        here = self.places.here(finding.evidence.line)
        place = Place(self.reading, layout, finding, here, self.places.functions, self.kept)
        change = self.mend.commands(place) if place.here else None
        if change is not None and (len(self.gone) + len(change.gone)) * len(layout.commands) > _MOST_LOOKS:
            return None
        return change if change is not None and (change.gone or change.puts) else None

    def told(self) -> list[str]:
        """The steps: of the script's own commands first, then of other lines, then words."""
        told = dict.fromkeys([_AS_IT_IS] if self.whole else [])
        own = list(self._own())
        more = self.mend.more(self.reading, [new for _, _, new in self.puts]) if own else ""
        together = bool(more) and not more.startswith("Note:") and len(own) < _STEPS
        told |= dict.fromkeys([both(*own, more)] if together else [*own, *([more] if more else [])])
        for place, new in self.single.values():
            text = new if place.file == self.reading.path else new.strip()
            told[edit([place], [text] if text else [], script=self.reading.path)] = None
        for finding in self.words.values():
            advice = self.mend.advice(finding)
            told[in_words([finding.evidence], advice, script=self.reading.path)] = None
        steps = list(told)
        return [*steps[:_STEPS], note(_MORE)] if len(steps) > _STEPS else steps

    def _own(self) -> Iterator[str]:
        layout = self.reading.layout
        if layout is None or not (self.gone or self.puts):
            return
        cuts = self._cuts(layout)
        if self.gone and not self._work_left(layout):
            for finding in [*self.gone.values(), *self.puts.values()]:
                self.words.setdefault((finding.evidence.file, finding.evidence.line), finding)
            return
        yield from self._as_steps(sorted({*cuts, *self.puts}))

    def _cuts(self, layout: ScriptLayout) -> list[tuple[int, int, str]]:
        """The characters that commands leave which go; what cannot go becomes words."""
        cuts = list[tuple[int, int, str]]()
        for index in list(self.gone):
            cut = _cut(layout, layout.commands[index], self.gone)
            if cut is None:
                finding = self.gone.pop(index)
                self.words.setdefault((finding.evidence.file, finding.evidence.line), finding)
            else:
                cuts += [self._with_blanks(*one) for one in cut]
        return cuts

    def _with_blanks(self, start: int, end: int, new: str) -> tuple[int, int, str]:
        """A cut with the blanks behind it, where there are some, or nothing, before it."""
        text = self.reading.text
        before = start == 0 or text[start - 1] in " \t\n(`"
        return (start, end if new or not before else _past_blanks(text, end), new)

    def _work_left(self, layout: ScriptLayout) -> bool:
        return any(
            does_work(command)
            and command.index not in self.gone
            and not any(outer.index in self.gone for outer in layout.around(command))
            for command in layout.commands
        )

    def _as_steps(self, changes: Sequence[tuple[int, int, str]]) -> Iterator[str]:
        """One step for each run of lines that changes touch; of two changes of the same characters the first."""
        begins = self.places.begins
        groups = list[tuple[int, int, list[tuple[int, int, str]]]]()
        number = 0
        for start, end, new in changes:
            while begins[number + 1] <= start:
                number += 1
            last = number
            while begins[last + 1] <= end - 1:
                last += 1
            if groups and groups[-1][2][-1][1] > start:
                continue
            if groups and groups[-1][1] >= number:
                first, before, inner = groups.pop()
                groups.append((first, max(before, last), [*inner, (start, end, new)]))
            else:
                groups.append((number, last, [(start, end, new)]))
        for first, last, inner in groups:
            yield self._step(first, last, inner, begins)

    def _step(self, first: int, last: int, changes: Iterable[tuple[int, int, str]], begins: Sequence[int]) -> str:
        text, at = "", begins[first]
        for start, end, new in changes:
            text += self.reading.text[at:start] + new
            at = end
        text += self.reading.text[at : begins[last + 1] - 1]
        if not text.strip() and first > 0 and self.lines[first - 1].endswith("\\"):  # the end of a longer command
            first -= 1
            text = self.lines[first].removesuffix("\\")
        new_lines = [line.rstrip() for line in text.split("\n") if line.strip() != "\\"]
        kept = [line for line in new_lines if line.strip() and not line.lstrip().startswith("#")]
        old = [Evidence(self.reading.path, n + 1, self.lines[n]) for n in range(first, last + 1)]
        blank = any(not line.strip() for line in self.lines[first : last + 1])
        lines = [line for line in new_lines if line.strip() or blank] if kept else []
        return edit(old, lines, script=self.reading.path)


# --- how one command is taken out --------------------------------------------------------------------------------


def _cut(layout: ScriptLayout, command: ShellCommand, gone: Container[int]) -> list[tuple[int, int, str]] | None:
    """The characters that change when this command goes, with those around it that nothing is left of."""
    top = _outermost(layout, command, gone)
    if top is None or not all(_goes(layout, inner, gone) for inner in layout.within(top) if inner.kind in LEAVES):
        return None
    if top.role == "condition" or (top.negated and top.role != "body"):
        return None
    documents = [*top.heredocs, *(span for inner in layout.within(top) for span in inner.heredocs)]
    rest = [(start, end, "") for start, end in documents]
    outer = layout.parent(top)
    kind = outer.kind if outer is not None else ""
    if top.role == "body":
        return [*_from_list(layout, top, gone), *rest]
    if outer is not None and top.role == "right" and kind in {"and", "or", "pipe"}:
        left = layout.children(outer)[0]
        return None if left.heredocs or _document_inside(layout, left) else [(left.end, top.end, ""), *rest]
    if outer is not None and top.role == "left" and kind == "and":
        return [(top.start, layout.children(outer)[-1].start, "")] if not documents else None
    return [(top.start, top.end, ":"), *rest] if top.role == "inside" or kind in {"or", "pipe"} else None


def _document_inside(layout: ScriptLayout, command: ShellCommand) -> bool:
    return any(inner.heredocs for inner in layout.within(command))


def _goes(layout: ScriptLayout, command: ShellCommand, gone: Container[int]) -> bool:
    return command.index in gone or any(outer.index in gone for outer in layout.around(command))


def _outermost(layout: ScriptLayout, command: ShellCommand, gone: Container[int]) -> ShellCommand | None:
    """The largest command around this one of which nothing else is left; None where it cannot go alone."""
    top = command
    for outer in layout.around(command):
        others = [inner for inner in layout.children(outer) if inner.index != top.index]
        alone = all(_nothing_left(layout, inner, gone) for inner in others)
        if outer.kind in {"while", "until"} and top.role == "body" and _runs_on(layout, outer, top, gone):
            return None
        if not alone or outer.kind not in {"and", "or", "pipe", "group", "subshell", "for", "timed"}:
            break
        holder = layout.parent(outer)
        if holder is not None and holder.kind == "function":
            break
        if outer.kind == "for" and not (top.role == "body" and all(inner.role == "body" for inner in others)):
            break
        top = outer
    return top


def _runs_on(layout: ScriptLayout, loop: ShellCommand, top: ShellCommand, gone: Container[int]) -> bool:
    """Whether a loop has nothing in it without this command, and no input that ends."""
    inner = layout.children(loop)
    body = [one for one in inner if one.role == "body" and one.index != top.index]
    reads = any(one.role == "condition" and program(one) == "read" for one in inner)
    return not reads and all(_nothing_left(layout, one, gone) for one in body)


def _nothing_left(layout: ScriptLayout, command: ShellCommand, gone: Container[int]) -> bool:
    if command.index in gone:
        return True
    inner = layout.children(command)
    return command.kind not in LEAVES and bool(inner) and all(_nothing_left(layout, one, gone) for one in inner)


def _from_list(layout: ScriptLayout, top: ShellCommand, gone: Container[int]) -> list[tuple[int, int, str]]:
    """Out of a list of commands: with its sign where others of the list stay, else `:` holds its place."""
    others = [one for one in layout.commands if one.parent == top.parent and one.branch == top.branch]
    stays = top.parent < 0 or any(not _nothing_left(layout, one, gone) for one in others if one.index != top.index)
    if stays:
        return [(top.start, top.stop, "")]
    if top.index != others[0].index:
        return [(top.start, top.stop, "")]
    return [(top.start, top.stop if top.background else top.end, ":")]
