"""A request that is turned away: its status, and a body that an MCP client shows to its agent."""

from __future__ import annotations

import json

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

INVALID_REQUEST = -32600  # JSON-RPC's code for it


class RequestRefused(Exception):
    """Raised before anything was answered. `code` is stable; `call` is the JSON-RPC id where it is known."""

    def __init__(self, status: int, code: str, message: str, hint: str, *, call: object = None, **headers: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint, self.call = status, code, message, hint, call
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it as a JSON-RPC error, which the protocol allows beside any status."""
        data = {"code": self.code, "hint": self.hint}
        error = {"code": INVALID_REQUEST, "message": f"{self.message}. {self.hint}", "data": data}
        body = json.dumps({"jsonrpc": "2.0", "id": self.call, "error": error}).encode()
        await Response(body, self.status, self.headers, "application/json")(scope, receive, send)


def unauthorized(message: str, *, invalid: bool) -> RequestRefused:
    """No token, or none that counts (RFC 6750, section 3)."""
    challenge = 'Bearer realm="slurm-agent-tools"'
    if invalid:
        challenge += f', error="invalid_token", error_description="{message}"'
    hint = "Send `Authorization: Bearer TOKEN`; a token is made by: slurm-agent-tools token new"
    return RequestRefused(401, "unauthorized", message, hint, www_authenticate=challenge)


# --- What a request has to look like, so that nobody reads it in two ways and its sender is told what is wrong --------


_METHODS = ("GET", "POST", "DELETE")

_JSON = "application/json"

_TAKEN = ({_JSON, "application/*", "*/*"}, {"text/event-stream", "text/*", "*/*"})


def check_length(headers: Headers) -> None:
    """Before anything is answered. Raises Refused with 400."""
    if "transfer-encoding" in headers and "content-length" in headers:
        # A proxy may believe the one and this server the other; then the rest is a request of nobody (RFC 9112, 6.3).
        hint = "Send Content-Length or Transfer-Encoding, not both."
        raise RequestRefused(400, "two_lengths", "The request says its length in two ways", hint, connection="close")


def check_method(method: str) -> None:
    """Raises Refused with 405."""
    if method not in _METHODS:
        hint = f"Use {', '.join(_METHODS)}, as MCP over streamable HTTP does."
        raise RequestRefused(405, "wrong_method", "The method is not one of MCP", hint, allow=", ".join(_METHODS))


def check_reading(method: str) -> None:
    """Of a page that is only read. Raises Refused with 405."""
    if method not in {"GET", "HEAD"}:
        raise RequestRefused(405, "wrong_method", "Only GET is answered here", "Use GET.", allow="GET, HEAD")


def check_body(method: str, headers: Headers) -> None:
    """Raises Refused: 415, and 406 where the SDK would say so without a word."""
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise RequestRefused(415, "compressed", "The body is compressed", "Send it as it is, without Content-Encoding.")
    if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        raise RequestRefused(415, "wrong_type", "The body is not declared as JSON", f"Send `Content-Type: {_JSON}`.")
    accepted = {one.partition(";")[0].strip().lower() for one in headers.get("accept", "").split(",")}
    if method == "POST" and not all(accepted & kinds for kinds in _TAKEN):
        hint = f"Send `Accept: {_JSON}, text/event-stream`."
        raise RequestRefused(406, "wrong_accept", "The answer may come as JSON or as a stream of events", hint)
