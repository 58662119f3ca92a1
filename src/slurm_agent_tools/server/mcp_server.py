"""The MCP face: publishes the catalogue's tools over the SDK and decides nothing."""

from __future__ import annotations

import io
import re
import sys
import weakref
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, get_args

from mcp.server import MCPServer, ServerRequestContext
from mcp.server.apps import client_supports_apps
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.connection import allowed_log_levels
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    GetPromptResult,
    InputRequiredResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    PromptReference,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    SetLevelRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from mcp_types import jsonrpc_message_adapter
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import AnyUrl, ValidationError

from slurm_agent_tools import __version__
from slurm_agent_tools.api import catalogue, render, schemas, serialize
from slurm_agent_tools.api.toolbox import Toolbox, closed_after
from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.server import prompts, resources
from slurm_agent_tools.server.elicitation import ApprovalQuestions, AtClient, PendingQuestion
from slurm_agent_tools.server.web import chat_views
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.text import bounded_documents, log_events, sanitize
from slurm_agent_tools.text.bounded_documents import WholeLines

if TYPE_CHECKING:
    from slurm_agent_tools.api import brief
    from slurm_agent_tools.services.context import Caller

LEVELS: Mapping[str, LoggingLevel] = {"critical": "critical", "high": "error", "medium": "warning"}
"""The level of the protocol (RFC 5424) for each severity."""

_ORDER: tuple[LoggingLevel, ...] = get_args(LoggingLevel)

_LOGGER = "slurm-agent-tools.alerts"

_notices_log = log_events.get_logger()


class Notices:
    """Tells alerts to clients. As the SDK's middleware it hears from which level on a client wants them.

    The SDK serves logging/setLevel no more, as the newer era has none. Where it is served, the capability says so.
    """

    def __init__(self) -> None:
        self._least: dict[int, LoggingLevel] = {}  # what a client sent at its start, by identity: one for a connection

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer logging/setLevel, and add the capability to what the server says of itself. Raises MCPError."""
        if ctx.method == "logging/setLevel" and ctx.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
            self._choose(ctx.session, SetLevelRequestParams.model_validate(ctx.params or {}, by_name=False))
            return {}
        result = await call_next(ctx)
        if ctx.method in {"initialize", "server/discover"} and isinstance(result, dict):
            result.setdefault("capabilities", {}).setdefault("logging", {})
        return result

    async def tell(self, context: Context[Any, Any], tool: str, alerts: Iterable[Mapping[str, Any]]) -> None:
        """Send these alerts of a result, on the stream of its own request. A failure to do so fails no call."""
        for alert in alerts:
            level = LEVELS[alert["severity"]]
            try:
                if self._wanted(context, level):
                    await _send(context, level, {"tool": tool, **alert})
            except Exception as error:  # noqa: BLE001 - the alert is in the result all the same
                _notices_log.info("alert was not sent", code=alert["code"], error=type(error).__name__)
                return

    def _choose(self, session: ServerSession, asked: SetLevelRequestParams) -> None:
        begun = session.client_params
        if begun is None:
            raise MCPError(INVALID_REQUEST, "logging/setLevel comes after initialize")
        if id(begun) not in self._least:
            weakref.finalize(begun, self._least.pop, id(begun), None)
        self._least[id(begun)] = asked.level

    def _wanted(self, context: Context[Any, Any], level: LoggingLevel) -> bool:
        asked = context.request_context
        least = self._least.get(id(asked.session.client_params), "debug")
        allowed = allowed_log_levels(asked.protocol_version, asked.meta)
        return level in allowed and _ORDER.index(level) >= _ORDER.index(least)


async def _send(context: Context[Any, Any], level: LoggingLevel, data: Mapping[str, Any]) -> None:
    """As `Context.log` does, which is deprecated with the whole of protocol logging and warns."""
    params = LoggingMessageNotificationParams(level=level, logger=_LOGGER, data=dict(data))
    told = LoggingMessageNotification(params=params)
    await context.request_context.session.send_notification(told, related_request_id=context.request_id)


# --- Messages on standard input that the SDK cannot read --------------------------------------------------------------

# The SDK drops such a message, and who sent it would wait for ever. A request in its place, with the same id and one of
# these methods, which nobody serves, gets the error as its answer.
_UNREAD = {
    "unread/json": (PARSE_ERROR, "The message is no JSON, or is nested deeper than 190 levels."),
    "unread/request": (INVALID_REQUEST, "The message is no request of JSON-RPC 2.0."),
}


def answerable(line: bytes) -> bytes:
    """A line of JSON for the SDK, or, where it cannot read the line but the id of a request in it is plain, a stand-in.

    An answer of the client to a question of ours has no method, and is no request: it stays as it is.
    """
    line = line.replace(b"\r", b" ")  # between values it is a blank; the SDK would end the line there
    text = line.decode(errors="replace")
    try:
        jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValidationError as error:
        said = bounded_documents.outermost(text)
        if "id" not in said or "method" not in said or said["id"] == "null":
            return line
        method = (
            "unread/json"
            if error.errors(include_url=False, include_input=False)[0]["type"] == "json_invalid"
            else "unread/request"
        )
        return f'{{"jsonrpc": "2.0", "id": {said["id"]}, "method": "{method}"}}\n'.encode()
    return line


async def _unread(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """As the SDK's middleware: the answer to a stand-in. Raises MCPError."""
    if ctx.method in _UNREAD:
        raise MCPError(*_UNREAD[ctx.method])
    return await call_next(ctx)


# --- The MCP face: publishes the catalogue's tools over the SDK and decides nothing -----------------------------------


SERVER_NAME = "slurm-agent-tools"

_NAMES = re.compile(r"\b(" + "|".join(serialize.BY_NAME) + r")\b")

_log = log_events.get_logger()


def build_server(toolbox: Toolbox, settings: Settings) -> MCPServer[Any]:
    """A server with the tools of the chosen toolsets, in the catalogue's order, with resources and prompts."""
    return ToolServer(
        toolbox,
        settings,
        Notices(),
        title="Slurm agent tools",
        version=__version__,
        instructions=_prefixed(catalogue.INSTRUCTIONS, settings.tool_prefix),
        log_level="WARNING",
    )


async def serve(settings: Settings) -> None:
    """Serve on standard input and output until the client closes them; logs go to standard error."""
    log_events.configure(settings.log_level)  # before the SDK would install its own handler
    lines = WholeLines(sys.stdin.buffer, answerable)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(lines), encoding="utf-8", errors="replace")
    async with closed_after(Toolbox.open(settings)) as toolbox:
        await toolbox.during(build_server(toolbox, settings).run_stdio_async)


class ToolServer(MCPServer[Any]):
    """The SDK's server with our tools, resources, prompts and completions before any that are added to it."""

    def __init__(self, toolbox: Toolbox, settings: Settings, notices: Notices, **more: Any) -> None:
        mine = {tool.name: settings.tool_prefix + tool.name for tool in catalogue.published(settings.toolsets)}
        views = chat_views.offered(mine)
        super().__init__(SERVER_NAME, middleware=[notices, _unread], extensions=[views], **more)
        self._box, self._ours, self._notices = toolbox, settings, notices
        self._consultant = ApprovalQuestions(settings.approval_timeout)
        self._told: dict[int, brief.LastAnswers] = {}  # by what a client sent at its start: one for a session
        self._catalogue = {name: serialize.BY_NAME[tool] for tool, name in mine.items()}
        prompts.register(self, partial(_prefixed, prefix=settings.tool_prefix))
        self.completion()(self._complete)  # type: ignore[no-untyped-call]

    async def list_tools(self) -> list[Tool]:
        """The catalogue's tools, with our own schemas."""
        return [*self._listed, *await super().list_tools()]

    @cached_property
    def _listed(self) -> list[Tool]:
        """Made for the first client that lists the tools, not before `initialize`."""
        return [_published(name, tool, self._ours.tool_prefix) for name, tool in self._catalogue.items()]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call the toolbox, with our own check of the arguments. A refusal is a result; a failure has `isError`."""
        tool = self._catalogue.get(name)
        if tool is None or context is None:
            return await super().call_tool(name, arguments, context)
        person = AtClient(context, self._ours.approval_timeout)
        result = await self._call(tool, arguments, context, person)
        return person.pending or result  # a login node asked for something: the call comes back with the answer

    async def _call(
        self, tool: catalogue.Tool, arguments: dict[str, Any], context: Context[Any, Any], person: AtClient
    ) -> CallToolResult | InputRequiredResult:
        from slurm_agent_tools.api import brief  # noqa: PLC0415 - a server answers before it knows of jobs

        try:
            ask = serialize.parse(tool, arguments)
            reply = await self._box.call(
                tool.name,
                ask,
                caller=_caller(context),
                progress=_Rising(context).report,
                consult=partial(self._consultant.ask, context),
                asked=person.ask,
            )
            told, looks = self._last_answers(context), chat_views.looks(tool.name, ask)
            full = serialize.document(reply)  # made once: in a crowd of waits it is most of what an answer costs
            await self._notices.tell(context, tool.name, told.alerts(full, look=looks))
            body = told.new(tool.name, ask, full if ask.detail == "full" else brief.brief(reply))
            return _result(body, meta=await self._view(tool.name, ask, full, context))
        except PendingQuestion as pending:
            return pending.result
        except AgentToolsError as error:
            _log.info("tool failed", tool=tool.name, code=error.code, message=error.message)
            return _result(serialize.failure(error, tool.name), is_error=True)
        except Exception as error:  # noqa: BLE001 - nothing from an unforeseen error may reach the client
            _log.error("tool failed unexpectedly", tool=tool.name, exc_info=error)
            return _result(serialize.failure(error, tool.name), is_error=True)

    async def _view(
        self, tool: str, ask: ToolArguments, full: serialize.Document, context: Context[Any, Any]
    ) -> dict[str, Any] | None:
        """What a client that shows views gets beside the text: where it says so, or where a view asks."""
        if tool not in chat_views.VIEWS or not (client_supports_apps(context) or chat_views.looks(tool, ask)):
            return None
        return await chat_views.of_answer(self._box, tool, ask, full, _caller(context))

    def _last_answers(self, context: Context[Any, Any]) -> brief.LastAnswers:
        """What this session was told. Over HTTP without a session every request has its own: it was told nothing."""
        from slurm_agent_tools.api import brief  # noqa: PLC0415 - as above

        request = context.request_context
        begun = request.session.client_params
        if request.request is None:  # standard input: one client for the whole life of this server
            return self._told.setdefault(0, brief.LastAnswers())
        if begun is None:
            return brief.LastAnswers()
        if id(begun) not in self._told:
            weakref.finalize(begun, self._told.pop, id(begun), None)
        return self._told.setdefault(id(begun), brief.LastAnswers())

    async def list_resources(self) -> list[Resource]:
        """See resources."""
        return [*resources.listed(), *await super().list_resources()]

    async def list_resource_templates(self) -> list[ResourceTemplate]:
        """See resources."""
        return [*resources.templates(), *await super().list_resource_templates()]

    async def read_resource(
        self, uri: AnyUrl | str, context: Context[Any, Any] | None = None
    ) -> Iterable[ReadResourceContents] | InputRequiredResult:
        """Read one. Raises MCPError; a login node's question comes back as what is still needed."""
        if context is None or not str(uri).startswith(resources.SCHEME):
            return await super().read_resource(uri, context)
        person = AtClient(context, self._ours.approval_timeout)
        try:
            found = await resources.read(self._box, str(uri), caller=_caller(context), asked=person.ask)
        except MCPError:
            if person.pending is None:
                raise
        return person.pending or found

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """One prompt. Raises MCPError: the SDK has no code of its own for a prompt or an argument that is wrong."""
        others = [prompt.name for prompt in await self.list_prompts()]
        return await super().get_prompt(name, prompts.checked(name, arguments or {}, others), context)

    async def _complete(
        self,
        ref: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        named = prompts.kind if isinstance(ref, PromptReference) else resources.kind
        kind = named(ref.name if isinstance(ref, PromptReference) else ref.uri, argument.name)
        given = (context and context.arguments) or {}
        if kind is None:
            return Completion(values=[], total=0, has_more=False)
        found, total = await self._box.complete(kind, argument.value, cluster=given.get("cluster"))
        return Completion(values=found, total=total, has_more=total > len(found))


class _Rising:
    """Progress as MCP wants it: every report above the one before."""

    def __init__(self, context: Context[Any, Any]) -> None:
        self._context, self._last = context, -1.0

    async def report(self, done: float, total: float | None, message: str) -> None:
        if done > self._last:
            self._last = done
            await self._context.report_progress(done, total, sanitize.shown(message))


def _prefixed(words: str, prefix: str) -> str:
    return _NAMES.sub(rf"{prefix}\1", words) if prefix else words


def _published(name: str, tool: catalogue.Tool, prefix: str) -> Tool:
    """A tool as clients list it; its name, and the names in its description, carry the prefix."""
    return Tool(
        name=name,
        title=tool.title,
        description=_prefixed(tool.description, prefix),
        input_schema=schemas.written()[tool.name]["input"],
        output_schema=schemas.written()[tool.name]["output"],
        _meta=chat_views.of_tool(tool.name),
        annotations=ToolAnnotations(
            read_only_hint=tool.read_only,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent,
            open_world_hint=tool.open_world,
        ),
    )


def _caller(context: Context[Any, Any]) -> Caller:
    from slurm_agent_tools.services.context import Caller  # noqa: PLC0415 - a server answers before it knows of clusters

    params = context.request_context.session.client_params
    if params is None:  # a client of the stateless era need not say who it is
        return Caller(client="unknown", face="mcp", principal=_principal())
    info = params.client_info
    return Caller(client=info.name, version=info.version, face="mcp", principal=_principal())


def _principal() -> str:
    """The name of the token by which this call came over HTTP; empty on standard input."""
    token = get_access_token()
    return "" if token is None else token.client_id


def _result(body: serialize.Document, *, is_error: bool = False, meta: dict[str, Any] | None = None) -> CallToolResult:
    """The document, and the same in lines for clients that give their model text alone (docs/decisions/answers.md)."""
    marks = [f"data_only: {', '.join(body['data_only'])}"] if body.get("data_only") else []
    text = "\n".join([*render.lines(render.pieces(body)), *marks])
    content = [TextContent(type="text", text=text)]
    return CallToolResult(content=content, structured_content=body, is_error=is_error, _meta=meta)
