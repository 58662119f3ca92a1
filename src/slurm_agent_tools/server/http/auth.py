"""What stands before the SDK's HTTP app: it looks at a request in one order and turns it away at the first reason."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import cast

import anyio
import anyio.to_thread
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from slurm_agent_tools.errors import AgentToolsError, ConfigError, InputError, StorageError
from slurm_agent_tools.server.http import refusals, request_limits
from slurm_agent_tools.server.http.host_check import AllowedHosts
from slurm_agent_tools.server.http.machine_pages import MACHINE_PATHS, METRICS, MachinePages
from slurm_agent_tools.server.http.open_sessions import Sessions
from slurm_agent_tools.server.http.refusals import RequestRefused, unauthorized
from slurm_agent_tools.server.http.scope_check import HttpVisit, ScopedToolbox, allowed, missing, visit
from slurm_agent_tools.server.web.dashboard_app import Dashboard
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.settings import LOCAL, HttpSettings
from slurm_agent_tools.store.tokens import Token, Tokens
from slurm_agent_tools.text import log_events, sanitize
from slurm_agent_tools.text.bounded_documents import without_halves

PATH = "/mcp"

_REVOKED_WITHIN = 1.0

_LONGEST_NAME = 4096

_log = log_events.get_logger()


class KnownToken(AccessToken):
    """What the SDK is told of a token, with our own record of it; not the token itself."""

    record: Token


class Verifier:
    """The tokens of this server as the SDK's bearer authentication asks for them."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def verify_token(self, token: str) -> KnownToken:
        """Who it is. Raises Refused: 401 saying what is wrong with it, 503 where tokens cannot be read."""
        try:
            found = await anyio.to_thread.run_sync(self._tokens.find, token.strip())
        except StorageError as error:
            raise RequestRefused(503, error.code, "The tokens cannot be read", "Call again in a minute.") from error
        if found is None:
            raise unauthorized("The token is not known or was revoked", invalid=True)
        if found.expired(datetime.now(UTC)):
            raise unauthorized("The token has expired", invalid=True)
        return KnownToken(token="", client_id=found.name, scopes=[found.scope], subject=found.id, record=found)


class Authenticator:
    """An ASGI app around the SDK's. Nothing of a request's body is read before its token is known."""

    def __init__(
        self,
        app: ASGIApp,
        toolbox: ScopedToolbox,
        tokens: Tokens,
        hosts: AllowedHosts,
        settings: HttpSettings,
        prefix: str = "",
        pages: Dashboard | None = None,
    ) -> None:
        self._app, self._toolbox, self._tokens = AuthContextMiddleware(app), toolbox, tokens
        self._bearer = BearerAuthBackend(Verifier(tokens))
        self._hosts, self._settings, self._prefix = hosts, settings, prefix
        self._pages = pages
        self._limits, self._health = request_limits.RequestLimits(settings), Health(toolbox)
        self._sessions, self._visits = Sessions(), set[HttpVisit]()
        self._monitoring = MachinePages(toolbox)
        self._told = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or pass on the server's start and stop."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            await self._serve(scope, Headers(scope=scope), receive, send)
        except RequestRefused as refused:
            self._tell(refused, scope)
            await refused.answer(scope, receive, send)

    async def answered(self) -> None:
        """Return when no request is being answered; streams that only listen do not count."""
        while any(not here.listens for here in self._visits):  # noqa: ASYNC110 - a few looks, at the very end
            await anyio.sleep(0.05)

    async def watch(self) -> None:
        """Break off what goes on for a token that was revoked or whose time is over."""
        while True:
            await anyio.sleep(_REVOKED_WITHIN)
            if self._visits:
                try:
                    good = {token.id for token in await anyio.to_thread.run_sync(self._tokens.current)}
                except StorageError as error:  # nothing new comes in meanwhile
                    _log.warning("tokens cannot be read", why=error.message)
                    continue
                for here in [one for one in self._visits if one.token.id not in good]:
                    here.scope.cancel()

    async def _serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        refusals.check_length(headers)
        self._hosts.check(headers)
        if scope["path"] in PATHS:
            await self._report(scope, headers, receive, send)
            return
        if scope["path"] in MACHINE_PATHS:
            await self._monitor(scope, headers, receive, send)
            return
        if self._pages is not None and self._pages.has(scope["path"]):
            await self._pages(scope, receive, send)
            return
        if scope["path"] != PATH:
            raise RequestRefused(404, "not_found", "There is nothing at this path", f"The server is at {PATH}.")
        refusals.check_method(scope["method"])
        self._goes_on()
        token = await self._token(scope, headers)
        if token.scope == "scrape":
            hint = "A person can make one that may: slurm-agent-tools token new --scope read"
            challenge = 'Bearer realm="slurm-agent-tools", error="insufficient_scope", scope="read"'
            told = f"{token.name} may only read what monitoring reads"
            raise RequestRefused(403, "scope_missing", told, hint, www_authenticate=challenge)
        scope.setdefault("state", {})[request_limits.ADMITTED] = True
        session = headers.get(MCP_SESSION_ID_HEADER)
        with self._limits.one(token.id) as hold, self._sessions.used(session):
            body = await request_limits.read_body(headers, receive, self._settings, hold)
            if body is None:
                return
            body = without_halves(body)
            refusals.check_body(scope["method"], headers)
            if token.scope != "write":
                await self._permit(token, body)
            version = headers.get(MCP_PROTOCOL_VERSION_HEADER)
            if session is None and (version is None or version in HANDSHAKE_PROTOCOL_VERSIONS):
                self._sessions.admit(token.id)
            await self._pass(token, scope, body, receive, send)

    def _goes_on(self) -> None:
        """Raises Refused with 503 once the server is told to stop."""
        if self._toolbox.stopping.is_set():
            hint = "Call again when it is back."
            raise RequestRefused(
                503, "server_stopping", "The server is stopping", hint, retry_after="5", connection="close"
            )

    async def _monitor(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        """What monitoring reads: with a token of any scope; `/metrics` without one where a person opened it."""
        refusals.check_reading(scope["method"])
        self._goes_on()
        opened = self._settings.open_metrics and scope["path"] == METRICS and "authorization" not in headers
        name = "" if opened else (await self._token(scope, headers)).id
        scope.setdefault("state", {})[request_limits.ADMITTED] = not opened
        with self._limits.one(name):
            await (await self._monitoring.answer(scope["path"], known=not opened))(scope, receive, send)

    async def _report(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> None:
        refusals.check_reading(scope["method"])
        known = "authorization" in headers and await self._token(scope, headers) is not None
        await (await self._health.answer(scope["path"], known=known))(scope, receive, send)

    async def _token(self, scope: Scope, headers: Headers) -> Token:
        """The token of a request, which carries its name from here on. Raises Refused: 401, 503."""
        if len(headers.getlist("authorization")) == 1:
            found = await self._bearer.authenticate(HTTPConnection(scope))
            if found is not None:
                scope["auth"], scope["user"] = found
                return cast("KnownToken", found[1].access_token).record
        raise unauthorized("A bearer token is needed", invalid=False)

    async def _permit(self, token: Token, body: bytes) -> None:
        """Raises Refused with 403 for a writing call of a token that may only read.

        The specification asks for this status. The toolbox checks again what the SDK made of the same bytes.
        """
        tool, call = _called(body)
        name = None if tool is None else tool.removeprefix(self._prefix)
        if name is None or allowed(token, name):
            return
        name = sanitize.shown(name[:_LONGEST_NAME])[:64]  # a token that stands for a name is cut after it is masked
        await self._toolbox.log_refusal(name, Caller("unknown", face="mcp", principal=token.name))
        error = missing(token, name)
        challenge = 'Bearer realm="slurm-agent-tools", error="insufficient_scope", scope="write"'
        raise RequestRefused(403, error.code, error.message, error.hint, call=call, www_authenticate=challenge)

    async def _pass(self, token: Token, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Let the SDK answer, in the token's name, until it is done or the token counts no more."""
        here, begun = HttpVisit(token, listens=scope["method"] == "GET"), False
        replayed = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            return replayed.pop() if replayed else await receive()

        async def noted(message: Message) -> None:
            nonlocal begun
            if not begun:
                self._sessions.seen(token.id, scope, message)
            begun = True
            await send(message)

        mark = visit.set(here)
        self._visits.add(here)
        try:
            with here.scope:
                await self._app(scope, again, noted)
        finally:
            self._visits.discard(here)
            visit.reset(mark)
            here.gone.set()
        if here.scope.cancelled_caught and not begun:
            raise unauthorized("The token was revoked or has expired meanwhile", invalid=True)

    def _tell(self, refused: RequestRefused, scope: Scope) -> None:
        """Log a refusal, one a second at most: who knocks often shall not fill the disk."""
        if time.monotonic() - self._told >= 1:
            self._told = time.monotonic()
            _log.warning("refused", status=refused.status, code=refused.code, path=sanitize.shown(scope["path"])[:80])


def _called(body: bytes) -> tuple[str | None, object]:
    """The tool that a body calls and the call's id; None for each that is not there."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None, None  # the SDK says what is wrong with it
    if not isinstance(found, dict) or found.get("method") != "tools/call":
        return None, None
    params, number = found.get("params"), found.get("id")
    tool = params.get("name") if isinstance(params, dict) else None
    return str(tool), number if isinstance(number, int | str) else None


# --- `/healthz` says that the process lives, `/readyz` that it can do its work ----------------------------------------


LIVES, READY = "/healthz", "/readyz"

PATHS = frozenset({LIVES, READY})

_KEPT = 5.0

_LONGEST = 8.0


class Health:
    """Looks at most every five seconds, however often it is asked."""

    def __init__(self, toolbox: ScopedToolbox) -> None:
        self._toolbox, self._lock = toolbox, anyio.Lock()
        self._seen: dict[str, str] = {}
        self._at = -_KEPT

    async def answer(self, path: str, *, known: bool) -> JSONResponse:
        """The answer; what exactly is wrong is told to the `known` alone."""
        found = {} if path == LIVES else await self._look()
        if path == READY and self._toolbox.stopping.is_set():
            found = {**found, "server": "stopping"}
        good = all(value.startswith("ok") for value in found.values())
        body = {"status": "ok" if good else "unavailable"} | (found if known else {})
        return JSONResponse(body, 200 if good else 503, {"Cache-Control": "no-store"})

    async def _look(self) -> dict[str, str]:
        async with self._lock:
            if time.monotonic() - self._at >= _KEPT:
                self._seen = await self._probe()
                self._at = time.monotonic()
            return self._seen

    async def _probe(self) -> dict[str, str]:
        found = {"ledger": "not reached", "slurm": "no answer"}
        with anyio.move_on_after(_LONGEST):
            try:
                context, usual = await self._context()
                await context.db(context.store.probe)
                found["ledger"] = "ok"
                if usual:
                    await context.slurm.partitions()
                found["slurm"] = "ok" if usual else "ok, as no cluster is the usual one"
            except AgentToolsError as error:
                found["slurm" if found["ledger"] == "ok" else "ledger"] = error.message
        return found

    async def _context(self) -> tuple[ClusterContext, bool]:
        """The context to look at, and whether its cluster is the usual one. With several clusters there may be none."""
        try:
            return await self._toolbox.registry.at(None), True
        except ConfigError:
            raise
        except InputError:
            return await self._toolbox.registry.at(LOCAL), False
