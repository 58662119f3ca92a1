"""Views of answers inside a chat (MCP Apps): a document for each kind of them, and what it shows of one answer.

The templates are those of the dashboard. A host shows the document in a frame, which asks the same tool again; it can
do nothing else, and everything in it is in the text of the answer too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from mcp.server.apps import APP_MIME_TYPE, Apps, ResourceCsp
from mcp.server.mcpserver.resources import FunctionResource

from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.server import resources
from slurm_agent_tools.text import log_events

if TYPE_CHECKING:
    from slurm_agent_tools.services.context import Caller

MARKUP = "slurm-agent-tools/view"
"""Where the markup stands in the `_meta` of an answer, as static/chat.js knows."""

_SCHEME = "ui://slurm-agent-tools/"

_LONGEST = 512 * 1024
"""Characters of markup that go to a host; what is longer stands there as text."""

_log = log_events.get_logger()


@dataclass(frozen=True, slots=True)
class ChatView:
    """The view of one tool's answers, by the template `views/chat/NAME.html`.

    `every`: seconds until it asks again, 0 where a person has to want it. `more`: the arguments with which it asks.
    `over`: the statuses after which nothing changes.
    """

    name: str
    title: str
    every: float
    more: Mapping[str, Any]
    over: tuple[str, ...] = ()

    @property
    def uri(self) -> str:
        """The address of its document."""
        return f"{_SCHEME}{self.name}.html"


_FULL = {"detail": "full"}

VIEWS: Mapping[str, ChatView] = {
    "wait_for_job": ChatView("job", "Job", 10, {**_FULL, "timeout_seconds": 0}, ("finished",)),
    "get_campaign": ChatView("campaign", "Campaign", 15, _FULL, ("finished", "stopped")),
    "plan_jobs": ChatView("plan", "Plan", 0, _FULL),
    "get_fleet": ChatView("fleet", "Cluster at a glance", 10, _FULL),
}
"""By the tool's name."""


def looks(tool: str, ask: ToolArguments) -> bool:
    """Whether a call has the form in which a view looks again: it comes every few seconds, and nobody reads each."""
    view = VIEWS.get(tool)
    return view is not None and all(getattr(ask, name) == value for name, value in view.more.items())


def offered(published: Mapping[str, str]) -> Apps:
    """The documents of these tools: names under which they are published by those of the catalogue."""
    apps = Apps()
    for tool, view in VIEWS.items():
        if tool in published:
            apps.add_resource(
                FunctionResource(
                    uri=view.uri,
                    name=f"{view.name}-view",
                    title=view.title,
                    description=f"Shows an answer of {published[tool]} in a chat.",
                    mime_type=APP_MIME_TYPE,
                    meta={"ui": {"csp": ResourceCsp().model_dump(exclude_none=True), "prefersBorder": True}},
                    fn=partial(_document, view, published[tool]),
                )
            )
    return apps


def _document(view: ChatView, tool: str) -> str:
    from slurm_agent_tools.server.web import fragments  # noqa: PLC0415 - most chats show no view

    return fragments.standing_alone(view=view, tool=tool)


def of_tool(tool: str) -> dict[str, Any] | None:
    """What a tool's `_meta` says of its view; None where it has none. Hosts differ in which of both keys they read."""
    view = VIEWS.get(tool)
    if view is None:
        return None
    return {"ui": {"resourceUri": view.uri, "visibility": ["model", "app"]}, "ui/resourceUri": view.uri}


async def of_answer(
    box: Toolbox, tool: str, ask: ToolArguments, document: Mapping[str, Any], caller: Caller
) -> dict[str, Any] | None:
    """What the `_meta` of an answer holds: the view of the whole document; None where it cannot be drawn.

    A failure to draw fails no call: the answer is in the text all the same.
    """
    from slurm_agent_tools.server.web import fragments  # noqa: PLC0415 - as above

    try:
        named = fragments.plain({"name": getattr(ask, "name", "")})
        record = {**document, "one": {**document, **named}}
        record["picture"] = await _picture(box, ask, document, caller)
        drawn = str(fragments.fragment(f"chat/{VIEWS[tool].name}", record, None))
    except Exception as error:  # noqa: BLE001 - see above
        _log.error("view was not drawn", tool=tool, exc_info=error)
        return None
    return {MARKUP: drawn} if len(drawn) <= _LONGEST else None


async def _picture(box: Toolbox, ask: ToolArguments, document: Mapping[str, Any], caller: Caller) -> Markup | None:
    """The drawing that an answer names; None of one that names none, or that cannot be read any more."""
    found = resources.find(str(document.get("gantt_uri", "")))
    if found is None:
        return None
    resource, arguments = found
    place = {} if ask.cluster is None else {"cluster": ask.cluster}
    try:
        drawn = await box.view(resource.view, arguments | place, caller=caller)
    except AgentToolsError as error:
        _log.info("view has no picture", code=error.code, message=error.message)
        return None
    small = isinstance(drawn, str) and len(drawn) <= _LONGEST // 2
    return Markup(drawn) if small else None  # noqa: S704 - every text in it is escaped there
