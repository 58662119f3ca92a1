"""Asking the person at an MCP client: one question, one yes or no, in both eras of the protocol.

Up to 2025-11-25 the server sends the question in the middle of the call. From 2026-07-28 on it ends the call with the
question, and the client calls again with the answer; what was asked travels in the sealed request state.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, Field, ValidationError

if TYPE_CHECKING:
    from slurm_agent_tools.toolbox.approval import Answer, Question

ENDS_THE_CALL = "2026-07-28"
_KEY = "approval"


class Consent(BaseModel):
    """What the person fills in: nothing is filled in before, and only true approves."""

    approve: bool = Field(
        strict=True, title="Submit exactly this?", description="Yes submits this job, once; anything else does not"
    )


class Pending(Exception):
    """The question that the client has to put to the person before the call can go on."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("an answer is needed")
        self.result = result


class Consultant:
    """Puts questions of one server process to the persons at its clients."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._asked: dict[str, str] = {}  # question's id -> the plan it was about, until it is answered

    async def ask(self, context: Context[Any, Any], question: Question) -> Answer:
        """The person's answer; `cannot` where the client has no way to ask. Raises Pending in the newer era."""
        if not can_ask(context):
            return "cannot"
        if context.protocol_version is not None and is_version_at_least(context.protocol_version, ENDS_THE_CALL):
            return self._answered(context, question)
        with anyio.move_on_after(self.seconds):
            try:
                result = await context.elicit(question.text, Consent)
            except ValueError:  # accepted without an answer, or with another one than was asked for
                return "no"
            return "yes" if result.action == "accept" and result.data.approve else "no"
        return "timeout"

    def _answered(self, context: Context[Any, Any], question: Question) -> Answer:
        """The answer that came with this call, if it is to this question, asked by this process and not used yet."""
        answer = (context.input_responses or {}).get(_KEY)
        plan = self._asked.pop(_identity(context.request_state), None)
        if plan != question.sha256 or not isinstance(answer, ElicitResult):
            raise Pending(self._question(question))
        if answer.action != "accept":
            return "no"
        try:
            return "yes" if Consent.model_validate(answer.content).approve else "no"
        except ValidationError:
            return "no"

    def _question(self, question: Question) -> InputRequiredResult:
        name = secrets.token_hex(16)
        self._asked[name] = question.sha256
        while len(self._asked) > 100:
            del self._asked[next(iter(self._asked))]
        form = ElicitRequestFormParams(message=question.text, requested_schema=render_elicitation_schema(Consent))
        return InputRequiredResult(
            input_requests={_KEY: ElicitRequest(params=form)}, request_state=json.dumps({"question": name})
        )


def can_ask(context: Context[Any, Any]) -> bool:
    """Whether the client can put a form to its person."""
    able = context.client_capabilities
    asks = able.elicitation if able is not None else None
    return asks is not None and (asks.form is not None or not asks.url)


def _identity(state: str | None) -> str:
    """The id of the question that a call answers; empty for a call that answers none."""
    try:
        found = json.loads(state or "{}")
    except ValueError:
        return ""
    return str(found.get("question", "")) if isinstance(found, dict) else ""
