"""Whether a log by itself shows a run that went well: no error in it, or none that the program did not go on behind."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from slurm_agent_tools.diagnosis.excerpt import LogText, is_gap
from slurm_agent_tools.diagnosis.harmless_lines import helping, not_activated, passing, probing, prose
from slurm_agent_tools.diagnosis.log_figures import matched, own_lines, tells
from slurm_agent_tools.diagnosis.program_progress import shows_progress
from slurm_agent_tools.diagnosis.signature_match import Hit, level
from slurm_agent_tools.diagnosis.signatures import matching

# A code that a program ended with, which is not 0.
_CODE = re.compile(
    r"\b(?:exit(?:ed|ing)?(?: with)?(?: status| code)?|return(?:ed)?(?: status| code| value))"
    r"\W{0,4}(?!0\b)[1-9]\d{0,2}\b",
    re.IGNORECASE,
)

# Words of an end that are no error by themselves, and yet none of a run that went well.
_BROKEN_OFF = re.compile(
    _CODE.pattern
    + r"|\b(?:cancell?ed|interrupted|preempted|abort(?:ing)?(?! (?:criteri|thresh|if|when))|segfault|core dump"
    r"|(?-i:SIG[A-Z]{3,4}\d?)|timed out)\b"
    r"|\bsubmission failed\b|\babnormal[_ ]termination\b|\bprogram stopped\b(?! in +/)|^Terminated$"
    r"|^\s{0,4}(?:ERROR )?STOP [1-9]"
    r"|\bbegin stack ?trace\b|^\W{0,8}(?:stack ?trace|backtrace)\s?:|\bBacktrace for this error"
    r"|\b(?:received|caught|got)(?: the)? (?:(?:TERM|INT|KILL|HUP|USR\d)\w{0,6} signal|signal \d)",
    re.IGNORECASE,
)

_LAST = 12  # lines in which a run that went well says so

_STEPS, _MUCH = 3, 20  # lines of progress, lines of any kind

# Lines of any kind, behind which a word of an error says nothing of the end: in a line, at its head, with a code.
_SOME, _OVER, _FAR = 40, 100, 1000

_OFTEN = 10  # times that a message comes which a program writes all the time

_CHANGING = re.compile(r"\S*[\d/]\S*")  # what differs between such messages: numbers and paths

_PAST = 5  # lines of a program behind an environment that was not activated: it ran without

_NEAR = 5  # lines at the end, where a program that fails tells of it in whatever words

# What an interpreter or a launcher says behind an error, and the line above a job's report.
_HALTED = re.compile(r"(?i)\b(?:halted|abort(?:ed|ing)|terminat(?:ed|ing)|exit(?:ed|ing)|core dumped)\b")
_RULED = re.compile(r"\s*([#=*-])\1{9,}\s*$")

# A line of a good end, but for one word.
_NOT_SAID = re.compile(
    r"(?i)\b(?:download|load|fetch|upload|extract|pull)\w{0,3}\b|\b(?:not|never|no|without|before|until|when|unless)\b|n't\b"
)

# What is fetched or loaded before the work begins.
_FETCHED = re.compile(r"(?i)\b(?:download|load|fetch|upload|extract|pull)\w{0,3}\b")

_DONE = re.compile(
    r"\b(?:done|finished|completed?|succeeded|success(?:ful(?:ly)?)?|saved|written|converged|goodbye|elapsed"
    r"|terminated normally|normal termination)\b|\breal\s{1,8}\d+m[\d.]+s|^End\b|\bEnd of\b"
    r"|\b(?:total|wall|run|execution|training|computation|cpu)[ _-]?time\b|\bmax[_ ](?:epochs|steps)\b"
    r"|^wandb: Synced |\b100\s?%|\btook [\d.]+ ?[smh]|\b(?:saving|writing)\b.{0,80}\bto\b"
    r"|\bPROGRAM ENDED AT\b|\bended normally\b|^Finali[sz]ing parallel run$|^WallClock: |`Trainer\.fit` stopped"
    r"|^ General timing and accounting informations for this job|\bVoluntary context switches: +\d"
    r"|\bexits? (?:with )?(?:code|status):? 0\b|\[NbConvertApp\] Writing \d+ bytes to\b",
    re.IGNORECASE,
)

# What only a program says that came to its end; a script says `finished` and the time whatever happened before.
_SURE = re.compile(
    r"\bsuccess(?:ful(?:ly)?)?\b|\bnormal termination\b|\bterminated normally\b|\bexit (?:code|status):? 0\b"
    r"|\bis now finished\b|\[NbConvertApp\] Writing \d+ bytes to\b"
    r"|^(?:\W{0,8}\*{1,9})?[ *]{0,24}PROGRAM ENDED AT +\d|\bSUCCESS COMPLETE \w|\bExecution ended Normally\b"
    r"|^Finali[sz]ing parallel run$|^Finished mdrun on |^Total wall time: \d|^WallClock: +\d"
    r"|`Trainer\.fit` stopped: `max_"
    r"|^ General timing and accounting informations for this job|^wandb: Synced \d|\bPipeline completed successfully\b"
    r"|\bJOB DONE\b|\b100% tests passed\b|\b[1-9]\d*(?: of \d+)? steps \(100%\) done\b",
    re.IGNORECASE,
)

# What LSF writes of a job whose script ended with 0, in a report of some lines at the end.
_REPORTED = re.compile(r"Successfully completed\.\s*$")

_REPORT = 40

# How programs begin a message of theirs: with names, times and what stands in brackets, each read in one way alone.
_HEAD = (
    r"^\W{0,6}(?:(?>[\w./,+@-]{1,60}+[:|\]>][^\w\[]{0,3}+|\d[\d:.,/-]*+[^\w\[]{0,3}+(?:(?<=\W)|(?=\[))"
    r"|\[[^\]]{1,60}+\][^\w\[]{0,3}+)){0,12}\W{0,3}"
    r"(?i:fatal|errors?|exception|abort\w*|panic\w*|critical|failed|failure|cannot|could not|unable|traceback)\b"
    r"|\b(?:ERROR|FATAL|CRITICAL|PANIC|ABORT\w*|FAILED|FAILURE)\b"
)

_FIRST = re.compile(_HEAD, re.ASCII)

# What launchers and MPI write around an error, whatever it is.
_FRAME_OF_MPI = re.compile(
    r"\bEnd of error message\b|^srun: |^slurmstepd|^-{8}|\bsent help message\b|^(?:mpirun|mpiexec)"
)

# ... or mark it. Any other line may be text, data or a figure with such a word in it.
_LOUD = re.compile(
    _HEAD + r"|[A-Za-z](?:Error|Exception)\b"
    r"|(?i:\b(?:error|errors|exception|fatal|failed|failure)\s?[:!(])|\*\*\*"
    r"|(?i:\b(?:core dumped|segfault|terminate called|assertion|panicked|missing output file|forrtl)\b)"
    r"|^(?i:fehler|erreur|errore)\b|^E: (?=[A-Z])|^\s{0,4}\S{1,40} (?i:failed|aborted|killed)\b.{0,3}$",
    re.ASCII,
)


# Calls as Julia, Java, Python, gdb and Fortran list them behind an error.
_CALL = re.compile(
    r"\s{0,8}(?:\[\d{1,4}\] |@ \S|at [\w.$<>/]{1,200}\(|File \"[^\"]{1,300}\", line \d|#\d{1,3} {1,4}\S)"
    r"|in expression starting at "
)


@dataclass(frozen=True, slots=True)
class _Read:
    """The lines of one text, and where they tell of an error: loudly, in other words, in a shell's."""

    bodies: Sequence[str]
    clear: frozenset[int]
    loud: frozenset[int]
    faint: frozenset[int]
    shell: frozenset[int]

    def behind(self, places: Collection[int]) -> Sequence[str]:
        """The lines behind the last of these."""
        return self.bodies[max(places) + 1 :] if places else self.bodies


def quiet(texts: Sequence[LogText]) -> bool:
    """True where something was written and no line tells of an error, nor of an end that nobody wanted.

    A line that holds such a word without being a message counts at the end alone. False for a log of which parts were
    left out: errors of no known kind may be there.
    """
    if _cut(texts) or not any(line.text.strip() for text in texts for line in text.lines):
        return False
    return all(_calm(_read(text, [])) for text in texts)


def _calm(read: _Read) -> bool:
    """True where nothing says that the run ended in a failure: no clear cause, and no message near the end."""
    if read.clear:
        return False
    if any(sum(map(_says, read.behind(at))) < worth for worth, at in _by_worth(read).items()):
        return False
    late = {at for at in read.faint if at >= len(read.bodies) - _NEAR}
    return not late or _done(read.behind(late), _DONE)


def _says(body: str) -> bool:
    """Whether a line is more than blank or a call in the list of calls that an error brings along."""
    return bool(body.strip()) and _CALL.match(body) is None


def _by_worth(read: _Read) -> dict[int, set[int]]:
    """Where the messages stand, by how many lines must follow before they say nothing of the end."""
    found: dict[int, set[int]] = {}
    for at in read.loud:
        body = read.bodies[at][:400]
        worth = _FAR if _CODE.search(body) else _OVER if _FIRST.search(body) else _SOME
        found.setdefault(worth, set()).add(at)
    return found


def survived(texts: Sequence[LogText], found: Sequence[Hit]) -> bool:
    """True where a log ends as one of a run that went well does, and the program went on behind every error in it.

    `found`: what matched. Behind a clear cause only progress shows that it went on, behind other errors also what only
    a program says that came to its end, and behind what a shell says other lines. False where parts were left out.
    """
    if _cut(texts):
        return False
    reads = [_read(text, [hit for hit in found if hit.text == index]) for index, text in enumerate(texts)]
    if not any(_done(read.bodies, _DONE) for read in reads) and not _only_the_shell(reads):
        return False
    return all(_went_on(read, reads) for read in reads)


def own_message(texts: Sequence[LogText], hit: Hit) -> bool:
    """True where a message of the program's own, of no known kind, stands shortly before what a launcher says of it.

    In another text, where that stands is not known: there it is one of the last lines.
    """
    for index, text in enumerate(texts):
        end = hit.position if index == hit.text else len(text.lines)
        bodies = own_lines(text)[max(0, end - _OVER) : end]
        known = {at for at, _, _ in matching(bodies)}
        if any(at not in known and _speaks(body) for at, body in enumerate(bodies)):
            return True
    return False


def _speaks(body: str) -> bool:
    return tells(body) and _LOUD.search(body[:400]) is not None and _FRAME_OF_MPI.search(body) is None


def ended_well(text: LogText, position: int) -> bool:
    """True where the last lines, behind that one, say that the work was done."""
    return _done(own_lines(text)[position + 1 :], _DONE)


def last_word(text: LogText, position: int) -> bool:
    """True where nothing but errors and a report behind a ruled line follows that line."""
    for body in own_lines(text)[position + 1 :]:
        if _RULED.match(body):
            return True
        if body.strip() and not tells(body) and not _broken_off(body) and not _HALTED.search(body[:400]):
            return False
    return True


def ran_without(text: LogText, position: int) -> bool:
    """True where a program wrote some lines behind an environment that was not activated, none of them an error."""
    behind = own_lines(text)[position + 1 :]
    return _worked(behind) and not any(tells(body) or _broken_off(body) for body in behind)


def _cut(texts: Sequence[LogText]) -> bool:
    return any(is_gap(line) for text in texts for line in text.lines)


def _read(text: LogText, found: Sequence[Hit]) -> _Read:
    bodies = own_lines(text)
    shell = frozenset(hit.position for hit in found if hit.survived)
    hints = frozenset(hit.position for hit in found if hit.level == level("weak")) - shell
    clear = frozenset({hit.position for hit in found} | matched(text, bodies)) - shell - hints
    other = {at for at, body in enumerate(bodies) if tells(body)} - clear - shell
    loud = {at for at in other if _LOUD.search(bodies[at][:400])} | hints
    loud |= {at for at, body in enumerate(bodies) if _broken_off(body)} - clear - shell
    usual = _usual(bodies, loud - hints)
    return _Read(bodies, clear, frozenset(loud - usual), frozenset(other - loud), shell)


def _usual(bodies: Sequence[str], loud: Collection[int]) -> set[int]:
    """Messages that a program writes all the time, and goes on behind, in a log that ends as a good one does."""
    forms: dict[str, list[int]] = {}
    for at in sorted(loud):
        forms.setdefault(_CHANGING.sub("", bodies[at][:400]), []).append(at)
    often = [at for at in forms.values() if len(at) >= _OFTEN and at[-1] - at[0] >= _OVER]
    return {place for at in often for place in at} if often and _done(bodies, _DONE) else set()


def _went_on(read: _Read, reads: Sequence[_Read]) -> bool:
    around = [body for other in reads if other is not read for body in other.bodies]
    without = {at for at in read.shell if not_activated(read.bodies[at])}
    asked = {at for at in read.shell - without if not probing(read.bodies[at])}
    if without and not (_worked(read.behind(without)) or _busy([*read.behind(without), *around])):
        return False
    if read.clear and _steps(read.behind(read.clear)) < _STEPS:
        return False
    if read.loud and _steps(read.behind(read.loud)) < _STEPS and not _surely_done(read, reads):
        return _calm(_Read(read.bodies, frozenset(), read.loud, read.faint, frozenset())) and not asked
    if asked and not _busy([*read.behind(asked), *around]):
        return False
    return not read.faint or _calm(_Read(read.bodies, frozenset(), frozenset(), read.faint, frozenset()))


def _surely_done(read: _Read, reads: Sequence[_Read]) -> bool:
    """True where a program says behind its messages that it came to its end, or the batch system says it anywhere."""
    reported = any(_REPORTED.match(body) for other in reads for body in other.bodies[-_REPORT:])
    return reported or _done(read.behind(read.loud), _SURE)


def _only_the_shell(reads: Sequence[_Read]) -> bool:
    """True where no more than the shell told of an error, and much was written behind it."""
    met = [read for read in reads if read.shell]
    if not met or any(read.clear or read.loud or read.faint for read in reads):
        return False
    beside = [read for read in reads if not read.shell]
    if beside and sum(bool(body.strip()) for read in beside for body in read.bodies) >= _SOME:
        return True
    return all(sum(bool(body.strip()) for body in read.behind(read.shell)) >= _much_behind(read) for read in met)


def _much_behind(read: _Read) -> int:
    """How many lines must follow what the shell told: few behind what only looked around."""
    return _MUCH if all(probing(read.bodies[at]) for at in read.shell) else _OVER


def _done(bodies: Sequence[str], said: re.Pattern[str]) -> bool:
    """True where one of the last lines says that the work was done, and none behind it tells of an error."""
    if any(_REPORTED.match(body) for body in bodies[-_REPORT:]):
        return True
    for body in reversed(bodies[-_LAST:]):
        if tells(body) or _broken_off(body):
            return False
        if said.search(body) and not _NOT_SAID.search(body[:200]):
            return True
    return False


def _steps(bodies: Sequence[str]) -> int:
    """Lines of progress but that of what is only fetched or loaded."""
    return sum(shows_progress(body) and not _FETCHED.search(body[:200]) for body in bodies)


def _worked(bodies: Sequence[str]) -> bool:
    """True where a program wrote some lines; the help of the tool that sets up environments is none."""
    return sum(not helping(body) for body in bodies) >= _PAST


def _busy(bodies: Sequence[str]) -> bool:
    return len(bodies) >= _MUCH or _steps(bodies) >= _STEPS


def _broken_off(line: str) -> bool:
    return _BROKEN_OFF.search(line) is not None and not passing(line) and not prose(line)
