"""Fixture tools, resources and prompts that only answer, as the conformance scenarios expect them."""

import base64
import json
import struct
import warnings
import zlib
from collections.abc import Callable
from typing import Any

import anyio
from mcp import MCPDeprecationWarning
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, UserMessage
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import (
    AudioContent,
    Completion,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

PAUSE = 0.05


def _png() -> bytes:
    """One red pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixel = zlib.compress(b"\x00\xff\x00\x00")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixel) + chunk(b"IEND", b"")


def _wav() -> bytes:
    """A quarter of a second of silence, 8 kHz, 8 bit, mono."""
    sound = b"\x80" * 2000
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(sound)) + sound
    return b"RIFF" + struct.pack("<I", len(body)) + body


PNG = _png()
IMAGE = ImageContent(type="image", data=base64.b64encode(PNG).decode(), mime_type="image/png")
AUDIO = AudioContent(type="audio", data=base64.b64encode(_wav()).decode(), mime_type="audio/wav")


def text(words: str) -> TextContent:
    return TextContent(type="text", text=words)


def resource(uri: str, words: str, mime_type: str = "text/plain") -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, text=words, mime_type=mime_type))


def add(server: MCPServer[Any]) -> None:
    """Put all of this file on the server."""
    for make in (_contents, _activity, _resources, _prompts):
        make(server)


def _contents(server: MCPServer[Any]) -> None:
    answers: dict[str, list[ContentBlock]] = {
        "test_simple_text": [text("This is a simple text response for testing.")],
        "test_image_content": [IMAGE],
        "test_audio_content": [AUDIO],
        "test_embedded_resource": [resource("test://embedded-resource", "This is an embedded resource content.")],
        "test_multiple_content_types": [
            text("Multiple content types test:"),
            IMAGE,
            resource("test://mixed-content-resource", '{"test":"data","value":123}', "application/json"),
        ],
    }
    for name, blocks in answers.items():
        server.add_tool(_constant(blocks), name=name, description=f"Answers as scenario {name} expects.")

    @server.tool()
    async def test_error_handling() -> str:
        """Always fails."""
        raise ToolError("This tool intentionally returns an error for testing")

    schema_tool = Tool.from_function(_constant([text("ok")]), name="json_schema_2020_12_tool", description="Schema.")
    schema_tool.parameters = SCHEMA_2020_12
    server._tool_manager._tools[schema_tool.name] = schema_tool


def _constant(blocks: list[ContentBlock]) -> Callable[[], Any]:
    async def answer() -> list[ContentBlock]:
        return blocks

    return answer


def _activity(server: MCPServer[Any]) -> None:
    @server.tool()
    async def test_tool_with_progress(ctx: Context) -> str:
        """Report progress three times."""
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100)
            await anyio.sleep(PAUSE)
        return "done"

    @server.tool()
    async def test_tool_with_logging(ctx: Context) -> str:
        """Send three log messages."""
        for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
            await _say(ctx, words)
            await anyio.sleep(PAUSE)
        return "done"

    @server.tool()
    async def test_logging_tool(ctx: Context) -> str:
        """Send one log message, which only a client that set a level may get."""
        await _say(ctx, "one message")
        return "done"

    @server.tool()
    async def test_trigger_tool_change(ctx: Context) -> str:
        """Tell subscribers that the tools changed."""
        await ctx.notify_tools_changed()
        return "told"

    @server.tool()
    async def test_trigger_prompt_change(ctx: Context) -> str:
        """Tell subscribers that the prompts changed."""
        await ctx.notify_prompts_changed()
        return "told"


async def _say(ctx: Context, words: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        await ctx.log("info", words)


def _resources(server: MCPServer[Any]) -> None:
    @server.resource("test://static-text", name="static-text", mime_type="text/plain")
    def static_text() -> str:
        """A text."""
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", name="static-binary", mime_type="image/png")
    def static_binary() -> bytes:
        """A picture."""
        return PNG

    @server.resource("test://watched-resource", name="watched", mime_type="text/plain")
    def watched() -> str:
        """Something to subscribe to."""
        return "watched"

    @server.resource("test://template/{id}/data", name="template", mime_type="application/json")
    def template(id: str) -> str:  # noqa: A002 - the scenario's name
        """Data by id."""
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _prompts(server: MCPServer[Any]) -> None:
    @server.prompt()
    def test_simple_prompt() -> str:
        """A fixed prompt."""
        return "This is a simple prompt for testing."

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        """A prompt of two words."""
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt()
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:  # noqa: N803
        """A prompt that holds a resource."""
        held = resource(resourceUri, "Embedded resource content for testing.")
        return [UserMessage(held), UserMessage("Please process the embedded resource above.")]

    @server.prompt()
    def test_prompt_with_image() -> list[UserMessage]:
        """A prompt that holds a picture."""
        return [UserMessage(IMAGE), UserMessage("Please analyze the image above.")]

    @server.completion()
    async def complete(ref: object, argument: object, context: object) -> Completion:
        return Completion(values=["paris", "park", "party"], total=3, has_more=False)


SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
