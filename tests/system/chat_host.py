"""A host of MCP Apps as small as the specification allows: a page with a sandboxed frame, which speaks with the view."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CallToolResult
from tests.system.chromium import Chromium
from tests.watchdog import SECONDS

POLICY = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; connect-src 'none'"
"""What the specification has a host put on a view that names no other places."""

PAGE = """<!doctype html><title>host</title><body><script>
const told = {calls: [], heard: [], height: 0};
let frame = null;
function say(body) { frame.contentWindow.postMessage({jsonrpc: "2.0", ...body}, "*"); }
function show(html, host, first) {
  frame?.remove();
  Object.assign(told, {calls: [], heard: [], height: 0});
  frame = document.createElement("iframe");
  frame.sandbox = "allow-scripts";
  frame.style = "width: 100%; border: 0; height: 600px";
  frame.srcdoc = html;
  told.first = first;
  told.host = host;
  document.body.append(frame);
}
addEventListener("message", ({source, data}) => {
  if (source !== frame?.contentWindow) return;
  told.heard.push(data.method ?? "answer");
  if (data.method === "ui/initialize") say({id: data.id, result: told.host});
  if (data.method === "ui/notifications/initialized") told.first.forEach(say);
  if (data.method === "ui/notifications/size-changed") {
    told.height = data.params.height;
    frame.style.height = told.height + "px";
  }
  if (data.method === "tools/call") told.calls.push(data);
});
</script></body>"""


@dataclass
class ChatHost:
    """One chat in a browser. `passed_on`: the calls of views that reached the server."""

    browser: Chromium
    client: Client
    folder: Path
    passed_on: list[dict[str, Any]] = field(default_factory=list)

    async def show(
        self, tool: str, arguments: Mapping[str, Any], result: CallToolResult, *,
        theme: str = "light", wrapped: bool = False, calls: bool = True, colours: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        """Show the view of a tool with an answer. `wrapped`: the whole document inside a body, as the Inspector does."""
        (listed,) = [one for one in (await self.client.list_tools()).tools if one.name == tool]
        (document,) = (await self.client.read_resource(listed.meta["ui"]["resourceUri"])).contents
        policy = f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        html = document.text.replace("<head>", f"<head>{policy}", 1)
        if wrapped:
            html = f"<!doctype html><html><head>{policy}</head><body>{document.text}</body></html>"
        page = self.folder / "host.html"
        page.write_text(PAGE)
        self.browser.driver.get(page.as_uri())
        host = {
            "protocolVersion": "2026-01-26",
            "hostInfo": {"name": "test", "version": "1"},
            "hostCapabilities": {"serverTools": {}} if calls else {},
            "hostContext": {"theme": theme, "styles": {"variables": dict(colours or {})}},
        }
        first = [
            {"method": "ui/notifications/tool-input", "params": {"arguments": dict(arguments)}},
            {"method": "ui/notifications/tool-result", "params": _sent(result)},
        ]
        self.browser.driver.execute_script("show(...arguments)", html, host, first)

    async def until(self, text: str) -> None:
        """Pass on what the view asks until it shows this text."""
        end = asyncio.get_running_loop().time() + SECONDS
        while text not in self.inside("return document.getElementById('shown').textContent"):
            assert asyncio.get_running_loop().time() < end, (text, self.inside("return document.body.textContent"))
            await self.serve()
            await asyncio.sleep(0.1)

    async def serve(self) -> None:
        """Pass on every call that waits, of tools that a view may call."""
        for call in self.browser.run("return told.calls.splice(0)"):
            result = await self.client.call_tool(call["params"]["name"], call["params"]["arguments"])
            self.passed_on.append(call["params"])
            self.browser.driver.execute_script("say(arguments[0])", {"id": call["id"], "result": _sent(result)})

    def inside(self, script: str) -> Any:
        """What a script returns that runs in the frame."""
        with self.frame():
            return self.browser.driver.execute_script(script)

    @contextmanager
    def frame(self) -> Iterator[None]:
        """The browser looks at the frame alone."""
        driver = self.browser.driver
        driver.switch_to.frame(driver.find_element("tag name", "iframe"))
        try:
            yield
        finally:
            driver.switch_to.default_content()


def _sent(result: CallToolResult) -> Any:
    return json.loads(result.model_dump_json(by_alias=True, exclude_none=True))
