"""Which lines of the logs show a failure: signatures over lines, joined with the exceptions that they end."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from slurm_agent_tools.diagnosis.excerpt import LogText, named_job, split_rank
from slurm_agent_tools.diagnosis.harmless_lines import (
    grave,
    hinting,
    not_activated,
    not_entered,
    of_a_monitor,
    of_the_shell,
    probing,
)
from slurm_agent_tools.diagnosis.job_facts import among
from slurm_agent_tools.diagnosis.log_figures import tells
from slurm_agent_tools.diagnosis.program_progress import shows_progress
from slurm_agent_tools.diagnosis.python_tracebacks import LAUNCHERS, Raised, tracebacks
from slurm_agent_tools.diagnosis.signatures import Signature, Tier, by_id, matching
from slurm_agent_tools.models.shapes import EvidenceLine

PYTHON, MODULES = "python-exception", "module-load"

_TIERS: tuple[Tier, ...] = ("certain", "cause", "generic", "weak", "effect", "last")

_WHOLE_JOB = re.compile(r"\*\*\* JOB \d")  # of the lines with which Slurm ends jobs and steps

# srun's lines where a task ended by itself and srun ended the others: nobody cancelled the step, no memory was short.
_TASK_ENDED = re.compile(
    r"srun: error: \S{1,80}: tasks? [\d,-]{1,80}: (?!Terminated|Killed)"
    r"|srun: (?:First task exited|Terminating (?:job step|StepId))"
)

# Without a reason: somebody cancelled the step, or srun did when a task of it had failed.
_STEP_STOPPED = re.compile(r"\*\*\* STEP \S+ ON \S+ CANCELLED AT [\dT:.-]+ \*\*\*")

_SHOWN_BELOW = re.compile(r"\s{0,8}(?:Command (?:error|output)|Caused by|message|hint) ?:")

_OF_A_WORKFLOW = "/.snakemake/"  # its own folder: what a step that failed did not leave there

# What launchers of MPI say of every end that was not a good one, as srun does of an exit code.
_WRAPPER = re.compile(
    r"(?:mpirun|mpiexec|prterun)\S* (?:has exited|noticed|detected) "
    r"|\bBAD TERMINATION OF ONE OF|^\s*Primary job +terminated normally"
)

_EXCEPTION = re.compile(r"[A-Za-z][\w.]{0,120}(?:Error|Exception): \S", re.ASCII)  # with which Python ends

_AROUND = 20  # characters around a quotation

_IN_CONTAINER_LOG = "error: pyxis:"

_OF_PROGRAMS = frozenset({"segmentation-fault", "bus-error", "python-exception", "numeric", "script-error"})

_OF_VALUES = frozenset({"ValueError", "TypeError", "KeyError", "AttributeError", "IndexError", "AssertionError"})

_OF_OTHERS = frozenset({"cancelled", "host-out-of-memory"})


@dataclass(frozen=True, slots=True)
class Hit:
    """A signature that matched one line; `position` counts the lines of its text."""

    signature: Signature
    text: int
    position: int
    line: EvidenceLine
    tier: Tier
    what: str | None
    raised: Raised | None
    late: int  # lines that follow
    place: int  # lines of the file before it, also those that were not read
    progress: int  # lines of progress before it
    ahead: int  # lines of progress after it

    @property
    def sure(self) -> bool:
        """True for Slurm's own words, which decide like its records."""
        return self.tier == "certain"

    @property
    def level(self) -> int:
        """The place of its tier among all of them: the smaller the more it tells."""
        return level(self.tier)

    @property
    def survived(self) -> bool:
        """True for what the shell and the set-up of an environment say: a script goes on behind it."""
        body = split_rank(self.line.text)[1]
        if self.raised is not None or not (self.signature.recoverable or of_a_monitor(body)):
            return False
        return self.signature.id == MODULES or of_a_monitor(body) or of_the_shell(body)

    @property
    def wrapper(self) -> bool:
        """True for what a launcher says of every failure of a program: no cause beside the program's own message."""
        return self.level >= level("effect") and _WRAPPER.search(self.line.text) is not None

    @property
    def cut_off(self) -> bool:
        """True for the first line of a traceback whose end is not in the log."""
        return self.signature.id == PYTHON and self.raised is None and "Traceback (" in self.line.text

    @property
    def form(self) -> bool:
        """True for an exception of which only the form is known: Slurm's word that the job failed has to join it."""
        return self.signature.id == PYTHON and self.tier == "generic"

    @property
    def doubtful(self) -> bool:
        """True for what a log alone does not decide: a form, and a word of what a script or a program may survive."""
        ended = self.raised is not None or _EXCEPTION.match(split_rank(self.line.text)[1]) is not None
        survives = self.signature.recoverable and not ended
        return survives or self.survived or self.form or self.signature.doubtful

    @property
    def hint(self) -> bool:
        """True where an environment was not activated or a folder not entered: no cause beside what came later."""
        told = not_activated(self.line.text) or not_entered(self.line.text)
        return told and (self.raised is not None or self.survived)


@dataclass(frozen=True, slots=True)
class _Ground:
    """A text, which one it is, and how many lines of progress there are before each of its lines, and in all."""

    index: int
    text: LogText
    counted: Sequence[int]

    def hit(
        self, position: int, signature: Signature, tier: Tier, what: str | None = None, raised: Raised | None = None
    ) -> Hit:
        """With where its line is in the whole file, of which parts may not have been read."""
        text, place, progress = self.text, self.text.place(position), self.counted[position]
        late = text.place(len(text.lines) - 1) + 1 - place
        ahead = self.counted[-1] - progress
        line = text.lines[position]
        return Hit(signature, self.index, position, line, tier, what, raised, late, place, progress, ahead)


def level(tier: Tier) -> int:
    """The smaller the more a line of that tier tells."""
    return _TIERS.index(tier)


def hits(texts: Sequence[LogText], known: AbstractSet[str], jobs: AbstractSet[str] = frozenset()) -> list[Hit]:
    """Everything that matched and that Slurm's facts do not contradict, text by text, in order of the lines.

    Of several signatures on one line the one that tells most counts, then the first in their order. `jobs`: the numbers
    of the job, where they are known: a line of Slurm's that names another one is left out.
    """
    found = [hit for index, text in enumerate(texts) for hit in _in_text(index, text)]
    best: dict[tuple[int, int], Hit] = {}
    for hit in found:
        place = hit.text, hit.position
        if not _excluded(hit, known, jobs) and (place not in best or hit.level < best[place].level):
            best[place] = hit
    return list(best.values())


def _excluded(hit: Hit, known: AbstractSet[str], jobs: AbstractSet[str]) -> bool:
    other = named_job(hit.line.text) if jobs else None
    prefix = split_rank(hit.line.text)[0]
    if _IN_CONTAINER_LOG in prefix and hit.signature.id in _OF_PROGRAMS:
        return True  # a hook of the container's start, which wrote into its log
    if among(known, hit.signature.contradicts) or (other is not None and other not in jobs):
        return True
    if hit.sure and known and _WHOLE_JOB.search(hit.line.text) and not among(known, hit.signature.decides):
        return True  # Slurm's record of that end would say the same: an earlier run of the same job
    return hit.tier in {"weak", "last"} and among(known, hit.signature.doubts)


def _in_text(index: int, text: LogText) -> list[Hit]:
    ground = _Ground(index, text, _counted(text))
    read, quoted = tracebacks(text)
    raised = {item.position: item for item in read}
    matched = [hit for hit in _by_line(ground, raised, quoted) if not (_got_over(hit, raised) or _vague(hit, raised))]
    taken = {hit.position for hit in matched if hit.signature.id != PYTHON}
    found = [
        _raised(hit, raised.get(hit.position))
        for hit in matched
        if hit.signature.id != PYTHON or (not raised and hit.position not in taken)
    ]
    found += [
        ground.hit(item.position, by_id()[_kind(item)], _strength(item), raised=item)
        for item in raised.values()
        if not item.handled and item.position not in taken and item.name not in LAUNCHERS
    ]
    stopped = _stopped_first(text, found)
    if stopped is not None:
        found = [_behind_the_stop(hit, stopped) for hit in found]
    elif any(hit.tier == "last" and hit.signature.id in _OF_OTHERS for hit in found) and any(
        _TASK_ENDED.search(line.text) for line in text.lines
    ):
        found = [hit for hit in found if hit.tier != "last" or hit.signature.id not in _OF_OTHERS]
    if any(hit.signature.id == "cancelled" for hit in found):  # the launcher's word of a process that was ended
        found = [hit for hit in found if hit.signature.id == "cancelled" or hit.tier != "last" or not hit.wrapper]
    if any(hit.tier == "effect" for hit in found):  # of a traceback that was cut off nothing is known
        found = [replace(hit, tier="last") if hit.cut_off else hit for hit in found]
    return sorted(found, key=lambda hit: hit.position)


def _stopped_first(text: LogText, found: Sequence[Hit]) -> Hit | None:
    """Slurm's line that it cancelled a step, where all errors and all ends of tasks come behind it."""
    stop = next((hit for hit in found if hit.signature.id == "cancelled" and _STEP_STOPPED.search(hit.line.text)), None)
    if stop is None or any(hit.position < stop.position for hit in found):
        return None
    before = text.lines[: stop.position]
    return None if any(_TASK_ENDED.search(line.text) or tells(line.text) for line in before) else stop


def _behind_the_stop(hit: Hit, stop: Hit) -> Hit:
    """What a program says when it is ended is no cause of that."""
    if hit is stop:
        return replace(hit, tier="weak")
    return replace(hit, tier="last") if hit.level >= level("generic") else hit


def _got_over(hit: Hit, raised: dict[int, Raised]) -> bool:
    """True for what programs often catch, where another exception came while they did."""
    item = raised.get(hit.position)
    return hit.signature.recoverable and item is not None and item.handled


def _vague(hit: Hit, raised: dict[int, Raised]) -> bool:
    """True where a hint that something was not found is an exception of the program's own about a value."""
    item = raised.get(hit.position)
    return hit.tier == "weak" and hit.signature.id == "missing-file" and item is not None and item.name in _OF_VALUES


def _raised(hit: Hit, item: Raised | None) -> Hit:
    """With the exception that the line ends, which tells a missing command from a file, and a connection from one."""
    if item is not None and item.no_program and hit.signature.id == "missing-file":
        return replace(hit, raised=item, signature=by_id()["command-not-found"], what=item.message.rpartition(": ")[2])
    if item is not None and item.of_a_socket and hit.signature.id == "storage-fault" and hit.tier == "weak":
        return replace(hit, raised=item, signature=by_id()["network"])
    if item is not None and hit.signature.id == "missing-file" and _OF_A_WORKFLOW in item.message:
        return replace(hit, raised=item, tier="last")
    return hit if item is None else replace(hit, raised=item)


def _kind(item: Raised) -> str:
    return "numeric" if item.about_numbers and not item.effect else PYTHON


def _strength(item: Raised) -> Tier:
    if item.effect:
        return "effect"
    if item.caught:
        return "weak"
    return "cause" if item.about_numbers else "generic"


def _counted(text: LogText) -> list[int]:
    """How many lines of progress there are before each line, and in all."""
    counted = [0]
    for line in text.lines:
        counted.append(counted[-1] + shows_progress(line.text))
    return counted


def _by_line(ground: _Ground, raised: dict[int, Raised], quoted: AbstractSet[int]) -> Iterator[Hit]:
    """An exception's line counts with its message, also where that stands on the lines behind it.

    What a traceback quotes of the program's source is no message.
    """
    bodies = [split_rank(line.text)[1] for line in ground.text.lines]
    other = _dedented(bodies) | dict.fromkeys(quoted, "")
    other |= {position: f"{item.kind}: {item.message}" for position, item in raised.items() if item.apart}
    places = sorted(other)
    found = [(places[at], one, match) for at, one, match in matching([other[place] for place in places])]
    # All lines as they are: the same question is asked of them again for the errors to be shown, and answered once.
    found += [one for one in matching(bodies) if one[0] not in other]
    for position, signature, match in sorted(found, key=lambda one: one[0]):
        body = other.get(position, bodies[position])
        what = next((value for value in match.groupdict().values() if value), None)
        tier = signature.strength(match)
        tier = "weak" if tier == "cause" and signature.recoverable and probing(body) else tier
        doubtful = tier in {"cause", "generic"} and (hinting(body) or _quoted(body, match))
        tier = "weak" if doubtful else tier
        tier = "last" if tier != "certain" and grave(body) else tier
        yield ground.hit(position, signature, tier, what)


def _quoted(body: str, match: re.Match[str]) -> bool:
    """True where all that matched is quoted within a longer line."""
    before, behind = body[: match.start()], body[match.end() :]
    return before.count('"') % 2 == 1 and '"' in behind and len(before) + len(behind) >= _AROUND


def _dedented(bodies: Sequence[str]) -> dict[int, str]:
    """The lines that Nextflow indents, which a process wrote, without the indent."""
    found: dict[int, str] = {}
    within = False
    for position, body in enumerate(bodies):
        within = (within and body.startswith(" ")) or _SHOWN_BELOW.match(body) is not None
        if within and body.startswith(" "):
            found[position] = body.lstrip()
    return found
