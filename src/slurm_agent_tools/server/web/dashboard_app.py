"""The dashboard as an ASGI app: who may look, which page it is, and what no page may load or be shown in."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any
from urllib.parse import parse_qs

import anyio
import anyio.to_thread
from markupsafe import Markup
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from slurm_agent_tools.errors import AgentToolsError, InputError, StorageError
from slurm_agent_tools.models.allowed_passkeys import LOOPBACK
from slurm_agent_tools.server.http import request_limits
from slurm_agent_tools.server.http.host_check import AllowedHosts
from slurm_agent_tools.server.http.refusals import RequestRefused, check_length
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.collector import Collector
from slurm_agent_tools.server.web.pages import (
    approve_page,
    campaigns_page,
    cost_page,
    decisions_page,
    job_page,
    jobs_page,
    nodes_page,
    now_page,
    plans_page,
)
from slurm_agent_tools.server.web.passkey_calls import answered, called, read_body
from slurm_agent_tools.server.web.passkey_questions import PasskeyQuestions
from slurm_agent_tools.server.web.visitors import COOKIE, LASTS, Visitor, Visitors
from slurm_agent_tools.server.web.web_page import PageAsked, WebPage
from slurm_agent_tools.services.context import ContextRegistry
from slurm_agent_tools.settings import HttpSettings
from slurm_agent_tools.text import log_events, sanitize

PAGES: Mapping[str, WebPage] = {
    one.PAGE.name: one.PAGE
    for one in (
        now_page,
        nodes_page,
        jobs_page,
        job_page,
        decisions_page,
        approve_page,
        campaigns_page,
        cost_page,
        plans_page,
    )
}
"""By the first part of their address, in the order of the navigation."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

_LOOSE, _FOLDERS = frozenset({"/", "/sign-in", "/favicon.ico"}), frozenset({"v", "live", "open", "static"})

_STATIC = {"dashboard.css": "text/css", "live.js": "text/javascript", "passkey.js": "text/javascript"}

_LONGEST_FORM, _FORM_SECONDS = 4096, 10.0

_DRAWN_AT_ONCE = 2
"""Views in threads: a search among 10,000 jobs takes long enough to hold up all who call tools."""

_log = log_events.get_logger()


@dataclass(frozen=True, slots=True)
class Dashboard:
    """All pages of one process, asked by the names in `hosts`. `secure`: whether browsers reach it over TLS."""

    visitors: Visitors
    hosts: AllowedHosts
    collector: Collector
    limits: request_limits.RequestLimits
    questions: PasskeyQuestions
    secure: bool = False
    drawing: anyio.CapacityLimiter = field(default_factory=partial(anyio.CapacityLimiter, _DRAWN_AT_ONCE))

    @classmethod
    def of(
        cls,
        registry: ContextRegistry,
        visitors: Visitors,
        hosts: AllowedHosts,
        http: HttpSettings,
        cluster: str | None = None,
    ) -> Dashboard:
        """The pages over these contexts, with the limits of the settings."""
        secure = http.tls_cert is not None or bool(http.proxy)
        limits = request_limits.RequestLimits(http)
        return cls(visitors, hosts, Collector(registry, cluster), limits, PasskeyQuestions(), secure)

    @staticmethod
    def has(path: str) -> bool:
        """Whether there is something at this path, for whoever may see it."""
        first = path.split("/")[1] if path.startswith("/") else ""
        return path in _LOOSE or first in _FOLDERS or first in PAGES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or agree to the server's start and stop."""
        await serve_pages(self._answer, scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        headers, path = request.headers, request.url.path
        check_length(headers)
        self.hosts.check(headers)
        if not self.has(path):
            raise RequestRefused(404, "not_found", "There is nothing at this path", "Begin at /.")
        if path == "/sign-in":
            return await self._sign_in(request)
        if request.method == "POST" and called(path.split("/", 3)[-1]) is not None:
            return await self._yes(request, path)
        if request.method not in {"GET", "HEAD"}:
            raise RequestRefused(405, "wrong_method", "These pages are only read", "Use GET.", allow="GET, HEAD")
        if path == "/favicon.ico":
            return Response(status_code=204)
        if path.startswith("/static/"):
            return static_file(path.removeprefix("/static/"))
        if path.startswith("/open/"):
            return self._opened(request, path.removeprefix("/open/"))
        visitor, inner = await self._who(request, path)
        request.scope.setdefault("state", {})[request_limits.ADMITTED] = True
        with self.limits.one(visitor):
            return await self._page(request, inner)

    async def _who(self, request: Request, path: str) -> tuple[str, str]:
        """By which name a visitor is counted, and the path behind their place. Raises RequestRefused: 401, 403, 503."""
        try:
            return await self._known(request, path)
        except StorageError as error:
            raise RequestRefused(503, error.code, "The tokens cannot be read", "Call again in a minute.") from error

    async def _known(self, request: Request, path: str) -> tuple[str, str]:
        _, begin, *rest = [*path.split("/", 3), "", ""]
        if begin == "v" and rest[0]:
            if request.headers.get("sec-fetch-site", "none") not in {"none", "same-origin"}:
                raise RequestRefused(403, "foreign_page", "Another site's page asked", "Open the page by itself.")
            found = await anyio.to_thread.run_sync(self.visitors.at, rest[0], request.headers.get("cookie", ""))
            if found is None:
                raise _stranger()
            return found.place, rest[1]
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        known = await anyio.to_thread.run_sync(self.visitors.bearer, token) if kind.lower() == "bearer" else None
        if known is None:
            raise _stranger()
        return known.id, path.lstrip("/")

    def _opened(self, request: Request, key: str) -> Response:
        """What a link that works once leads to: a page that goes on by itself. A redirect may lose a strict cookie."""
        made = self.visitors.redeem(key) if request.method == "GET" else None
        if made is None:
            hint = "Start slurm-agent-tools dashboard again, or sign in with a token."
            raise RequestRefused(403, "used_link", "This link was used, or is none", hint)
        return self._entered(*made)

    def _entered(self, visitor: Visitor, value: str) -> Response:
        place = f"/v/{visitor.place}/"
        answer = HTMLResponse(fragments.environment().get_template("entered.html").render(place=place))
        answer.set_cookie(
            COOKIE, value, max_age=round(LASTS), path=place, secure=self.secure, httponly=True, samesite="strict"
        )
        return answer

    async def _sign_in(self, request: Request) -> Response:
        """The form for a token, and what it sends. Its body is read only from a page of ours.

        It counts as a request of the token, as every visit may ask as much again.
        """
        if request.method in {"GET", "HEAD"}:
            return _sign_in_page(200, "")
        if request.method != "POST" or request.headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise RequestRefused(403, "foreign_page", "Another site's page asked", "Open the page by itself.")
        try:
            body = await read_body(request, _LONGEST_FORM, _FORM_SECONDS)
            sent = parse_qs(body.decode("latin-1"), max_num_fields=4).get("token", [""])
        except ValueError:
            return _sign_in_page(400, "The form cannot be read.")
        try:
            known = await anyio.to_thread.run_sync(self.visitors.bearer, sent[0])
        except AgentToolsError as error:
            return _sign_in_page(503, f"{error.message}. {error.hint}")
        if known is None:
            return _sign_in_page(401, "This token is not known, was revoked, or its time is over.")
        with self.limits.one(known.id):
            return self._entered(*self.visitors.enter(known))

    async def _yes(self, request: Request, path: str) -> Response:
        """One step of a yes by passkey, which is the only thing that is not read. Raises RequestRefused."""
        place, inner = await self._who(request, path)
        found = called(inner)
        if found is None or not path.startswith(f"/v/{place}/"):
            raise RequestRefused(403, "no_visit", "Only a page is answered here", "Open the page in a browser.")
        step, name = found
        request.scope.setdefault("state", {})[request_limits.ADMITTED] = True
        origin, origins = request.headers.get("origin", ""), self._origins(request)

        async def act(sent: dict[str, Any]) -> dict[str, Any]:
            context = await self.collector.context()
            if step == "begin":
                shown = str(sent.get("shown"))
                return await self.questions.begin(context, place, name, shown, origins, origin)
            by = await self.questions.finish(context, place, name, sent, origins)
            said = f"Approved with the passkey of {by}. The next identical submit_job uses it, once."
            return {"message": said}

        with self.limits.one(place):
            return await answered(request, act)

    def _origins(self, request: Request) -> frozenset[str]:
        """Of pages that may ask a passkey: this server on loopback by the port it listens on, and those of settings."""
        _, port = request.scope.get("server") or ("", None)
        own = {f"{LOOPBACK}:{port}"} if port and not self.secure else set()
        return self.hosts.origins | own

    async def _page(self, request: Request, inner: str) -> Response:
        """A page, or with `live/` before its name what of it changes."""
        live = inner.startswith("live/")
        name, _, rest = inner.removeprefix("live/").partition("/")
        if name == "static":
            return static_file(rest)
        page = PAGES.get(name or "now")
        if page is None or (rest and not page.named):
            raise RequestRefused(404, "not_found", "There is no such page", "Begin at the first one.")
        asked = PageAsked(sanitize.line(rest)[:200], {key: request.query_params[key] for key in request.query_params})
        base = "../" * inner.count("/")
        status, shown = await self._shown(page, asked, base.removeprefix("../") if live else base)
        if not live:
            whole = fragments.page(
                shown=shown, page=page, pages=[one for one in PAGES.values() if one.listed], base=base,
                live=f"{base}live/{inner or page.name}" + (f"?{request.url.query}" if request.url.query else ""),
            )  # fmt: skip
            return HTMLResponse(whole, status)
        mark = f'"{hashlib.sha256(shown.encode()).hexdigest()[:32]}"'
        if request.headers.get("if-none-match") == mark:
            return Response(status_code=304, headers={"ETag": mark})
        return HTMLResponse(shown, status, {"ETag": mark})

    async def _shown(self, page: WebPage, asked: PageAsked, base: str) -> tuple[int, Markup]:
        """The status and the view; of what could not be read, why."""
        try:
            record = await self.collector.record(page, asked)
            return 200, await anyio.to_thread.run_sync(page.shown, record, asked, base, limiter=self.drawing)
        except AgentToolsError as error:
            _log.info("page failed", page=page.name, code=error.code, message=error.message)
            told = fragments.plain({"message": error.message, "hint": error.hint})
            return (404 if isinstance(error, InputError) else 503), fragments.fragment("failure", told, base)


async def serve_pages(
    answered: Callable[[Request], Awaitable[Response]], scope: Scope, receive: Receive, send: Send
) -> None:
    """One request, or the server's start and stop. Refusals become pages, and every page has the same headers."""
    if scope["type"] == "lifespan":
        await _lifespan(receive, send)
        return
    try:
        answer = await answered(Request(scope, receive))
    except RequestRefused as refused:
        answer = _refusal(refused)
    answer.headers.update({name: value for name, value in _HEADERS.items() if name not in answer.headers})
    await GZipMiddleware(answer, minimum_size=1000, compresslevel=5)(scope, receive, send)


async def _lifespan(receive: Receive, send: Send) -> None:
    """Agree to the server's start and stop."""
    for kind in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{kind}.complete"})


def _stranger() -> RequestRefused:
    hint = "Sign in with a token, or open the link that slurm-agent-tools dashboard printed: it works once."
    return RequestRefused(401, "unauthorized", "You are not signed in here", hint)


def _refusal(refused: RequestRefused) -> Response:
    """A refusal for people; the status and its headers are those of MCP over HTTP."""
    told = {"message": refused.message, "hint": refused.hint, "code": refused.code, "sign_in": refused.status == 401}
    text = fragments.environment().get_template("refused.html").render(**told)
    return HTMLResponse(text, refused.status, refused.headers)


def _sign_in_page(status: int, problem: str) -> Response:
    text = fragments.environment().get_template("sign_in.html").render(problem=problem)
    return HTMLResponse(text, status)


@cache
def _file(name: str) -> bytes:
    return (fragments.FOLDER / "static" / name).read_bytes()


def static_file(name: str) -> Response:
    """A file of ours: those that are listed, and nothing by a path."""
    if name not in _STATIC:
        raise RequestRefused(404, "not_found", "There is no such file", "Begin at the first page.")
    return Response(_file(name), media_type=_STATIC[name], headers={"Cache-Control": "no-cache"})
