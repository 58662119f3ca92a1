"""Which line of the logs is the root cause: signatures over lines, and the choice between what matched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from slurm_agent_tools.diagnosis.excerpt import LogText, split_rank
from slurm_agent_tools.diagnosis.facts import among
from slurm_agent_tools.diagnosis.python import EFFECTS, Raised, exceptions
from slurm_agent_tools.diagnosis.signatures import Signature, by_id, matching
from slurm_agent_tools.replies import EvidenceLine

_PYTHON = "python-exception"
_BURST = 100  # lines: what lies closer together than this belongs to one breakdown
_TIERS = ("cause", "generic", "effect")


@dataclass(frozen=True, slots=True)
class Hit:
    """A signature that matched one line; `position` counts the lines of its text."""

    signature: Signature
    text: int
    position: int
    line: EvidenceLine
    what: str | None = None
    sure: bool = False
    raised: Raised | None = None
    late: int = 0  # lines that follow


def hits(texts: Sequence[LogText], known: AbstractSet[str]) -> list[Hit]:
    """Everything that matched and that Slurm's facts do not contradict, text by text, in order of the lines."""
    found = [hit for index, text in enumerate(texts) for hit in _in_text(index, text)]
    return [hit for hit in found if not among(known, hit.signature.contradicts)]


def _in_text(index: int, text: LogText) -> list[Hit]:
    raised = exceptions(text)
    handled = {item.position for item in raised if item.handled}
    found = [
        hit
        for hit in _by_line(index, text)
        if not (hit.signature.recoverable and hit.position in handled) and not (hit.signature.id == _PYTHON and raised)
    ]
    taken = {hit.position for hit in found}
    size = len(text.lines)
    found += [
        Hit(by_id()[_PYTHON], index, item.position, item.line, raised=item, late=size - item.position)
        for item in raised
        if not item.handled and item.position not in taken and item.name not in EFFECTS
    ]
    return sorted(found, key=lambda hit: hit.position)


def _by_line(index: int, text: LogText) -> Iterator[Hit]:
    bodies = [split_rank(line.text)[1] for line in text.lines]
    for position, signature, match in matching(bodies):
        what = next((value for value in match.groupdict().values() if value), None)
        sure, late = signature.sure(bodies[position]), len(bodies) - position
        yield Hit(signature, index, position, text.lines[position], what, sure, late=late)


def root(found: Sequence[Hit], known: AbstractSet[str]) -> Hit | None:
    """The root cause: in the last breakdown that shows a cause, the first and most specific line.

    Ranks that died of another one's end (tier `effect`) count only where nothing else is there. A text that shows a
    more specific cause goes before the others; standard error is expected first.
    """
    best = [_in_last_burst([hit for hit in found if hit.text == index], known) for index in {h.text for h in found}]
    chosen = [hit for hit in best if hit is not None]
    return min(chosen, key=lambda hit: (_rank(hit, known), hit.text), default=None)


def _in_last_burst(found: Sequence[Hit], known: AbstractSet[str]) -> Hit | None:
    bursts: list[list[Hit]] = []
    for hit in found:
        if bursts and hit.position - bursts[-1][-1].position <= _BURST:
            bursts[-1].append(hit)
        else:
            bursts.append([hit])
    telling = [burst for burst in bursts if any(hit.signature.tier != "effect" for hit in burst)] or bursts
    return min(telling[-1], key=lambda hit: (_rank(hit, known), hit.position)) if telling else None


def _rank(hit: Hit, known: AbstractSet[str]) -> tuple[int, bool]:
    return _TIERS.index(hit.signature.tier), not among(known, hit.signature.supports)
