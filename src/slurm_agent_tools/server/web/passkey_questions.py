"""A yes by passkey, as a page asks for it: a challenge for the very text that was shown, answered once and soon.

The challenge is taken away before its answer is looked at, so that no answer is looked at twice. Each yes and each
refusal is a line in the decision log.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Any, TypeVar

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models.allowed_passkeys import AllowedPasskey
from slurm_agent_tools.models.shapes import Channel
from slurm_agent_tools.services import approval
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.store.submissions import Approval
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport import passkeys
from slurm_agent_tools.transport.passkeys import PasskeyAnswer, PasskeyRefused

LASTS = 120.0
"""Seconds in which a challenge can be answered."""

_MOST, _OF_ONE = 64, 8
"""Challenges that wait for their answer, in all and of one visitor; the oldest ends."""

_NONCE = 32

_WAY: Channel = "passkey"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Asked:
    """One challenge. `place`: whose page asked; `shown`: SHA-256 of the text that it is about, which may be long."""

    place: str
    name: str
    shown: str
    nonce: bytes
    since: float


@dataclass(slots=True)
class PasskeyQuestions:
    """The challenges of one process; nothing of them is on disk. `now` counts seconds.

    `compare`: what of a question is not what would run now, as far as it can be looked at where the page is served.
    `counted`: the highest count of each key with a yes here, whoever's question it was.
    """

    now: Callable[[], float] = time.monotonic
    compare: Callable[[ClusterContext, Approval], Awaitable[list[str]]] = approval.outdated
    counted: dict[str, int] = field(default_factory=dict)
    _asked: dict[str, _Asked] = field(default_factory=dict)

    async def begin(
        self, context: ClusterContext, place: str, name: str, shown: str, origins: Collection[str], origin: str
    ) -> dict[str, Any]:
        """What the browser asks the passkey. `shown`: SHA-256 of the text on the page. Raises PasskeyRefused."""
        item = await _found(context, name)
        keys = await _told(context, item, self._answering(context, item, shown, origins, origin))
        nonce, number = secrets.token_bytes(_NONCE), secrets.token_urlsafe(_NONCE)
        self._keep(number, _Asked(place, item.id, shown, nonce, self.now()))
        return {"number": number, "options": passkeys.asked(keys, passkeys.challenge(item.plan, nonce))}

    async def finish(
        self, context: ClusterContext, place: str, name: str, sent: dict[str, Any], origins: Collection[str]
    ) -> str:
        """Whose yes it is, written down. Raises PasskeyRefused."""
        asked = self._asked.pop(str(sent.get("number")), None)  # before anything is looked at: it counts once
        item = await _found(context, name)
        by = await _told(context, item, self._granted(context, place, item, asked, sent, origins))
        await approval.log_answer(context, item, "approved", channel=_WAY, by=by, face="page")
        return by

    async def _granted(
        self, context: ClusterContext, place: str, item: Approval, asked: _Asked | None, sent: dict[str, Any],
        origins: Collection[str],
    ) -> str:  # fmt: skip
        answer, by = await self._looked_at(context, place, item, asked, sent, origins)
        granted = await context.db(
            context.store.approvals.grant, item, granted=context.clock.now(), granted_by=by, channel=_WAY,
            signature=answer.text,
        )  # fmt: skip
        if not granted:
            raise PasskeyRefused("another plan", "The question was exchanged while it was answered")
        self.counted[answer.key_id] = max(answer.count, self.counted.get(answer.key_id, 0))
        return by

    async def _looked_at(
        self, context: ClusterContext, place: str, item: Approval, asked: _Asked | None, sent: dict[str, Any],
        origins: Collection[str],
    ) -> tuple[PasskeyAnswer, str]:  # fmt: skip
        if asked is None or asked.place != place or asked.name != item.id or self.now() - asked.since > LASTS:
            told = "This was answered before, was asked of somebody else, or took too long"
            raise PasskeyRefused("replayed", told, "Load the page again, and answer once.")
        if "failed" in sent:
            told = f"The browser or the passkey gave no answer: {sanitize.line(str(sent['failed']))[:100]}"
            raise PasskeyRefused("no answer", told)
        await _answerable(context, item)
        answer = PasskeyAnswer.of(asked.nonce, sent.get("answer"))
        if text_sha256(item) != asked.shown:
            raise PasskeyRefused("another plan", "What is asked is not what the page showed", "Load it again.")
        await self._still(context, item)
        lines = await context.db(approval.passkeys_of, context)
        count = max(await context.db(_highest, context, answer.key_id), self.counted.get(answer.key_id, 0))
        return answer, passkeys.verify(item.plan, answer, lines, origins=origins, count=count).by

    async def _answering(
        self, context: ClusterContext, item: Approval, shown: str, origins: Collection[str], origin: str
    ) -> list[AllowedPasskey]:
        """The keys that can answer on a page of this origin. Raises PasskeyRefused."""
        await _answerable(context, item)
        if origin not in origins:
            raise PasskeyRefused("another origin", f"Passkeys are not asked for by a page of {origin[:200]!r}")
        keys = [one for one in await _keys(context) if one.counts_at(origin)]
        if not keys:
            hint = "Enrol one on a terminal: slurm-agent-tools passkey add NAME"
            raise PasskeyRefused("unknown key", "No passkey is enrolled for this page", hint)
        if shown != text_sha256(item):
            raise PasskeyRefused("another plan", "What is asked is not what this page shows", "Load it again.")
        await self._still(context, item)
        return keys

    async def _still(self, context: ClusterContext, item: Approval) -> None:
        """Raises PasskeyRefused where the question is not about what would run now."""
        found = await self.compare(context, item)
        if found:
            hint = "Let submit_job be called again: it asks about what would run."
            raise PasskeyRefused("another plan", f"This is not what would run now: {'; '.join(found)}", hint)

    def _keep(self, number: str, made: _Asked) -> None:
        self._asked[number] = made
        same = [one for one, asked in self._asked.items() if asked.place == made.place]
        for one in same[:-_OF_ONE]:
            del self._asked[one]
        while len(self._asked) > _MOST:
            del self._asked[next(iter(self._asked))]


def text_sha256(item: Approval) -> str:
    """By which a page says what it shows."""
    return hashlib.sha256(item.plan.encode("utf-8", "surrogatepass")).hexdigest()


async def unanswerable(context: ClusterContext, item: Approval) -> str | None:
    """Why a page cannot take a yes to this question; None where it can."""
    if _WAY not in context.policy.policy.approval_channels:
        return "the policy does not count passkeys (approval_channels)"
    if item.granted is not None:
        return "it is approved, and not used yet"
    if "script" not in _request(item):
        return "only a terminal answers this kind of question"
    try:
        passkeys.check_installed()
        known = await _keys(context)
    except AgentToolsError as error:
        return error.message
    return None if known else "no passkey is enrolled: slurm-agent-tools passkey add NAME"


def _request(item: Approval) -> dict[str, Any]:
    try:
        found = json.loads(item.request or "null")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


async def _keys(context: ClusterContext) -> list[AllowedPasskey]:
    return passkeys.listed(await context.db(approval.passkeys_of, context))


async def _found(context: ClusterContext, name: str) -> Approval:
    """The question of this name. Raises PasskeyRefused."""
    item = await context.db(context.store.approvals.find, context.owner, name)
    if item is None:
        raise PasskeyRefused("no question", "There is no such question")
    return item


async def _answerable(context: ClusterContext, item: Approval) -> None:
    """Raises PasskeyRefused where a page cannot take a yes to this question."""
    if item.closed(context.clock.now()) is not None:
        raise PasskeyRefused("not counted", "This question was answered before, or has expired")
    why = await unanswerable(context, item)
    if why is not None:
        raise PasskeyRefused("not counted", f"A passkey does not answer this question: {why}")


def _highest(context: ClusterContext, key_id: str) -> int:
    """The highest count that this key told with a yes."""
    kept = [PasskeyAnswer.read(text) for text in context.store.approvals.signatures(context.owner, _WAY)]
    return max((answer.count for answer in kept if answer.key_id == key_id), default=0)


async def _told(context: ClusterContext, item: Approval, work: Awaitable[_T]) -> _T:
    """What comes of it; a refusal is noted down first."""
    try:
        return await work
    except PasskeyRefused as refused:
        await _tell(context, item, refused)
        raise


async def _tell(context: ClusterContext, item: Approval, refused: PasskeyRefused) -> None:
    facts = {"fault": refused.fault, "reason": refused.message}
    await approval.log_answer(context, item, "yes_refused", channel=_WAY, by="a page's visitor", face="page", **facts)
