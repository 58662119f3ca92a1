"""Asking the person at an MCP client: one question, one yes or no, in both eras of the protocol.

Up to 2025-11-25 the server sends the question in the middle of the call. From 2026-07-28 on it ends the call with the
question, and the client calls again with the answer; what was asked travels in the sealed request state.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, Field, ValidationError, create_model

from slurm_agent_tools.text import sanitize
from slurm_agent_tools.text.plan_text import fenced

if TYPE_CHECKING:
    from slurm_agent_tools.services.approval import Answer, Question


ENDS_THE_CALL = "2026-07-28"

_KEY = "approval"


class ConsentForm(BaseModel):
    """What the person fills in: nothing is filled in before, and only true approves."""

    approve: bool = Field(
        strict=True, title="Submit exactly this?", description="Yes submits this job, once; anything else does not"
    )


class PendingQuestion(Exception):
    """The question that the client has to put to the person before the call can go on."""

    def __init__(self, result: InputRequiredResult) -> None:
        super().__init__("an answer is needed")
        self.result = result


class ApprovalQuestions:
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
                result = await context.elicit(fenced(question.text), ConsentForm)
            except ValueError:  # accepted without an answer, or with another one than was asked for
                return "no"
            return "yes" if result.action == "accept" and result.data.approve else "no"
        return "timeout"

    def _answered(self, context: Context[Any, Any], question: Question) -> Answer:
        """The answer that came with this call, if it is to this question, asked by this process and not used yet."""
        answer = (context.input_responses or {}).get(_KEY)
        plan = self._asked.pop(_identity(context.request_state), None)
        if plan != question.sha256 or not isinstance(answer, ElicitResult):
            raise PendingQuestion(self._question(question))
        if answer.action != "accept":
            return "no"
        try:
            return "yes" if ConsentForm.model_validate(answer.content).approve else "no"
        except ValidationError:
            return "no"

    def _question(self, question: Question) -> InputRequiredResult:
        name = secrets.token_hex(16)
        self._asked[name] = question.sha256
        while len(self._asked) > 100:
            del self._asked[next(iter(self._asked))]
        form = ElicitRequestFormParams(
            message=fenced(question.text), requested_schema=render_elicitation_schema(ConsentForm)
        )
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
    except (ValueError, RecursionError):
        return ""
    return str(found.get("question", "")) if isinstance(found, dict) else ""


# --- What a login node asks of the person at an MCP client, such as a one-time code -----------------------------------


Prompts = Sequence[tuple[str, bool]]

_LOGIN_KEY = "login"

_LASTING = re.compile(r"passw|passphrase|\bpin\b", re.IGNORECASE)


class AtClient:
    """The person at the client of one call. `pending` is what the call has to end with, in the newer era."""

    def __init__(self, context: Context[Any, Any], seconds: float) -> None:
        self._context, self._seconds = context, seconds
        self.pending: InputRequiredResult | None = None

    async def ask(self, title: str, instructions: str, prompts: Prompts) -> Sequence[str] | None:
        """The answers in order; None where nobody answers, or a password is asked for."""
        if not can_ask(self._context) or any(_LASTING.search(sanitize.stripped(text)) for text, _ in prompts):
            return None
        form = _form(prompts)
        version = self._context.protocol_version
        message = sanitize.bounded(
            sanitize.visible("\n".join(part for part in (title, instructions) if part)), whole=2000
        )
        if version is not None and is_version_at_least(version, ENDS_THE_CALL):
            return self._answered(form, message)
        with anyio.move_on_after(self._seconds):
            try:
                result = await self._context.elicit(message, form)
            except ValueError:
                return None
            return _values(result.data) if result.action == "accept" else None
        return None

    def _answered(self, form: type[BaseModel], message: str) -> Sequence[str] | None:
        given = (self._context.input_responses or {}).get(_LOGIN_KEY)
        if not isinstance(given, ElicitResult):
            params = ElicitRequestFormParams(message=message, requested_schema=render_elicitation_schema(form))
            self.pending = InputRequiredResult(
                input_requests={_LOGIN_KEY: ElicitRequest(params=params)},
                request_state=json.dumps({"login": secrets.token_hex(8)}),
            )
            return None
        try:
            return _values(form.model_validate(given.content)) if given.action == "accept" else None
        except ValidationError:
            return None


def _form(prompts: Prompts) -> type[BaseModel]:
    """A field for each prompt, empty before it is filled in."""
    fields: dict[str, Any] = {
        f"answer_{number}": (str, Field(title=sanitize.line(text.strip())[:200] or "Answer"))
        for number, (text, _) in enumerate(prompts, 1)
    }
    return create_model("Login", **fields)


def _values(form: BaseModel) -> list[str]:
    return [str(value) for value in form.model_dump().values()]
