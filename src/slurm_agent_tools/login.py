"""What a login node asks of the person at an MCP client, such as a one-time code.

Nothing that is typed is kept or logged. Passwords are not asked through MCP, whose forms are not made for secrets that
last; a code that counts once is.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from typing import Any

import anyio
from mcp.server.elicitation import render_elicitation_schema
from mcp.server.mcpserver import Context
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import is_version_at_least
from pydantic import BaseModel, Field, ValidationError, create_model

from slurm_agent_tools import trust
from slurm_agent_tools.elicitation import ENDS_THE_CALL, can_ask

Prompts = Sequence[tuple[str, bool]]
_KEY = "login"
_LASTING = re.compile(r"passw|passphrase|\bpin\b", re.IGNORECASE)


class AtClient:
    """The person at the client of one call. `pending` is what the call has to end with, in the newer era."""

    def __init__(self, context: Context[Any, Any], seconds: float) -> None:
        self._context, self._seconds = context, seconds
        self.pending: InputRequiredResult | None = None

    async def ask(self, title: str, instructions: str, prompts: Prompts) -> Sequence[str] | None:
        """The answers in order; None where nobody answers, or a password is asked for."""
        if not can_ask(self._context) or any(_LASTING.search(trust.stripped(text)) for text, _ in prompts):
            return None
        form = _form(prompts)
        version = self._context.protocol_version
        message = trust.bounded(trust.visible("\n".join(part for part in (title, instructions) if part)), whole=2000)
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
        given = (self._context.input_responses or {}).get(_KEY)
        if not isinstance(given, ElicitResult):
            params = ElicitRequestFormParams(message=message, requested_schema=render_elicitation_schema(form))
            self.pending = InputRequiredResult(
                input_requests={_KEY: ElicitRequest(params=params)},
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
        f"answer_{number}": (str, Field(title=trust.line(text.strip())[:200] or "Answer"))
        for number, (text, _) in enumerate(prompts, 1)
    }
    return create_model("Login", **fields)


def _values(form: BaseModel) -> list[str]:
    return [str(value) for value in form.model_dump().values()]
