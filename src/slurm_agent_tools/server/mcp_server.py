"""The MCP face: publishes the catalogue's nine tools over the SDK and decides nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property, partial
from typing import Any

import anyio
from mcp.server import MCPServer, Server, ServerRequestContext
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.connection import allowed_log_levels
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool as SdkTool
from mcp.server.session import ServerSession
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    EmptyResult,
    GetPromptResult,
    InputRequiredResult,
    LoggingLevel,
    LoggingMessageNotification,
    LoggingMessageNotificationParams,
    Prompt,
    PromptReference,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
    SetLevelRequestParams,
    TextContent,
    ToolAnnotations,
)
from pydantic import AnyUrl, PrivateAttr

from slurm_agent_tools import __version__
from slurm_agent_tools.api import catalogue, schemas, serialize
from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.server import prompts, resources
from slurm_agent_tools.server.elicitation import ApprovalQuestions, AtClient, PendingQuestion
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.text import log_events, sanitize

LEVELS: Mapping[str, LoggingLevel] = {"critical": "critical", "high": "error", "medium": "warning"}
"""The level of the protocol (RFC 5424) for each severity."""

_ORDER: tuple[LoggingLevel, ...] = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip

_KEPT = "slurm_agent_tools.level"

_LOGGER = "slurm-agent-tools.alerts"

_notices_log = log_events.get_logger()


def register_logging(server: Server[Any]) -> None:
    """Let clients of the older era choose a level; that also tells them that there is something to hear."""
    server.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)


async def _set_level(context: ServerRequestContext[Any, Any], params: SetLevelRequestParams) -> EmptyResult:
    _scratch(context.session)[_KEPT] = params.level
    return EmptyResult()


async def send_notices(context: Context[Any, Any], tool: str, body: Mapping[str, Any]) -> None:
    """Send every alert of a result once, on the stream of its own request. A failure to do so fails no call."""
    for alert in body.get("alerts") or ():
        level = LEVELS[alert["severity"]]
        try:
            if _wanted(context, level):
                await _send(context, level, {"tool": tool, **alert})
        except Exception as error:  # noqa: BLE001 - the alert is in the result all the same
            _notices_log.info("alert was not sent", code=alert["code"], error=type(error).__name__)
            return


def _wanted(context: Context[Any, Any], level: LoggingLevel) -> bool:
    asked = context.request_context
    least = _scratch(asked.session).get(_KEPT, "debug")
    allowed = allowed_log_levels(asked.protocol_version, asked.meta)
    return level in allowed and _ORDER.index(level) >= _ORDER.index(least)


async def _send(context: Context[Any, Any], level: LoggingLevel, data: Mapping[str, Any]) -> None:
    """As `Context.log` does, which is deprecated with the whole of protocol logging and warns."""
    params = LoggingMessageNotificationParams(level=level, logger=_LOGGER, data=dict(data))
    told = LoggingMessageNotification(params=params)
    await context.request_context.session.send_notification(told, related_request_id=context.request_id)


def _scratch(session: ServerSession) -> dict[str, Any]:
    """What is remembered of one connection; in the newer era of one request only."""
    return session._connection.state  # noqa: SLF001 - the SDK has no other way from a request to its connection


# --- The MCP face: publishes the catalogue's nine tools over the SDK and decides nothing ------------------------------


SERVER_NAME = "slurm-agent-tools"

_NAMES = re.compile(r"\b(" + "|".join(serialize.BY_NAME) + r")\b")

_log = log_events.get_logger()


def build_server(toolbox: Toolbox, settings: Settings) -> MCPServer[Any]:
    """A server with the nine tools, in the catalogue's order, and the resources and prompts around them."""
    prefix, consultant = settings.tool_prefix, ApprovalQuestions(settings.approval_timeout)
    return ToolServer(
        toolbox,
        settings,
        SERVER_NAME,
        title="Slurm agent tools",
        version=__version__,
        instructions=_prefixed(catalogue.INSTRUCTIONS, prefix),
        tools=[GuardedTool.publish(tool, toolbox, prefix, consultant) for tool in catalogue.TOOLS],
        log_level="WARNING",
    )


async def serve(settings: Settings) -> None:
    """Serve on standard input and output until the client closes them; logs go to standard error."""
    log_events.configure(settings.log_level)  # before the SDK would install its own handler
    toolbox = Toolbox.open(settings)
    try:
        await toolbox.during(build_server(toolbox, settings).run_stdio_async)
    finally:
        with anyio.CancelScope(shield=True):
            await toolbox.close()


class ToolServer(MCPServer[Any]):
    """The SDK's server with our resources, prompts and completions before any that are added to it."""

    def __init__(self, toolbox: Toolbox, settings: Settings, name: str, **more: Any) -> None:
        super().__init__(name, **more)
        self._box, self._settings = toolbox, settings
        self.completion()(self._complete)  # type: ignore[no-untyped-call]
        register_logging(self._lowlevel_server)

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
        person = AtClient(context, self._settings.approval_timeout)
        try:
            found = await resources.read(self._box, str(uri), caller=_caller(context), asked=person.ask)
        except MCPError:
            if person.pending is None:
                raise
        return person.pending or found

    async def list_prompts(self) -> list[Prompt]:
        """See prompts."""
        return [*prompts.listed(), *await super().list_prompts()]

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[Any, Any] | None = None,
    ) -> GetPromptResult | InputRequiredResult:
        """One prompt, with the tools' names as they are published. Raises MCPError."""
        if name in {added.name for added in await super().list_prompts()}:
            return await super().get_prompt(name, arguments, context)
        given = {key: str(value) for key, value in (arguments or {}).items()}
        return prompts.filled(name, given, partial(_prefixed, prefix=self._settings.tool_prefix))

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


class GuardedTool(SdkTool):
    """One catalogue entry for the SDK: our own check of the arguments, our own words for every failure."""

    _tool: catalogue.Tool = PrivateAttr()
    _toolbox: Toolbox = PrivateAttr()
    _consultant: ApprovalQuestions = PrivateAttr()

    @classmethod
    def publish(cls, tool: catalogue.Tool, toolbox: Toolbox, prefix: str, consultant: ApprovalQuestions) -> GuardedTool:
        """The tool as clients list it; its name, and the names in its description, carry the prefix."""
        base = SdkTool.from_function(
            _never, name=prefix + tool.name, title=tool.title, description=_prefixed(tool.description, prefix),
            annotations=_hints(tool), structured_output=False,
        )  # fmt: skip
        made = cls(**{name: getattr(base, name) for name in SdkTool.model_fields})
        made.parameters = schemas.input_schema(tool.ask)
        made._tool, made._toolbox, made._consultant = tool, toolbox, consultant
        return made

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """What answers look like; made for the first client that lists the tools, not before `initialize`."""
        return schemas.output_schema(schemas.REPLIES[self._tool.name])

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[Any, Any],
        convert_result: bool = False,  # noqa: ARG002 - the SDK's signature
    ) -> CallToolResult | InputRequiredResult:
        """Call the toolbox. A refusal is an ordinary result; a failure is one with `isError`."""
        person = AtClient(context, self._consultant.seconds)
        result = await self._call(arguments, context, person)
        return person.pending or result  # a login node asked for something: the call comes back with the answer

    async def _call(
        self, arguments: dict[str, Any], context: Context[Any, Any], person: AtClient
    ) -> CallToolResult | InputRequiredResult:
        try:
            ask = serialize.parse(self._tool, arguments)
            reply = await self._toolbox.call(
                self._tool.name,
                ask,
                caller=_caller(context),
                progress=_Rising(context).report,
                consult=partial(self._consultant.ask, context),
                asked=person.ask,
            )
            body = serialize.document(reply)
            await send_notices(context, self._tool.name, body)
            return _result(body)
        except PendingQuestion as pending:
            return pending.result
        except AgentToolsError as error:
            _log.info("tool failed", tool=self._tool.name, code=error.code, message=error.message)
            return _result(serialize.failure(error, self._tool.name), is_error=True)
        except Exception as error:  # noqa: BLE001 - nothing from an unforeseen error may reach the client
            _log.error("tool failed unexpectedly", tool=self._tool.name, exc_info=error)
            return _result(serialize.failure(error, self._tool.name), is_error=True)


class _Rising:
    """Progress as MCP wants it: every report above the one before."""

    def __init__(self, context: Context[Any, Any]) -> None:
        self._context, self._last = context, -1.0

    async def report(self, done: float, total: float | None, message: str) -> None:
        if done > self._last:
            self._last = done
            await self._context.report_progress(done, total, sanitize.shown(message))


async def _never() -> None:
    """Stand where the SDK wants a function; GuardedTool.run answers in its place."""


def _prefixed(words: str, prefix: str) -> str:
    return _NAMES.sub(rf"{prefix}\1", words) if prefix else words


def _hints(tool: catalogue.Tool) -> ToolAnnotations:
    return ToolAnnotations(
        read_only_hint=tool.read_only,
        destructive_hint=tool.destructive,
        idempotent_hint=tool.idempotent,
        open_world_hint=tool.open_world,
    )


def _caller(context: Context[Any, Any]) -> Caller:
    params = context.request_context.session.client_params
    if params is None:  # a client of the stateless era need not say who it is
        return Caller(client="unknown", face="mcp", principal=_principal())
    info = params.client_info
    return Caller(client=info.name, version=info.version, face="mcp", principal=_principal())


def _principal() -> str:
    """The name of the token by which this call came over HTTP; empty on standard input."""
    token = get_access_token()
    return "" if token is None else token.client_id


def _result(body: serialize.Document, *, is_error: bool = False) -> CallToolResult:
    return CallToolResult(
        content=[TextContent(type="text", text=serialize.text(body))], structured_content=body, is_error=is_error
    )
