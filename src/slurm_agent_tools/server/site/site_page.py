"""A question's page at the site's service: a person reads there what would run, and says yes to it with a passkey.

The service's own account serves it, on a socket in a folder in which no user can listen, behind the site's name and its
TLS: no program of a user has a part in what the person reads. Who has the link reads the question; only a passkey that
the policy lists for this very origin says yes.

Who has a link is bounded as its user's, and who has none as whose process connects: the kernel names the user of this
machine, or the web server's account for everybody behind it. A question's page needs nothing of the second kind.
"""

from __future__ import annotations

import re
import secrets
import socket
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from slurm_agent_tools.scripts.reader import WHOSE, in_turn
from slurm_agent_tools.server.http import connections
from slurm_agent_tools.server.http.app import HttpServer
from slurm_agent_tools.server.http.refusals import RequestRefused, check_length
from slurm_agent_tools.server.http.request_limits import ADMITTED
from slurm_agent_tools.server.site.remote_files import RemoteFiles
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.server.site.user_records import RecordsByUser
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.dashboard_app import serve_pages, static_file
from slurm_agent_tools.server.web.passkey_calls import answered, called
from slurm_agent_tools.server.web.passkey_questions import PasskeyQuestions, text_sha256, unanswerable
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.settings import HttpSettings
from slurm_agent_tools.store.submissions import Approval
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport import passkeys
from slurm_agent_tools.transport.passkeys import PasskeyRefused
from slurm_agent_tools.transport.site_socket import CallLimits
from slurm_agent_tools.transport.unix_peer import UnixUser

LIMITS = HttpSettings(max_connections=64)
"""Connections to the page at once. Where there are more, those without a link make room."""

_LINKS, _NEW, _NEW_OF_ONE = 16, 512, 64
"""Pages of one user, new passkeys of everybody and of one caller that are kept at once; the caller's oldest ends.

Of pages at least as many as questions of one user may be open: all of them are listed, each with its page.
"""

_PIECE = 2**13
"""Characters of a text that are made a page at a time: as long as that takes, no other thread computes."""

_SLOWLY = 1.0
"""Seconds until a request that is over a limit is refused: else a crowd would take the service's time by refusals."""

_LAST = 5.0
"""Seconds for answers under way when the service ends."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9@._+-]{0,99}")


@dataclass(slots=True)
class _UsersPages:
    """What has a page of one user's: by the secret in its link, the project and the question."""

    user: UnixUser
    questions: PasskeyQuestions
    links: dict[str, tuple[str, str]] = field(default_factory=dict)
    making: anyio.Lock = field(default_factory=anyio.Lock)


async def _unseen(_: ClusterContext, item: Approval) -> list[str]:
    """The service opens no file of a user, and nobody is there to read one: it is compared when the yes is used."""
    return [] if item.plan else ["its text is gone"]


class SitePage:
    """The pages as an ASGI app. A link lasts as long as the question and this process."""

    def __init__(self, origin: str, users: RecordsByUser, config: SiteConfig) -> None:
        self.origin, self._users, self._config = origin, users, config
        self._pages: dict[str, _UsersPages] = {}
        self._counted: dict[str, int] = {}
        self._new: dict[str, tuple[str, bytes, int]] = {}
        self._last: dict[tuple[object, ...], bytes] = {}
        limits = partial(CallLimits, config.calls_per_minute, connections=LIMITS.max_connections)
        self._linked, self._others = limits(), limits()
        self._server: HttpServer | None = None
        self._ended = anyio.Event()

    async def serve(self, listens: socket.socket) -> None:
        """Answer on this socket until `end`."""
        self._server = HttpServer(connections.terms(self, LIMITS))
        await self._server.serve(sockets=[listens])
        self._ended.set()

    async def end(self) -> None:
        """Stop, once what is being answered is answered, or after some seconds."""
        if self._server is not None:
            self._server.should_exit = True
            with anyio.move_on_after(_LAST):
                await self._ended.wait()

    def link(self, user: UnixUser, project: str, name: str) -> str:
        """Where this question of the user's can be read and answered."""
        key = str(user.uid)
        if key not in self._pages:
            self._pages[key] = _UsersPages(user, PasskeyQuestions(compare=_unseen, counted=self._counted))
        links = self._pages[key].links
        known = (one for one, what in links.items() if what == (project, name))
        secret = next(known, None) or secrets.token_urlsafe(32)
        links.pop(secret, None)  # what is told again ends no sooner than what is new
        links[secret] = project, name
        for old in [*links][: -max(_LINKS, self._config.open_questions)]:
            del links[old]
        return f"{self.origin}/q/{key}/{secret}/"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or agree to the server's start and stop."""
        await serve_pages(self._answer, scope, receive, send)

    def refused(self) -> dict[str, dict[str, int]]:
        """How often whom which limit refused since this was asked last, with a link and without."""
        found = {"with_a_link": self._linked, "without": self._others}
        return {kind: counts for kind, limits in found.items() if (counts := limits.refused())}

    async def _answer(self, request: Request) -> Response:
        _, first, *rest = [*request.url.path.split("/", 3), "", ""]
        pages = self._pages.get(rest[0]) if first == "q" else None
        secret, _, inner = rest[1].partition("/")
        pages = pages if pages is not None and secret in pages.links else None
        who = (self._others, _uid(request)) if pages is None else (self._linked, pages.user.uid)
        with await self._place(*who):
            check_length(request.headers)
            if request.method not in {"GET", "HEAD", "POST"}:
                raise RequestRefused(405, "wrong_method", "These pages are read and answered", "Use GET or POST.")
            if pages is None:
                return await self._without_link(request, first, rest[0], rest[1])
            request.scope.setdefault("state", {})[ADMITTED] = True
            return await self._question(request, pages, secret, inner)

    async def _place(self, limits: CallLimits, uid: int) -> AbstractContextManager[object]:
        """A place for one request of a user's. Raises RequestRefused, in no hurry, where that is one too many."""
        refused = limits.over(uid, self._users.clock.now())
        if refused is None:
            return limits.call(uid)
        await anyio.sleep(_SLOWLY)
        raise RequestRefused(429, "too_many", *refused, retry_after="60")

    async def _without_link(self, request: Request, first: str, name: str, inner: str) -> Response:
        """A new passkey's page, or nothing."""
        if first == "static" and request.method != "POST":
            return static_file(name)
        if first == "enrol" and _NAME.fullmatch(name):
            return await self._enrolment(request, name, inner)
        hint = "Ask for a new link: slurm-agent-tools approve --socket PATH"
        raise RequestRefused(404, "not_found", "There is nothing at this path, or not any more", hint)

    async def _question(self, request: Request, pages: _UsersPages, secret: str, inner: str) -> Response:
        """The page of one question, a file of it, or a step of the answer to it."""
        folder, _, file = inner.partition("/")
        if folder == "static" and request.method != "POST":
            return static_file(file)
        project, name = pages.links[secret]
        with self._users.of(pages.user) as records:
            context = self._users.context(records, project, RemoteFiles(None))
            if request.method != "POST":
                async with pages.making:  # each reads the whole text
                    return HTMLResponse(await self._shown(context, pages, name))
            step = called(inner)
            if step is None or step[1] != name:
                raise RequestRefused(404, "not_found", "There is nothing at this path", "Use the page's button.")
            act = self._begun if step[0] == "begin" else self._finished
            origin = request.headers.get("origin", "")

            async def acted(sent: dict[str, Any]) -> dict[str, Any]:
                # Each refusal of an answer is a line in the user's log.
                records.check_room(self._config.state_mebibytes)
                return await act(context, pages.questions, secret, name, origin, sent)

            return await answered(request, acted)

    async def _shown(self, context: ClusterContext, pages: _UsersPages, name: str) -> bytes:
        """All of it, as at a terminal: nothing is masked, hidden signs are spelled out.

        A long one is made beside the event loop, of one user's one at a time: it may be asked for again and again.
        """
        WHOSE.set(pages.user.uid)
        item = await context.db(context.store.approvals.find, context.owner, name)
        if item is None:
            raise RequestRefused(404, "not_found", "The question is gone", "Let submit_job be called again.")
        without = await unanswerable(context, item)
        if without is None and not keys_for(self.origin, context.policy.policy.allowed_passkeys):
            without = f"the site lists no passkey for it. One is made at {self.origin}/enrol/NAME"
        around = {
            "id": item.id, "job_name": sanitize.line(item.job_name), "user": sanitize.line(pages.user.name),
            "expires": item.expires.isoformat(), "ended": item.closed(context.clock.now()), "without": without,
            "origin": self.origin,
        }  # fmt: skip
        return await in_turn(len(item.plan), _page_of, self._last, item, around)

    async def _begun(
        self, context: ClusterContext, questions: PasskeyQuestions, place: str, name: str, origin: str,
        sent: dict[str, Any],
    ) -> dict[str, Any]:  # fmt: skip
        return await questions.begin(context, place, name, str(sent.get("shown")), {self.origin}, origin)

    async def _finished(
        self, context: ClusterContext, questions: PasskeyQuestions, place: str, name: str, _: str, sent: dict[str, Any]
    ) -> dict[str, Any]:
        by = await questions.finish(context, place, name, sent, {self.origin})
        return {"message": f"Approved with the passkey of {by}. The next identical submit_job uses it, once."}

    # --- A new passkey: its line is shown, and counts once an administrator has written it into the policy ------------

    async def _enrolment(self, request: Request, name: str, inner: str) -> Response:
        if request.method != "POST":
            base = f"/enrol/{name}/"
            template = fragments.environment().get_template("enrol.html")
            return HTMLResponse(template.render(name=name, origin=self.origin, base=base))
        step = called(inner)
        if step is None:
            raise RequestRefused(404, "not_found", "There is nothing at this path", "Use the page's button.")
        act = partial(self._offered, _uid(request)) if step[0] == "begin" else self._made
        return await answered(request, partial(act, name))

    async def _offered(self, uid: int, name: str, _: dict[str, Any]) -> dict[str, Any]:
        made, number = secrets.token_bytes(32), secrets.token_urlsafe(16)
        options = passkeys.offered(name, self.origin, made, secrets.token_bytes(16))
        self._new[number] = name, made, uid
        held = Counter(caller for *_, caller in self._new.values())
        over = held[uid] > _NEW_OF_ONE
        if over or len(self._new) > _NEW:  # never that of one who has few
            crowd = uid if over else held.most_common(1)[0][0]
            del self._new[next(one for one, (*_, caller) in self._new.items() if caller == crowd)]
        return {"number": number, "options": options}

    async def _made(self, name: str, sent: dict[str, Any]) -> dict[str, Any]:
        asked = self._new.pop(str(sent.get("number")), None)
        if asked is None or asked[0] != name:
            raise PasskeyRefused("replayed", "This was answered before, or was not asked", "Load the page again.")
        if "failed" in sent:
            told = f"The browser or the passkey made none: {str(sent['failed'])[:40]!r}"
            raise PasskeyRefused("no answer", told, "It has to check who is there: a PIN, a finger or a face.")
        key = passkeys.made_key(sent.get("answer"), name=name, origin=self.origin, page=self.origin, made=asked[1])
        return {"message": f"Made. It counts once an administrator has this line in allowed_passkeys: {key.line}"}


def _page_of(last: dict[tuple[object, ...], bytes], item: Approval, around: Mapping[str, object]) -> bytes:
    """The page of one question: its text, and what stands around it. `last`: the one that was made last, as it is."""
    key = (shown := text_sha256(item), *around.values())
    page = last.get(key)
    if page is None:
        template = fragments.environment().get_template("site_question.html")
        page = b"".join(one.encode() for one in template.generate(around, plan=_pieces(item.plan), shown=shown))
        last.clear()
        last[key] = page
    return page


def _pieces(text: str) -> Iterator[str]:
    """Some lines after the other, hidden signs spelled out."""
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + _PIECE) + 1 or len(text)
        yield sanitize.visible(text[begin:end])
        begin = end


def _uid(request: Request) -> int:
    """Whose process connected: a user's, or the web server's for all behind it; one number where no account has it."""
    held = request.scope.get("state", {}).get(connections.HELD_BY)
    return connections.NO_ACCOUNT if held is None or held.uid is None else int(held.uid)


def keys_for(origin: str | None, lines: Iterable[str]) -> list[str]:
    """Whose passkeys of a policy's list answer at the service's page: those that were made for it, and no other."""
    return [key.name for key in passkeys.listed(lines) if key.origin == origin]
