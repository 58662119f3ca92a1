"""Fixture tools that ask the client something, in both eras, as the conformance scenarios expect them."""

import warnings
from typing import Annotated, Any

from mcp import MCPDeprecationWarning, MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    EmptyResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    SamplingCapability,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)
from pydantic import Field

MISSING_CAPABILITY = -32021
Schema = dict[str, Any]


def add(server: MCPServer[Any]) -> None:
    """Put all of this file on the server."""
    for make in (_legacy, _forms, _rounds, _shapes, _methods):
        make(server)


def form(message: str, properties: Schema, required: list[str] | None = None) -> ElicitRequest:
    schema = {"type": "object", "properties": properties, "required": required or list(properties)}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(words: str, tokens: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=words))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=tokens))


NAME = form("What is your name?", {"name": {"type": "string"}})
CONFIRM = form("Please confirm", {"ok": {"type": "boolean"}})


def accepted(ctx: Context, key: str) -> dict[str, Any] | None:
    """What the client filled in for one form; None when it has not, or declined."""
    answer = (ctx.input_responses or {}).get(key)
    return dict(answer.content or {}) if isinstance(answer, ElicitResult) and answer.action == "accept" else None


async def elicit(ctx: Context, request: ElicitRequest) -> str:
    """Ask over the open connection, as clients up to 2025-11-25 are asked."""
    params = request.params
    if ctx.client_capabilities is None or ctx.client_capabilities.elicitation is None:
        raise ToolError("this client cannot elicit")
    answer = await ctx.request_context.session.elicit_form(
        params.message, params.requested_schema, related_request_id=ctx.request_id
    )
    return f"action={answer.action}, content={answer.content}"


def _legacy(server: MCPServer[Any]) -> None:
    @server.tool()
    async def test_sampling(prompt: str, ctx: Context) -> str:
        """Ask the client's model."""
        if ctx.client_capabilities is None or ctx.client_capabilities.sampling is None:
            raise ToolError("this client cannot sample")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)
            answer = await ctx.request_context.session.create_message(
                sample(prompt, 100).params.messages, max_tokens=100, related_request_id=ctx.request_id
            )
        return f"LLM response: {answer.content}"

    @server.tool()
    async def test_elicitation(message: str, ctx: Context) -> str:
        """Ask the person two things."""
        fields = {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        }
        return "User response: " + await elicit(ctx, form(message, fields))


def _forms(server: MCPServer[Any]) -> None:
    defaults: Schema = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    plain = ["option1", "option2", "option3"]
    titled = [{"const": f"value{number}", "title": f"Choice {number}"} for number in (1, 2, 3)]
    legacy = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
    enums: Schema = {
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", **legacy},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }

    @server.tool()
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        """Ask with a default for every kind of field."""
        return "Elicitation completed: " + await elicit(ctx, form("Review", defaults, ["name"]))

    @server.tool()
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        """Ask with every kind of choice."""
        return "Elicitation completed: " + await elicit(ctx, form("Choose", enums, ["untitledSingle"]))


def _rounds(server: MCPServer[Any]) -> None:  # noqa: C901 - one tool after the other
    @server.tool()
    async def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
        """Ask for a name."""
        answer = accepted(ctx, "user_name")
        if answer is None or not isinstance(answer.get("name"), str):
            return InputRequiredResult(input_requests={"user_name": NAME})
        return f"Hello, {answer['name']}!"

    @server.tool()
    async def test_input_required_result_request_state(ctx: Context) -> str | InputRequiredResult:
        """Ask with a state that has to come back."""
        if accepted(ctx, "confirm") is None or ctx.request_state is None:
            return InputRequiredResult(input_requests={"confirm": CONFIRM}, request_state="asked")
        return "state-ok" if ctx.request_state == "asked" else "state-wrong"

    @server.tool()
    async def test_input_required_result_tampered_state(ctx: Context) -> str | InputRequiredResult:
        """The same: the SDK seals the state and refuses a changed one before it gets here."""
        return await test_input_required_result_request_state(ctx)

    @server.tool()
    async def test_input_required_result_multi_round(ctx: Context) -> str | InputRequiredResult:
        """Ask twice."""
        color = form("Step 2: What is your favorite color?", {"color": {"type": "string"}})
        name = form("Step 1: What is your name?", {"name": {"type": "string"}})
        if ctx.request_state == "step2" and (answer := accepted(ctx, "step2")):
            return f"done: {answer['color']}"
        if ctx.request_state == "step1" and accepted(ctx, "step1"):
            return InputRequiredResult(input_requests={"step2": color}, request_state="step2")
        return InputRequiredResult(input_requests={"step1": name}, request_state="step1")

    @server.prompt()
    async def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
        """A prompt that asks first."""
        answer = accepted(ctx, "user_context")
        if answer is None:
            asked = form("What context should the prompt use?", {"context": {"type": "string"}})
            return InputRequiredResult(input_requests={"user_context": asked})
        return f"Use this context: {answer['context']}"


def _shapes(server: MCPServer[Any]) -> None:  # noqa: C901 - one tool after the other
    def once(ctx: Context, requests: dict[str, InputRequest], state: str | None = None) -> str | InputRequiredResult:
        answers = ctx.input_responses or {}
        if requests.keys() <= answers.keys():
            return "; ".join(str(answers[key]) for key in requests)
        return InputRequiredResult(input_requests=requests, request_state=state)

    @server.tool()
    async def test_input_required_result_sampling(ctx: Context) -> str | InputRequiredResult:
        """Ask the client's model."""
        return once(ctx, {"capital_question": sample("What is the capital of France?", 100)})

    @server.tool()
    async def test_input_required_result_list_roots(ctx: Context) -> str | InputRequiredResult:
        """Ask for the client's roots."""
        return once(ctx, {"client_roots": ListRootsRequest()})

    @server.tool()
    async def test_input_required_result_multiple_inputs(ctx: Context) -> str | InputRequiredResult:
        """Ask for three things at once."""
        greeting = sample("Generate a greeting", 50)
        return once(ctx, {"user_name": NAME, "greeting": greeting, "client_roots": ListRootsRequest()}, "asked")

    @server.tool()
    async def test_input_required_result_capabilities(ctx: Context) -> str | InputRequiredResult:
        """Ask only what the client can answer."""
        can = ctx.client_capabilities or ClientCapabilities()
        requests: dict[str, InputRequest] = {}
        if can.sampling is not None:
            requests["greeting"] = sample("Generate a greeting", 50)
        if can.elicitation is not None:
            requests["user_name"] = NAME
        return once(ctx, requests) if requests else "nothing to ask"

    @server.tool()
    async def test_streaming_elicitation(ctx: Context) -> str | InputRequiredResult:
        """Ask after some progress."""
        await ctx.report_progress(1, 2)
        return once(ctx, {"confirm": CONFIRM})

    @server.tool()
    async def test_missing_capability(ctx: Context) -> str:
        """Need sampling."""
        if ctx.client_capabilities is None or ctx.client_capabilities.sampling is None:
            needed = ClientCapabilities(sampling=SamplingCapability())
            raise MCPError(
                code=MISSING_CAPABILITY,
                message="sampling is needed",
                data={"requiredCapabilities": needed.model_dump(by_alias=True, exclude_none=True)},
            )
        return "sampling is there"

    @server.tool()
    async def test_header_parameter(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})],
    ) -> str:
        """Take a parameter that HTTP clients repeat in a header."""
        return region


def _methods(server: MCPServer[Any]) -> None:
    """Requests of the older era that the SDK leaves to the server."""
    watched: set[str] = set()

    async def subscribe(ctx: object, params: SubscribeRequestParams) -> EmptyResult:
        watched.add(str(params.uri))
        return EmptyResult()

    async def unsubscribe(ctx: object, params: UnsubscribeRequestParams) -> EmptyResult:
        watched.discard(str(params.uri))
        return EmptyResult()

    async def set_level(ctx: object, params: SetLevelRequestParams) -> EmptyResult:
        return EmptyResult()

    inner = server._lowlevel_server
    inner.add_request_handler("resources/subscribe", SubscribeRequestParams, subscribe)
    inner.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, unsubscribe)
    inner.add_request_handler("logging/setLevel", SetLevelRequestParams, set_level)
