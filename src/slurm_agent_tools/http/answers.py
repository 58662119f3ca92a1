"""A request that is turned away: its status, and a body that an MCP client shows to its agent."""

from __future__ import annotations

import json

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

INVALID_REQUEST = -32600  # JSON-RPC's code for it


class Refused(Exception):
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


def unauthorized(message: str, *, invalid: bool) -> Refused:
    """No token, or none that counts (RFC 6750, section 3)."""
    challenge = 'Bearer realm="slurm-agent-tools"'
    if invalid:
        challenge += f', error="invalid_token", error_description="{message}"'
    hint = "Send `Authorization: Bearer TOKEN`; a token is made by: slurm-agent-tools token new"
    return Refused(401, "unauthorized", message, hint, www_authenticate=challenge)
