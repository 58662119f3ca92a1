"""Which of the lines that show a failure is its root cause."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from slurm_agent_tools.diagnosis.excerpt import LogText, split_rank
from slurm_agent_tools.diagnosis.job_facts import among
from slurm_agent_tools.diagnosis.signature_match import MODULES, PYTHON, Hit, level
from slurm_agent_tools.diagnosis.signatures import by_id
from slurm_agent_tools.models.shapes import EvidenceLine

_BURST = 100  # lines: what lies closer together than this belongs to one breakdown

_CLOSE = 8  # lines between a line and the traceback of what came of it

_SET_UP = 3  # lines between what a start-up file ends in and what the set-up behind it does

_MOST, _EACH = 400, 8  # hits of a breakdown that are all judged; else so many of each kind from either end

_WENT_ON = 3  # lines of progress after which a program is taken to have got over what came before

_CAUSE, _GENERIC, _WEAK = level("cause"), level("generic"), level("weak")

# A script or an archive that a program, which was found, was given: no environment would have brought it.
_GIVEN = re.compile(r"can't open file|Unable to access jarfile")

_FIRST_RANK = re.compile(r"Root Cause \(first observed failure\)")

_RANK = re.compile(r"^\s*rank\s*: (\d+)")


@dataclass(frozen=True, slots=True)
class RootCause:
    """The chosen hit; `late` lines follow its breakdown; `rivals` are clear causes of other kinds beside it."""

    hit: Hit
    late: int
    went_on: bool
    rivals: tuple[Hit, ...] = ()


def root(found: Sequence[Hit], known: AbstractSet[str], texts: Sequence[LogText] = ()) -> RootCause | None:
    """The root cause: in the last breakdown that shows a cause, the first and most specific line.

    Ranks that died of another one's end (tier `effect`) count only where nothing else is there. A text that shows a
    more specific cause goes before the others; standard error is expected first.
    """
    rank = _first_rank(texts)
    choices = [_in_last_burst(burst, known, rank) for burst in _last_bursts(found)]
    return min(choices, key=lambda choice: (*_worth(choice.hit, known, rank)[:3], choice.hit.text), default=None)


def _last_bursts(found: Sequence[Hit]) -> Iterator[list[Hit]]:
    """Of each text the last breakdown that shows a cause, else the last one."""
    for index in sorted({hit.text for hit in found}):
        bursts = _bursts([hit for hit in found if hit.text == index])
        telling = [burst for burst in bursts if any(hit.level <= _WEAK and not hit.hint for hit in burst)]
        yield (telling or bursts)[-1]


def _bursts(found: Sequence[Hit]) -> list[list[Hit]]:
    bursts: list[list[Hit]] = []
    for hit in found:
        before = bursts[-1][-1] if bursts else None
        if before is not None and hit.place - before.place <= _BURST and hit.progress - before.progress < _WENT_ON:
            bursts[-1].append(hit)
        else:
            bursts.append([hit])
    return bursts


def _in_last_burst(burst: Sequence[Hit], known: AbstractSet[str], rank: str | None) -> RootCause:
    told = _fewer(burst)
    judged = [_weakened(hit, told) for hit in told]
    judged = [_explained(hit, judged) for hit in judged]
    chosen = min(judged, key=lambda hit: (*_worth(hit, known, rank), hit.position))
    rivals = tuple(hit for hit in judged if hit.signature.id != chosen.signature.id and _rivals(hit, chosen))
    return RootCause(chosen, burst[-1].late, burst[-1].ahead >= _WENT_ON, rivals)


def _fewer(burst: Sequence[Hit]) -> Sequence[Hit]:
    """The first and the last hits of each kind: each is held against all others, and a log may repeat its error."""
    if len(burst) <= _MOST:
        return burst
    kinds: dict[tuple[str, str, bool], list[int]] = {}
    for index, hit in enumerate(burst):
        kinds.setdefault((hit.signature.id, hit.tier, hit.raised is None), []).append(index)
    kept = sorted({index for found in kinds.values() for index in (*found[:_EACH], *found[-_EACH:])})
    return [burst[index] for index in kept]


def _rivals(hit: Hit, chosen: Hit) -> bool:
    """True for another clear cause, and for an exception that ended the program after a line that is none."""
    if hit.signature.id in chosen.signature.explains and hit.tier == "last":
        return False
    ended = hit.raised is not None and chosen.raised is None and hit.position > chosen.position
    wraps = hit.tier == "generic" and hit.raised is None and hit.position < chosen.position
    return hit.level <= _CAUSE or wraps or (ended and hit.tier == "generic" and chosen.tier == "cause")


def _weakened(hit: Hit, burst: Sequence[Hit]) -> Hit:
    """A hint only, where the program or the shell went on and something else that is no hint ended it later."""
    if hit.hint and any(_apart(hit, other) for other in burst):
        return replace(hit, tier="last")
    if hit.signature.id == MODULES and any(_apart(hit, other) and _GIVEN.search(other.line.text) for other in burst):
        return replace(hit, tier="last")
    if hit.signature.id == "missing-file" and hit.survived and any(_ended_before(other, hit) for other in burst):
        return replace(hit, tier="weak")  # the results of a program that failed, which a tool then looks for
    passed = (hit.signature.recoverable and hit.raised is None) or (hit.raised is not None and hit.raised.caught)
    if not passed or hit.level > _WEAK:
        return hit
    later = [other for other in burst if other.position > hit.position and _ends(other)]
    apart = [other for other in later if other.signature.id != hit.signature.id and not _follows(hit, other)]
    return replace(hit, tier="weak") if apart else hit


def _ended_before(other: Hit, hit: Hit) -> bool:
    """True for an earlier one of another kind that a program does not survive."""
    return other.position < hit.position and other.signature.id != hit.signature.id and _ends(other)


def _apart(hit: Hit, other: Hit) -> bool:
    """True for a later one of another kind, which is more than what is left behind."""
    return other.position > hit.position and other.signature.id != hit.signature.id and other.tier != "last"


def _explained(hit: Hit, burst: Sequence[Hit]) -> Hit:
    """Left behind, where an earlier line shows what this one comes from."""
    before = (other for other in burst if other.tier == "cause" and _stands_before(other, hit))
    return replace(hit, tier="last") if not hit.sure and any(_follows(other, hit) for other in before) else hit


def _stands_before(other: Hit, hit: Hit) -> bool:
    """True also for what sets up an environment a few lines behind a word of the shell: start-up files come first."""
    behind = other.position - hit.position
    return behind < 0 or (0 < behind <= _SET_UP and hit.survived and other.survived)


def _follows(hit: Hit, later: Hit) -> bool:
    """True where the later one is a usual consequence of the first; of an exception in general only if it is close.

    Of the exceptions only one of the syntax comes of an environment that was not set up: an older Python read the code.
    """
    if hit.signature.id == MODULES and later.signature.id == PYTHON:
        return "SyntaxError" in later.line.text
    if hit.signature.id == MODULES and _GIVEN.search(later.line.text):
        return False
    if later.signature.id not in hit.signature.explains:
        return False
    frames = len(later.raised.frames) if later.raised is not None else 0
    return later.signature.id != PYTHON or later.position - hit.position <= _CLOSE + 2 * frames


def _ends(hit: Hit) -> bool:
    """True for what a program does not survive."""
    if hit.raised is not None:
        return not hit.raised.caught and hit.tier in {"cause", "generic"}
    return hit.tier in {"certain", "cause"} and not hit.signature.recoverable


def _worth(hit: Hit, known: AbstractSet[str], rank: str | None) -> tuple[int, bool, bool]:
    """The smaller the better: tier, whether Slurm's facts support it, whether its rank is the one that failed first."""
    supported = among(known, hit.signature.supports)
    place = _GENERIC if hit.tier == "weak" and supported else hit.level
    number = re.findall(r"\d+", split_rank(hit.line.text)[0])
    return max(place, _CAUSE), not supported, rank is not None and bool(number) and number[-1] != rank


def _first_rank(texts: Sequence[LogText]) -> str | None:
    """The rank that torchrun's summary names as the first that failed."""
    for text in texts:
        for index, line in enumerate(text.lines):
            if _FIRST_RANK.search(line.text):
                found = (_RANK.match(split_rank(after.text)[1]) for after in text.lines[index : index + 8])
                return next((match[1] for match in found if match is not None), None)
    return None


def set_up_before(hit: Hit, found: Sequence[Hit]) -> Hit | None:
    """What says that an environment was not activated, before something that is missing may be missing for that."""
    if hit.signature.id not in by_id()[MODULES].explains:
        return None
    return next((one for one in found if one.hint and one.text == hit.text and one.position < hit.position), None)


# --- Which task of a step ended first, as srun's own lines tell -------------------------------------------------------


_ENDED = re.compile(r"srun: error: \S{1,80}: tasks? (?P<tasks>\d[\d,-]{0,200}): (?P<how>\S.{0,80})$")

_CODE = re.compile(r"Exited with exit code (\d+)")

_TOLD = re.compile(r"Terminated|Killed|Exited with exit code (?:143|137)\b")  # what srun's own signal leaves

_RANKS_MOST = 2**16  # tasks of one line; more is no list of srun's


@dataclass(frozen=True, slots=True)
class FirstRank:
    """The line that says it, and a sentence."""

    line: EvidenceLine
    text: str


def first_rank(texts: Sequence[LogText]) -> FirstRank | None:
    """The task that ended by itself while srun ended the others; None where its lines do not tell that."""
    for text in texts:
        found = [(match, line) for line in text.lines if (match := _ENDED.search(line.text)) is not None]
        own = [(match, line) for match, line in found if not _TOLD.match(match["how"])]
        ended = {task for match, _ in found if _TOLD.match(match["how"]) for task in _tasks(match["tasks"])}
        began = _tasks(own[0][0]["tasks"]) if own else set()
        if len(began) == 1 and ended - began:
            match, line = own[0]
            total = len({task for found_match, _ in found for task in _tasks(found_match["tasks"])})
            return FirstRank(
                line, f"Task {min(began)} of {total} ended first ({_how(match['how'])}); srun ended the others."
            )
    return None


def _how(text: str) -> str:
    code = _CODE.match(text)
    return f"exit code {code[1]}" if code is not None else text


def _tasks(text: str) -> set[int]:
    """The numbers of `0-2,4`."""
    found: set[int] = set()
    for part in text.strip(",-").split(","):
        low, _, high = part.partition("-")
        if low.isdigit() and (not high or high.isdigit()) and int(high or low) - int(low) < _RANKS_MOST:
            found.update(range(int(low), int(high or low) + 1))
    return found
