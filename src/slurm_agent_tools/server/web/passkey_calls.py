"""What a page's script sends of a passkey: a short JSON document, from a page of ours, answered as JSON."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.server.http.refusals import RequestRefused
from slurm_agent_tools.text.bounded_documents import DocumentError, decoded, json_value
from slurm_agent_tools.transport.passkeys import PasskeyRefused

_CALL = re.compile(r"yes/(begin|finish)/([0-9a-z]{1,32})")

_LONGEST, _SECONDS = 16 * 1024, 10.0


def called(inner: str) -> tuple[str, str] | None:
    """The step and the question's name that a path behind a visitor's place means; None for any other path."""
    found = _CALL.fullmatch(inner)
    return None if found is None else (found[1], found[2])


async def answered(request: Request, act: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]) -> Response:
    """What `act` makes of the document that was sent; a refusal is told with its message. Raises RequestRefused."""
    sent = await _sent(request)
    try:
        return JSONResponse(await act(sent))
    except AgentToolsError as error:
        status = 403 if isinstance(error, PasskeyRefused) else 503
        return JSONResponse({"message": f"{error.message}. {error.hint}", "code": error.code}, status)


async def _sent(request: Request) -> dict[str, Any]:
    """The body, which is short and comes at once. Raises RequestRefused: 400, 403, 408, 413, 415."""
    if request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
        raise RequestRefused(403, "foreign_page", "Another site's page asked", "Open the page by itself.")
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise RequestRefused(415, "wrong_type", "The body is not declared as JSON", "Use the page's button.")
    body = await read_body(request, _LONGEST, _SECONDS)
    try:
        found = json_value(decoded(body), once=True)
    except DocumentError as error:
        raise RequestRefused(400, "unreadable", "The body is no JSON", "Use the page's button.") from error
    if not isinstance(found, dict):
        raise RequestRefused(400, "unreadable", "The body is no JSON object", "Use the page's button.")
    return found


async def read_body(request: Request, longest: int, seconds: float) -> bytes:
    """The body of a short request, which comes at once. Raises RequestRefused: 400, 408, 413."""
    body = b""
    with anyio.move_on_after(seconds):
        try:
            async for part in request.stream():
                body += part
                if len(body) > longest:
                    raise RequestRefused(413, "too_long", "The form is too long", "Send less.", connection="close")
        except ClientDisconnect as error:  # whoever knocks and leaves shall not fill the person's terminal
            raise RequestRefused(400, "cut_off", "The form is not whole", "Send it again.") from error
        return body
    raise RequestRefused(408, "too_slow", "The form did not arrive in time", "Send it again.", connection="close")
