"""Which line of the logs is the root cause: signatures over lines, and the choice between what matched."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from slurm_agent_tools.diagnosis.excerpt import LogText, split_rank
from slurm_agent_tools.diagnosis.facts import among
from slurm_agent_tools.diagnosis.noise import probing
from slurm_agent_tools.diagnosis.python import LAUNCHERS, Raised, exceptions
from slurm_agent_tools.diagnosis.signatures import Signature, Tier, by_id, matching
from slurm_agent_tools.replies import EvidenceLine

_PYTHON = "python-exception"
_BURST = 100  # lines: what lies closer together than this belongs to one breakdown
_CLOSE = 8  # lines
_WENT_ON = 3  # lines of progress after which a program is taken to have got over what came before
_TIERS: tuple[Tier, ...] = ("certain", "cause", "generic", "weak", "effect", "last")
_CAUSE, _WEAK = _TIERS.index("cause"), _TIERS.index("weak")
_PROGRESS = re.compile(r"(?i)\b(?:epoch|step|iter|iteration|batch|cycle|timestep)\b\W{0,3}\d|\d%\||\b\d+/\d+ \[")
_FIRST_RANK = re.compile(r"Root Cause \(first observed failure\)")
_RANK = re.compile(r"^\s*rank\s*: (\d+)")


@dataclass(frozen=True, slots=True)
class Hit:
    """A signature that matched one line; `position` counts the lines of its text."""

    signature: Signature
    text: int
    position: int
    line: EvidenceLine
    tier: Tier
    what: str | None = None
    raised: Raised | None = None
    late: int = 0  # lines that follow
    place: int = 0  # lines of the file before it, also those that were not read
    progress: int = 0  # lines of progress before it
    ahead: int = 0  # lines of progress after it

    @property
    def sure(self) -> bool:
        """True for Slurm's own words, which decide like its records."""
        return self.tier == "certain"


@dataclass(frozen=True, slots=True)
class Root:
    """The chosen hit; `late` lines follow its breakdown; `rivals` are clear causes of other kinds beside it."""

    hit: Hit
    late: int
    went_on: bool
    rivals: tuple[Hit, ...] = ()


def hits(texts: Sequence[LogText], known: AbstractSet[str]) -> list[Hit]:
    """Everything that matched and that Slurm's facts do not contradict, text by text, in order of the lines.

    Of several signatures on one line the one that tells most counts, then the first in their order.
    """
    found = [hit for index, text in enumerate(texts) for hit in _in_text(index, text)]
    best: dict[tuple[int, int], Hit] = {}
    for hit in found:
        place = hit.text, hit.position
        if not _excluded(hit, known) and (place not in best or _TIERS.index(hit.tier) < _TIERS.index(best[place].tier)):
            best[place] = hit
    return list(best.values())


def _excluded(hit: Hit, known: AbstractSet[str]) -> bool:
    if among(known, hit.signature.contradicts):
        return True
    return hit.tier == "weak" and among(known, hit.signature.doubts)


def _in_text(index: int, text: LogText) -> list[Hit]:
    raised = {item.position: item for item in exceptions(text)}
    matched = [hit for hit in _by_line(index, text) if not _got_over(hit, raised)]
    taken = {hit.position for hit in matched if hit.signature.id != _PYTHON}
    found = [
        _raised(hit, raised.get(hit.position))
        for hit in matched
        if hit.signature.id != _PYTHON or (not raised and hit.position not in taken)
    ]
    found += [
        Hit(by_id()[_kind(item)], index, item.position, item.line, _strength(item), raised=item)
        for item in raised.values()
        if not item.handled and item.position not in taken and item.name not in LAUNCHERS
    ]
    counted = _counted(text)
    return [_placed(hit, text, counted) for hit in sorted(found, key=lambda hit: hit.position)]


def _got_over(hit: Hit, raised: dict[int, Raised]) -> bool:
    """True for what programs often catch, where another exception came while they did."""
    item = raised.get(hit.position)
    return hit.signature.recoverable and item is not None and item.handled


def _raised(hit: Hit, item: Raised | None) -> Hit:
    """With the exception that the line ends; a file that is missing is a command where it was to be started."""
    if item is not None and item.no_program and hit.signature.id == "missing-file":
        return replace(hit, raised=item, signature=by_id()["command-not-found"], what=item.message.rpartition(": ")[2])
    return replace(hit, raised=item)


def _kind(item: Raised) -> str:
    return "numeric" if item.about_numbers and not item.effect else _PYTHON


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
        counted.append(counted[-1] + bool(_PROGRESS.search(line.text[:300])))
    return counted


def _placed(hit: Hit, text: LogText, counted: Sequence[int]) -> Hit:
    """With where its line is in the whole file, of which parts may not have been read."""
    place = text.place(hit.position)
    late = text.place(len(text.lines) - 1) + 1 - place
    progress = counted[hit.position]
    return replace(hit, place=place, late=late, progress=progress, ahead=counted[-1] - progress)


def _by_line(index: int, text: LogText) -> Iterator[Hit]:
    bodies = [split_rank(line.text)[1] for line in text.lines]
    for position, signature, match in matching(bodies):
        what = next((value for value in match.groupdict().values() if value), None)
        tier = signature.strength(match)
        tier = "weak" if tier == "cause" and signature.recoverable and probing(bodies[position]) else tier
        yield Hit(signature, index, position, text.lines[position], tier, what)


def root(found: Sequence[Hit], known: AbstractSet[str], texts: Sequence[LogText] = ()) -> Root | None:
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
        telling = [burst for burst in bursts if any(_TIERS.index(hit.tier) <= _WEAK for hit in burst)]
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


def _in_last_burst(burst: Sequence[Hit], known: AbstractSet[str], rank: str | None) -> Root:
    judged = [_weakened(hit, burst) for hit in burst]
    judged = [_explained(hit, judged) for hit in judged]
    chosen = min(judged, key=lambda hit: (*_worth(hit, known, rank), hit.position))
    rivals = tuple(hit for hit in judged if hit.signature.id != chosen.signature.id and _rivals(hit, chosen))
    return Root(chosen, burst[-1].late, burst[-1].ahead >= _WENT_ON, rivals)


def _rivals(hit: Hit, chosen: Hit) -> bool:
    """True for another clear cause, and for an exception that ended the program after a line that is none."""
    if hit.signature.id in chosen.signature.explains and hit.tier == "last":
        return False
    ended = hit.raised is not None and chosen.raised is None and hit.position > chosen.position
    return _TIERS.index(hit.tier) <= _CAUSE or (ended and hit.tier == "generic" and chosen.tier == "cause")


def _weakened(hit: Hit, burst: Sequence[Hit]) -> Hit:
    """A hint only, where the program or the shell went on and something else that is no hint ended it later."""
    passed = (hit.signature.recoverable and hit.raised is None) or (hit.raised is not None and hit.raised.caught)
    if not passed or _TIERS.index(hit.tier) > _WEAK:
        return hit
    later = [other for other in burst if other.position > hit.position and _ends(other)]
    apart = [other for other in later if other.signature.id != hit.signature.id and not _follows(hit, other)]
    return replace(hit, tier="weak") if apart else hit


def _explained(hit: Hit, burst: Sequence[Hit]) -> Hit:
    """Left behind, where an earlier line shows what this one comes from."""
    before = (other for other in burst if other.position < hit.position and other.tier == "cause")
    return replace(hit, tier="last") if not hit.sure and any(_follows(other, hit) for other in before) else hit


def _follows(hit: Hit, later: Hit) -> bool:
    """True where the later one is a usual consequence of the first; of an exception in general only if it is close."""
    if later.signature.id not in hit.signature.explains:
        return False
    frames = len(later.raised.frames) if later.raised is not None else 0
    return later.signature.id != _PYTHON or later.position - hit.position <= _CLOSE + 2 * frames


def _ends(hit: Hit) -> bool:
    """True for what a program does not survive."""
    if hit.raised is not None:
        return not hit.raised.caught and hit.tier in {"cause", "generic"}
    return hit.tier in {"certain", "cause"} and not hit.signature.recoverable


def _worth(hit: Hit, known: AbstractSet[str], rank: str | None) -> tuple[int, bool, bool]:
    """The smaller the better: tier, whether Slurm's facts support it, whether its rank is the one that failed first."""
    supported = among(known, hit.signature.supports)
    level = _TIERS.index("generic") if hit.tier == "weak" and supported else _TIERS.index(hit.tier)
    number = re.findall(r"\d+", split_rank(hit.line.text)[0])
    return max(level, _CAUSE), not supported, rank is not None and bool(number) and number[-1] != rank


def _first_rank(texts: Sequence[LogText]) -> str | None:
    """The rank that torchrun's summary names as the first that failed."""
    for text in texts:
        for index, line in enumerate(text.lines):
            if _FIRST_RANK.search(line.text):
                found = (_RANK.match(split_rank(after.text)[1]) for after in text.lines[index : index + 8])
                return next((match[1] for match in found if match is not None), None)
    return None
