"""The site's service on its socket: who calls is the kernel's word, what is asked is judged, and everything is bounded.

It runs under an account of its own, opens no file of a user, starts no job and becomes nobody. It takes the
sockets that systemd opened (LISTEN_FDS), or makes them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream

from slurm_agent_tools.errors import AgentToolsError, ConfigError, InputError
from slurm_agent_tools.scripts.reader import WHOSE
from slurm_agent_tools.server.site import user_records
from slurm_agent_tools.server.site.judging import SiteJudgement
from slurm_agent_tools.server.site.remote_files import RemoteFiles
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.server.site.ticket_issuer import TicketIssuer
from slurm_agent_tools.server.site.user_records import RecordsByUser, UserRecords
from slurm_agent_tools.services import approval
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.store.ledger_location import named_lock
from slurm_agent_tools.store.submissions import Approval
from slurm_agent_tools.store.ticket_folder import TicketFolder
from slurm_agent_tools.text import log_events
from slurm_agent_tools.transport import site_socket, unix_peer
from slurm_agent_tools.transport.site_socket import BrokenFrame, CallLimits, SiteFrame
from slurm_agent_tools.transport.unix_peer import UnixUser

if TYPE_CHECKING:
    from slurm_agent_tools.server.site.site_page import SitePage

_FIRST = 10.0
"""Seconds for the question of a connection."""

_CALL = 90.0
"""Seconds for the whole of a call, less than its caller waits."""

_SWEEP = 60.0

_FD = 3
"""Of the first socket that systemd hands over."""

_TURN = (
    0.001  # seconds that a thread computes before another has its turn: a large script is read beside calls of others
)
_HANDED = {"1": 1, "2": 2}
"""Sockets that it may hand over: ours, and the page's."""

_log = log_events.get_logger()

_Peer = Callable[[socket.socket], UnixUser]


class SiteService:
    """Answers calls; `peer` tells who is at the other end, `page` where a person answers by passkey."""

    def __init__(
        self, config: SiteConfig, users: RecordsByUser, *, peer: _Peer = unix_peer.peer, page: SitePage | None = None
    ) -> None:
        self._config, self._users, self._peer, self._page = config, users, peer, page
        self._issuer = TicketIssuer(config)
        self._limits = CallLimits(config.calls_per_minute)
        self._failures = UnexpectedFailures()

    async def handle(self, stream: SocketStream) -> None:
        """One connection to its end, whatever comes over it. Nothing of it reaches another one."""
        async with stream:
            try:
                user = self._peer(stream.extra(SocketAttribute.raw_socket))  # noqa: S610 - anyio's, not Django's
                if (refused := self._limits.over(user.uid, self._users.clock.now())) is not None:
                    await site_socket.send(stream, _refusal(*refused))
                    return
                with self._limits.call(user.uid) as keep:
                    await self._call(stream, user, keep)
            except BrokenFrame as error:
                _log.debug("a connection broke off", why=str(error))
            except AgentToolsError as error:
                await _last(stream, SiteFrame({"error": site_socket.told(error)}))
            except Exception as error:  # noqa: BLE001 - no caller may end the service
                self._failures.note(error)
                await _last(
                    stream, _refusal("the site's service failed unexpectedly", "Nothing was given; call again.")
                )

    async def _call(self, stream: SocketStream, user: UnixUser, keep: Callable[[int], None]) -> None:
        words = (await site_socket.receive(stream, wait=_FIRST, most=site_socket.QUESTION)).words
        _check_characters(words)
        WHOSE.set(user.uid)
        with self._users.of(user) as records:
            await self._with_records(stream, words, records, keep)

    async def _with_records(
        self, stream: SocketStream, words: Mapping[str, Any], records: UserRecords, keep: Callable[[int], None]
    ) -> None:
        context = self._users.context(records, _project(words), RemoteFiles(stream, keep))
        judgement = SiteJudgement(context, records, self._issuer, self._config)
        given: str | None = None
        try:
            with anyio.fail_after(_CALL):
                answer = await self._answer(words, context, records, judgement)
            self._link(records.user, context, answer)
            given = answer.get("token")
            await site_socket.send(stream, SiteFrame({"answer": answer}))
            await judgement.log_given()
        except TimeoutError:
            await _last(stream, _refusal(f"it was not judged within {_CALL:.0f} s", "Nothing was given; call again."))
        except BrokenFrame:
            if given is not None:  # nobody has it: the slot is free at once
                await judgement.settle(given)
            raise

    async def _answer(
        self, words: Mapping[str, Any], context: ClusterContext, records: UserRecords, judgement: SiteJudgement
    ) -> dict[str, Any]:
        call = str(words.get("call"))
        if call == "judge":
            return await judgement.answer(words)
        if call == "settle":
            await judgement.settle(str(words.get("token")))
            return {}
        if call == "questions":
            return await _listed(context)
        if call in {"question", "answer"}:  # both read the script again, which others have to wait for
            async with records.reading:
                return await (_shown if call == "question" else _answered)(context, words)
        raise InputError("call", call, "is not known here", hint="Is the program as new as the service?")

    def _link(self, user: UnixUser, context: ClusterContext, answer: dict[str, Any]) -> None:
        """Say of each question that is told where it can be answered by passkey."""
        for one in [*answer.get("questions", ()), *([answer] if "text" in answer else ())]:
            if self._page is not None and not one["granted"]:
                one["page"] = self._page.link(user, context.project, one["id"])

    async def sweep(self) -> None:
        """Remove tickets that are over, and log who was refused by a limit: one line for all, however many they are."""
        folder = TicketFolder(self._config.tickets)
        while True:
            if self._config.tokens == "files":
                try:
                    await anyio.to_thread.run_sync(folder.sweep, self._users.clock.now().timestamp())
                    self._users.tickets.clear()
                    self._users.tickets.update(folder.bytes_of)
                except AgentToolsError as error:
                    _log.warning("tickets cannot be removed", what=error.message)
            await anyio.sleep(_SWEEP)
            if refused := self._limits.refused():
                _log.warning("calls were refused by a limit", calls=refused)
            if again := self._failures.again():
                _log.error("further calls failed unexpectedly in the same way", calls=again)
            if self._page is not None and (of_page := self._page.refused()):
                _log.warning("requests to the page were refused by a limit", **of_page)


class UnexpectedFailures:
    """Failures that nobody foresaw: of each kind one is logged with its traceback, and the next are counted.

    Else a caller who has found one fills the log with it.
    """

    def __init__(self) -> None:
        self._counts = Counter[str]()

    def note(self, error: Exception) -> None:
        """Log it, or count it where one of its type and place was logged since the counts were asked for."""
        frames, place = error.__traceback__, "an unknown place"
        while frames is not None:
            place = f"{Path(frames.tb_frame.f_code.co_filename).name}:{frames.tb_lineno}"
            frames = frames.tb_next
        kind = f"{type(error).__name__} at {place}"
        self._counts[kind] += 1
        if self._counts[kind] == 1:
            _log.error("a call failed unexpectedly", exc_info=error)

    def again(self) -> dict[str, int]:
        """How often each kind came after the one that was logged, since this was asked last."""
        found, self._counts = self._counts, Counter()
        return {kind: count - 1 for kind, count in found.most_common() if count > 1}


def _refusal(message: str, hint: str) -> SiteFrame:
    return SiteFrame({"error": {"code": "site_unreachable", "message": message, "hint": hint}})


async def _last(stream: SocketStream, frame: SiteFrame) -> None:
    with suppress(BrokenFrame):
        await site_socket.send(stream, frame)


def _check_characters(words: Mapping[str, Any]) -> None:
    """Raises InputError for half of a character, which JSON can spell, and which neither a file nor a ledger keeps."""
    for name, value in words.items():
        try:
            json.dumps([name, value], ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])
            problem = f"contains {half}, which is half of a character"
            raise InputError(ascii(name)[1:-1], value, problem, hint="Send what UTF-8 can spell.") from error


def _project(words: Mapping[str, Any]) -> str:
    """The folder that the caller names: a name in that user's records, and never opened here. Raises InputError."""
    project = words.get("project")
    plain = isinstance(project, str) and len(project) < 4096 and os.path.isabs(project) and "\0" not in project  # noqa: PTH117 - a name
    if not plain or os.path.normpath(str(project)) != project:
        raise InputError("project", None, "is no whole path of a folder")
    return str(project)


# --- Questions to a person: shown to their own user alone, answered by what proves itself -----------------------------

# Who carries a signature does not matter: it is verified against the site's own list. A passkey signs what a page asks
# it, so its answer counts on the service's own page alone (site_page), and never over this socket.

_LONGEST = 64 * 1024
"""Characters of a signature."""

_HINT = "See `slurm-agent-tools approve --socket PATH` for the open ones; a new submit_job asks again."


async def _listed(context: ClusterContext) -> dict[str, Any]:
    """The open questions of this user in this project, their texts left where they are: each may be megabytes."""
    found = await context.db(partial(context.store.approvals.open, texts=False), context.owner)
    return {"questions": [_head(item) for item in found]}


async def _shown(context: ClusterContext, words: Mapping[str, Any]) -> dict[str, Any]:
    """One of them with its text, if it can still be answered and is about what would run."""
    item = await _open(context, words)
    return {**_head(item), "text": item.plan}


async def _answered(context: ClusterContext, words: Mapping[str, Any]) -> dict[str, Any]:
    """A yes that proves itself, or a no. Raises InputError for a yes that does not count."""
    item, now = await _open(context, words), context.clock.now()
    if words.get("decline") is True:
        await context.db(context.store.approvals.update, item, declined=now, channel="signed")
        await approval.log_answer(context, item, "declined", channel="signed", by=context.owner.user, face="site")
        return {"by": context.owner.user}
    if (channel := words.get("channel")) != "signed":
        hint = "Give a signature (signed). A passkey answers on the service's page, whose link `approve` prints."
        raise InputError("channel", str(channel)[:100], "does not count here", hint=hint)
    proof, who = words.get("proof"), words.get("who")
    if not isinstance(proof, str) or len(proof) > _LONGEST:
        raise InputError("signature", None, f"is no text of at most {_LONGEST} characters")
    named = None if who is None else str(who)[:200]
    given = replace(item, granted=now, granted_by=named, channel="signed", signature=proof)
    consent = await approval.counts(context, given)
    if consent is None:
        allowed = ", ".join(context.policy.policy.approval_channels) or "none"
        hint = f"Sign exactly what --show prints, with a key that the site lists. Ways that count here: {allowed}."
        raise InputError("signature", None, "does not count: it is not by somebody whom the site lists", hint=hint)
    changes = {"granted": now, "granted_by": consent.by, "channel": "signed", "signature": proof}
    if not await context.db(context.store.approvals.grant, item, **changes):
        raise InputError("id", item.id, "was exchanged while it was read", hint="Look at it again.")
    await approval.log_answer(context, item, "approved", channel="signed", by=consent.by, face="site")
    return {"by": consent.by}


def _head(item: Approval) -> dict[str, Any]:
    return {
        "id": item.id, "job_name": item.job_name, "expires": item.expires.isoformat(),
        "granted": item.channel if item.granted else None,
    }  # fmt: skip


async def _open(context: ClusterContext, words: Mapping[str, Any]) -> Approval:
    """Of this user alone. Raises InputError where it cannot be answered any more."""
    name = str(words.get("id"))
    item = await context.db(context.store.approvals.find, context.owner, name)
    if item is None:
        raise InputError("id", name, "is no question of this user", hint=_HINT)
    if (closed := item.closed(context.clock.now())) is not None:
        raise InputError("id", name, closed, hint=_HINT)
    if words.get("decline") is not True and (found := await approval.outdated(context, item)):
        hint = "Nothing was changed. Let submit_job be called again: it asks about what would run."
        raise InputError("id", name, f"is not what would run now: {'; '.join(found)}", hint=hint)
    return item


# --- The process -----------------------------------------------------------------------------------------------------


def serve(config: SiteConfig) -> None:
    """Answer until the process is told to end. Raises ConfigError and StorageError."""
    state = user_records.state_of(config)
    with named_lock(state, "service-lock.sqlite3") as mine:
        if not mine:
            raise ConfigError("state", str(state), "is in use by another service", hint="Stop that one first.")
        sys.setswitchinterval(_TURN)
        anyio.run(_served, config)


async def _served(config: SiteConfig) -> None:
    users, page = RecordsByUser(config), None
    listener, shown = await listen(config), None
    if config.page_origin is not None:
        from slurm_agent_tools.server.site import site_page  # noqa: PLC0415 - a web server, where a site has a page

        page, shown = site_page.SitePage(config.page_origin, users, config), await listen(config, page=True)
    service = SiteService(config, users, page=page)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(service.sweep)
        group.start_soon(listener.serve, service.handle)
        if page is not None and shown is not None:
            group.start_soon(page.serve, shown.extra(SocketAttribute.raw_socket))  # noqa: S610 - as above
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as told:
            async for _ in told:
                if page is not None:
                    await page.end()
                group.cancel_scope.cancel()
                break
    users.close()


async def listen(config: SiteConfig, *, page: bool = False) -> SocketListener:
    """The socket that systemd opened for this very process, else one that is made here, for everybody to call.

    The page's is for its group alone, where one is named. Raises ConfigError where systemd opened others, and for a
    group that cannot have it.
    """
    wanted = config.page_socket if page else config.socket
    if os.environ.get("LISTEN_PID") == str(os.getpid()) and os.environ.get("LISTEN_FDS") in _HANDED:
        fds = range(_FD, _FD + _HANDED[os.environ["LISTEN_FDS"]])
        for handed in (socket.socket(fileno=fd) for fd in fds):
            if handed.getsockname() == str(wanted) or (len(fds) == 1 and not page):
                handed.setblocking(False)
                handed.set_inheritable(False)
                return await SocketListener.from_socket(handed)
            handed.detach()  # the other one's
        hint = "Run `slurm-agent-tools site install --yes`, then: systemctl restart slurm-agent-site.socket"
        raise ConfigError("page_origin", config.page_origin, f"needs the socket {wanted} of systemd", hint=hint)
    wanted.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    if page and config.page_group is not None:
        return await _for_group(wanted, config.page_group)
    return await anyio.create_unix_listener(wanted, mode=0o666)


async def _for_group(wanted: Path, group: str) -> SocketListener:
    """A socket that the members of a group alone may call. Raises ConfigError."""
    listener = await anyio.create_unix_listener(wanted, mode=0o600)
    try:
        _give(wanted, group)
    except ConfigError:
        await listener.aclose()
        raise
    return listener


def _give(wanted: Path, group: str) -> None:
    try:
        shutil.chown(wanted, group=group)
        wanted.chmod(0o660)
    except LookupError as error:
        hint = "Name the web server's group in site.toml, such as www-data."
        raise ConfigError("page_group", group, "is no group of this machine", hint=hint) from error
    except OSError as error:
        hint = "Start the service by the line that `slurm-agent-tools site install` prints: it runs as a member."
        problem = f"is no group of which the service is a member ({error.strerror})"
        raise ConfigError("page_group", group, problem, hint=hint) from error
