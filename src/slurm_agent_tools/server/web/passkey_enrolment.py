"""A page that makes one passkey, behind a link that a person's terminal shows, until it is made or a signal comes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from slurm_agent_tools.models.allowed_passkeys import LOOPBACK, AllowedPasskey
from slurm_agent_tools.server.http.host_check import AllowedHosts
from slurm_agent_tools.server.http.refusals import RequestRefused, check_length
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.dashboard_app import serve_pages, static_file
from slurm_agent_tools.server.web.passkey_calls import answered, called
from slurm_agent_tools.transport import passkeys
from slurm_agent_tools.transport.passkeys import PasskeyRefused


class PasskeyEnrolment:
    """The page as an ASGI app. `key` is there once `done` is set. `port`: where it listens, known later."""

    def __init__(self, name: str, origin: str, hosts: AllowedHosts) -> None:
        self.name, self.origin, self.hosts = name, origin, hosts
        self.secret, self.port = secrets.token_urlsafe(32), 0
        self.key: AllowedPasskey | None = None
        self.done = anyio.Event()
        self._asked: dict[str, bytes] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or agree to the server's start and stop."""
        await serve_pages(self._answer, scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        check_length(request.headers)
        self.hosts.check(request.headers)
        path = request.url.path
        if path.startswith("/static/"):
            return static_file(path.removeprefix("/static/"))
        _, begin, key, rest = [*path.split("/", 3), "", "", ""][:4]
        if begin != "enrol" or not hmac.compare_digest(key.encode(), self.secret.encode()):
            raise RequestRefused(404, "not_found", "There is nothing at this path", "Open the link of the terminal.")
        if request.method == "POST":
            step = called(rest)
            if step is None:
                raise RequestRefused(404, "not_found", "There is nothing at this path", "Use the page's button.")
            return await answered(request, self._begin if step[0] == "begin" else self._finish)
        template = fragments.environment().get_template("enrol.html")
        return HTMLResponse(template.render(name=self.name, origin=self.origin, base=f"/enrol/{self.secret}/"))

    async def _begin(self, _: dict[str, Any]) -> dict[str, Any]:
        made, number = secrets.token_bytes(32), secrets.token_urlsafe(16)
        self._asked = {number: made}
        return {"number": number, "options": passkeys.offered(self.name, self.origin, made, secrets.token_bytes(16))}

    async def _finish(self, sent: dict[str, Any]) -> dict[str, Any]:
        made = self._asked.pop(str(sent.get("number")), None)
        if made is None or self.key is not None:
            raise PasskeyRefused("replayed", "This was answered before, or was not asked", "Load the page again.")
        if "failed" in sent:
            told = f"The browser or the passkey made none: {str(sent['failed'])[:40]!r}"
            raise PasskeyRefused("no answer", told, "It has to check who is there: a PIN, a finger or a face.")
        page = f"{LOOPBACK}:{self.port}" if self.origin == LOOPBACK else self.origin
        key = passkeys.made_key(sent.get("answer"), name=self.name, origin=self.origin, page=page, made=made)
        self.key = key
        self.done.set()
        return {"message": f"Made: {fingerprint(key)}. Compare it with the terminal, and answer there."}


def fingerprint(key: AllowedPasskey) -> str:
    """By which a person compares what the browser made with what the terminal has."""
    found = hashlib.sha256(key.key_id + key.key).hexdigest()
    return " ".join(found[start : start + 4] for start in range(0, 24, 4))
