"""A new ticket, the word of it for a job's comment, and the signature of one where no folder is shared."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.submission_ticket import (
    COMMENT_WORD,
    LARGEST_SIGNED_SCRIPT,
    LONGEST_SIGNED_TICKET,
    Ceilings,
    SubmissionTicket,
    parse_claim,
)

SHORTEST_KEY = 32
"""Bytes of the key of signed tickets, at least."""


def new_ticket(allowed: Ceilings, script: bytes | None) -> SubmissionTicket:
    """A ticket with a number that nobody can guess."""
    return SubmissionTicket(
        secrets.token_hex(16), allowed, None if script is None else hashlib.sha256(script).hexdigest()
    )


def comment_word(text: str) -> str:
    """The word for a job's comment: of a ticket's number where its file lies with the controller, else of it signed."""
    return f"{COMMENT_WORD}{text}"


# --- Tickets that prove themselves, for a controller with which no folder is shared ----------------------------------


def check_signable(script: bytes) -> None:
    """Raises InputError for a script that is too long for a signed ticket."""
    if len(script) > LARGEST_SIGNED_SCRIPT:
        hint = "Move what it holds into a file of the project, and run that from the script."
        raise InputError("script", None, f"is longer than {LARGEST_SIGNED_SCRIPT} bytes", hint=hint)


def signed(ticket: SubmissionTicket, key: bytes) -> str:
    """The ticket with its HMAC-SHA-256 (RFC 2104), as one word. Raises InputError where its names are too long."""
    text = f"{ticket.claim}.{_proof(ticket.claim, _checked(key))}"
    if len(text) > LONGEST_SIGNED_TICKET:
        hint = "Name fewer partitions."
        raise InputError("partition", None, f"makes a ticket of more than {LONGEST_SIGNED_TICKET} letters", hint=hint)
    return text


def verify(text: str, keys: Sequence[bytes]) -> SubmissionTicket:
    """The ticket of a signed word; any of the keys may have signed it. Raises ValueError."""
    claim, _, proof = text.rpartition(".")
    sound = [hmac.compare_digest(_proof(claim, _checked(key)).encode(), proof.encode()) for key in keys]
    if not any(sound):
        raise ValueError("the ticket is not signed by this site")
    return parse_claim(claim)


def _checked(key: bytes) -> bytes:
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"the key of tickets is shorter than {SHORTEST_KEY} bytes")
    return key


def _proof(claim: str, key: bytes) -> str:
    return hmac.new(key, claim.encode(), hashlib.sha256).hexdigest()
