"""The tools as callers over HTTP reach them: by the scope of their token, and ended well when the server stops."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from slurm_agent_tools.api.catalogue import TOOLS
from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.errors import AccessError, AgentToolsError, ScopeMissing, ServerStopping
from slurm_agent_tools.models.arguments import ToolArguments, WaitForJob
from slurm_agent_tools.models.shapes import Alert, Reply
from slurm_agent_tools.services.approval import Answer, Consult, Question
from slurm_agent_tools.services.context import Caller, ContextRegistry, Progress
from slurm_agent_tools.settings import LOCAL
from slurm_agent_tools.store.tokens import Token
from slurm_agent_tools.text import log_events

if TYPE_CHECKING:
    from slurm_agent_tools.api.views import Body
    from slurm_agent_tools.insights.memory_sync import MemorySync


READING = frozenset(tool.name for tool in TOOLS if tool.read_only)

_COMPUTING = frozenset({"analyze_log", "validate_config", "compare_results"})

_AT_ONCE = 4  # of what computes, for one token: the processors are for all of them

_LAST_LOOK = 4.0

_LONGEST_WRITING = 120.0  # above every time limit of the commands of one submission together

_T = TypeVar("_T")

_log = log_events.get_logger()


@dataclass(eq=False, slots=True)
class HttpVisit:
    """One HTTP request with its token. `gone` is set when nobody reads the answer any more."""

    token: Token
    listens: bool = False  # a stream that carries no answer
    gone: anyio.Event = field(default_factory=anyio.Event)
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


visit: ContextVar[HttpVisit] = ContextVar("visit")


class ScopedToolbox(Toolbox):
    """The toolbox of a server over HTTP."""

    def __init__(self, registry: ContextRegistry, memory: MemorySync | None = None) -> None:
        super().__init__(registry, memory)
        self.stopping = anyio.Event()
        self._calls = self._writing = 0
        self._turns: defaultdict[str, anyio.Semaphore] = defaultdict(lambda: anyio.Semaphore(_AT_ONCE))

    async def call(self, name: str, ask: ToolArguments, *, caller: Caller | None = None, **ways: Any) -> Reply:
        """As Toolbox.call. Raises ScopeMissing, and ServerStopping for what cannot begin or go on."""
        here, caller = visit.get(), caller or Caller()
        if not allowed(here.token, name):
            await self.log_refusal(name, caller)
            raise missing(here.token, name)
        if self.stopping.is_set():
            raise _stopping(f"{name} was not begun")
        consult: Consult | None = ways.pop("consult", None)
        ways["consult"] = None if consult is None else partial(self._consult, consult)
        with self._counted(name, writing=name not in READING):
            if isinstance(ask, WaitForJob):
                return await self._wait(here, ask, caller, ways)
            if name not in _COMPUTING:
                return await super().call(name, ask, caller=caller, **ways)
            async with self._turn(here, name):
                return await super().call(name, ask, caller=caller, **ways)

    async def view(self, name: str, arguments: Mapping[str, str], **ways: Any) -> Body:
        """As Toolbox.view; every token may read. Raises ServerStopping for what cannot begin."""
        if self.stopping.is_set():
            raise _stopping(f"{name} was not read")
        with self._counted(name, writing=False):
            async with self._turn(visit.get(), name):
                return await super().view(name, arguments, **ways)

    async def leave(self, seconds: float) -> None:
        """Begin to stop: waits end with what is known; what submits, cancels or saves is let finish."""
        self.stopping.set()
        with anyio.move_on_after(seconds):
            await self._until(lambda: self._calls == 0)
        with anyio.move_on_after(_LONGEST_WRITING):
            await self._until(lambda: self._writing == 0)

    async def log_refusal(self, tool: str, caller: Caller) -> None:
        """One line of the decision log for a call that the token does not allow, whatever cluster it named."""
        try:
            context = await self.registry.at(LOCAL)
            verdict = context.own_decision("deny")
            await context.log_decision(caller, verdict, tool, "refused", reason="the token may only read")
        except AgentToolsError as error:  # it is refused all the same
            _log.warning("refusal is not in the decision log", tool=tool, principal=caller.principal, why=error.message)

    @asynccontextmanager
    async def _turn(self, here: HttpVisit, name: str) -> AsyncIterator[None]:
        """Its turn among the calls of one token that compute. Raises when nobody wants the answer any more."""
        async with self._turns[here.token.id]:
            if self.stopping.is_set():
                raise _stopping(f"{name} was not begun")
            if here.gone.is_set():
                raise _alone("It was not begun.")
            yield

    async def _wait(self, here: HttpVisit, ask: WaitForJob, caller: Caller, ways: dict[str, Any]) -> Reply:
        inner = super().call
        whole = partial(inner, "wait_for_job", ask, caller=caller, **ways)
        reply = await until(whole, self.stopping, here.gone)
        if reply is not None:
            return reply
        if here.gone.is_set():
            raise _alone("The job goes on.")
        last: Progress | None = None
        with anyio.move_on_after(_LAST_LOOK):
            now = ask.model_copy(update={"timeout_seconds": 0.0})
            reply = await inner("wait_for_job", now, caller=caller, **(ways | {"progress": last}))
            words = "The server is stopping, so the wait ended early. The job goes on: call again when it is back."
            alert = Alert(severity="medium", code="server-stopping", message=words)
            return reply.model_copy(update={"alerts": [*getattr(reply, "alerts", []), alert]})
        raise _stopping(f"the wait for {', '.join(ask.wanted)} ended; the job goes on")

    async def _consult(self, ask: Consult, question: Question) -> Answer:
        """A server that stops waits for no person; the question can be answered later."""
        answer = await until(partial(ask, question), self.stopping)
        return "timeout" if answer is None else answer

    @contextmanager
    def _counted(self, name: str, *, writing: bool) -> Iterator[None]:
        self._calls += 1
        self._writing += writing
        try:
            yield
        finally:
            self._calls -= 1
            self._writing -= writing
            _log.info("call ended", tool=name, going_on=self._calls)

    @staticmethod
    async def _until(settled: Callable[[], bool]) -> None:
        while not settled():  # noqa: ASYNC110 - a few looks, at the very end
            await anyio.sleep(0.05)


def allowed(token: Token, tool: str) -> bool:
    """Whether a token may call a tool; what is not known to read only needs `write`."""
    return token.scope == "write" or (token.scope == "read" and tool in READING)


def missing(token: Token, tool: str) -> ScopeMissing:
    """The error of a token that may not."""
    needed, may = ("read", "scrape") if tool in READING else ("write", token.scope)
    hint = f"A person can make one that may: slurm-agent-tools token new --scope {needed}"
    return ScopeMissing(f"{tool} needs a token of scope {needed}; {token.name} may only {may}", hint=hint)


async def until(work: Callable[[], Awaitable[_T]], *events: anyio.Event) -> _T | None:
    """What `work` returns or raises; None when an event came first, then it was cancelled."""
    done: list[_T] = []
    failed: list[Exception] = []

    async def watch(event: anyio.Event) -> None:
        await event.wait()
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for event in events:
            group.start_soon(watch, event)
        try:
            done.append(await work())
        except Exception as error:  # noqa: BLE001 - raised again below, outside the group
            failed.append(error)
        group.cancel_scope.cancel()
    if failed:
        raise failed[0]
    return done[0] if done else None


def _alone(hint: str) -> AccessError:
    return AccessError("nobody waits for the answer any more", hint=hint)


def _stopping(what: str) -> ServerStopping:
    return ServerStopping(f"The server is stopping: {what}", hint="Call again when it is back.")
