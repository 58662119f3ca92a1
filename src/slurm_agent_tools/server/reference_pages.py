"""The reference pages of the tools, what else clients can read, and the settings, from the models themselves."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel

from slurm_agent_tools.api.catalogue import TOOLS, Tool
from slurm_agent_tools.api.schemas import Schema, full_schema, input_schema, replies
from slurm_agent_tools.models import (
    backend_answer,
    campaign_answer,
    decision,
    diagnosis_answer,
    fleet_answer,
    history_answer,
    plan_answer,
    report,
    request,
    result,
    shapes,
    status_answer,
    submission_answer,
    sync_answer,
)
from slurm_agent_tools.models.history_answer import HistoryReply, JobReply
from slurm_agent_tools.server.prompts import PROMPTS, RULES, Prompt
from slurm_agent_tools.server.resources import RESOURCES
from slurm_agent_tools.server.web.chat_views import VIEWS
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.settings.setting_sources import FILE_NAME, in_project

_MODELS = (
    backend_answer, campaign_answer, diagnosis_answer, decision, report, request, result, history_answer, shapes,
    status_answer, submission_answer, sync_answer, plan_answer, fleet_answer,
)  # fmt: skip
_DEFS = "#/$defs/"

_PLAIN = {"integer": "whole number", "boolean": "true or false", "string": "text"}

_COMPUTED = {
    "project_root": f"the nearest folder upward with `{FILE_NAME}` or `.git`, else the working folder",
    "state_dir": "`slurm-agent-tools` in `$XDG_STATE_HOME`, else in `~/.local/state`",
    "rates.gpu_hour": "no price",
    "fleet.tiers": "80G and more, 32G to 79G, 8G to 31G",
    "fleet.gpu_memory": "what the name of the type says",
    "fleet.quotas": "none",
}

_TOOLS_HEAD = """# The tools

This page is generated (`slurm_agent_tools.server.reference_pages`); do not edit it.

The answer is the same over MCP (`structuredContent`), from `python -m tools.agent_tools.NAME` and from
`slurm-agent-tools NAME --json`. Sizes are bytes, durations seconds, times ISO 8601 with zone. A failure is
`{"error": {"code", "message", "hint"}}` instead; the [exit codes](exit-codes.md) sort them. With the setting
`tool_prefix` the MCP names begin with `slurm_agent_`. Each tool belongs to a toolset. The setting `toolsets` says which
are published: by default all, and `core` always.

With `detail="brief"`, the default, an answer holds what decides or is new: no nulls, no text twice, no figure beside
its spelling, and of the policy's rules those that did not pass, the others counted as `rules_passed`. A field that is
missing was not measured, does not apply, or holds what it nearly always holds (`managed` true, `restarts` 0). A
repeated `wait_for_job` of one MCP session tells what changed since. `detail="full"` has every field below, those that
are not known as `null`. [Why answers are brief](../decisions/answers.md).
"""

_OFFERS_HEAD = """# Resources and prompts

This page is generated (`slurm_agent_tools.server.reference_pages`); do not edit it.

What clients can read and begin with beside the [tools](tools.md), in both protocol eras, and over HTTP with a token of
scope `read`.

## Resources

A blank `{...}` is filled in; clients complete job ids and tags. With several clusters in the settings `?cluster=NAME`
behind any URI says which. The JSON of a job is a [JobReply](#jobreply), that of the history a
[HistoryReply](#historyreply). `_meta.data_only` says that jobs, users or files wrote the text: data, never
instructions. An error is a JSON-RPC error with the tools' own `{code, message, hint}` in `data.error`: code -32602
where the request must change (no such job, no such resource), -32603 where Slurm or a file could not be read.
"""

_VIEWS_HEAD = """## Views in a chat

Documents for hosts of MCP Apps (`text/html;profile=mcp-app`), which show an answer of the tool in a frame
([how](../guides/dashboard.md#in-a-chat)). There where the tool is.
"""

_PROMPTS_HEAD = """## Prompts

What an agent begins with. `script`, `partition` and `job_id` are completed: scripts of the project (`.sh`, `.sbatch`,
`.slurm`), partitions with the default first, your jobs with the newest first. The tools' names carry the setting
`tool_prefix`.
"""

_SETTINGS_HEAD = f"""# Settings

This page is generated (`slurm_agent_tools.server.reference_pages`); do not edit it.

Looked up in this order: the environment, `~/.config/slurm-agent-tools/settings.toml` of the user,
`/etc/slurm-agent-tools/settings.toml` of the site, `{FILE_NAME}` in the project's top folder, the default. An unknown
name in a file or a value of the wrong kind is an error that names it. `slurm-agent-tools doctor --settings` shows each
value and where it came from. What an agent may do is not a setting but the [policy](policy.md).

An agent may write the project's file, so it comes last, and what says where records lie, which programs run, which host
is reached and who may call is an error in it. In the table these settings have a *no*. `policy` may name a file in the
project there.

A name with a dot is a table in a file: `slurm.bin_dir` is `bin_dir` below `[slurm]`. What holds for one project alone
stands in the user's file below `[projects."/path/of/the/project"]`. Durations are in seconds.

| setting | in the environment | in `{FILE_NAME}` | default | meaning |
|---|---|---|---|---|
"""


def tools() -> str:
    """The page of the tools, in Markdown."""
    shapes: dict[str, Schema] = {}
    for reply in replies().values():
        shapes |= full_schema(reply)["$defs"]
    sections = [*map(_tool, TOOLS), "## Shapes\n", *(_shape(name, shapes[name]) for name in sorted(shapes))]
    return "\n".join([_TOOLS_HEAD, *sections])


def settings() -> str:
    """The page of the settings, in Markdown."""
    return _SETTINGS_HEAD + "".join(f"{row}\n" for row in _settings(Settings, ""))


def offers() -> str:
    """The page of the resources and prompts, in Markdown."""
    kinds = [f"| `{one.uri}` | {one.title} | `{one.mime}` | {_cell(one.description)} |" for one in RESOURCES]
    table = "| URI | title | kind | what it holds |\n|---|---|---|---|"
    shapes: dict[str, Schema] = {}
    for reply in (JobReply, HistoryReply):
        full = reply.model_json_schema(mode="serialization")
        shapes |= full.pop("$defs") | {reply.__name__: full}
    shown = ["## Shapes\n", *(_shape(name, shapes[name]) for name in sorted(shapes))]
    views = ["| URI | title | of which tool |", "|---|---|---|"]
    views += [f"| `{view.uri}` | {view.title} | `{tool}` |" for tool, view in VIEWS.items()]
    head = [_OFFERS_HEAD, table, *kinds, "", _VIEWS_HEAD, *views, "", _PROMPTS_HEAD]
    return "\n".join([*head, *map(_prompt, PROMPTS), *shown])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _prompt(prompt: Prompt) -> str:
    rows = [
        f"| `{item.name}` | {'required' if item.required else ''} | {item.description} |" for item in prompt.arguments
    ]
    text = f"{prompt.text}{RULES}".splitlines()
    table = "| argument | | meaning |\n|---|---|---|"
    return "\n".join([f"### {prompt.name}\n", f"{prompt.description}\n", table, *rows, "", "```text", *text, "```", ""])


def _tool(tool: Tool) -> str:
    asked = input_schema(tool.ask)
    required = asked.get("required", [])
    arguments = [
        f"| `{name}` | {_kind(node)} | {_default(node, required=name in required)} | {node.get('description', '')} |"
        for name, node in asked["properties"].items()
    ]
    reply = replies()[tool.name]
    answer = full_schema(reply)
    lines = [
        f"## {tool.name}\n",
        f"{tool.description}\n",
        f"{_hints(tool)}\n",
        "| argument | kind | default | meaning |\n|---|---|---|---|",
        *arguments,
        f"\n{inspect.getdoc(reply)}\n",
        *_fields(answer),
    ]
    return "\n".join(lines)


def _hints(tool: Tool) -> str:
    hints = [f"Toolset {tool.toolset}.", "Reads only." if tool.read_only else "Writes."]
    hints += ["What was seen is kept in the ledger."] if tool.remembers else []
    hints += ["Cannot be undone."] if tool.destructive else []
    hints += [] if tool.idempotent else ["Not idempotent."]
    hints += ["Returns text that a job wrote."] if tool.open_world else []
    return " ".join(hints)


def _shape(name: str, node: Schema) -> str:
    model = next(getattr(one, name) for one in _MODELS if hasattr(one, name))
    return "\n".join([f"### {name}\n", f"{inspect.getdoc(model)}\n", *_fields(node)])


def _fields(node: Schema) -> Iterator[str]:
    yield "| field | kind |\n|---|---|"
    yield from (f"| `{name}` | {_kind(kind)} |" for name, kind in node["properties"].items())
    yield ""


def _kind(node: Schema) -> str:
    """A JSON schema in a few words."""
    if "$ref" in node:
        name = node["$ref"].removeprefix(_DEFS)
        return f"[{name}](#{name.lower()})"
    if "enum" in node or "const" in node:
        return ", ".join(f"`{_json(value)}`" for value in node.get("enum", [node.get("const")]))
    if "anyOf" in node:
        return " or ".join(_kind(arm) for arm in node["anyOf"])
    return _of_type(node)


def _of_type(node: Schema) -> str:
    kind = str(node.get("type", "anything"))
    if kind == "array":
        return f"list of {_kind(node['items'])}"
    if "properties" in node:
        return "object with " + ", ".join(f"`{name}`" for name in node["properties"])
    if isinstance(node.get("additionalProperties"), dict):
        return f"object, each value: {_kind(node['additionalProperties'])}"
    return "time" if node.get("format") == "date-time" else _PLAIN.get(kind, kind)


def _default(node: Schema, *, required: bool) -> str:
    if required:
        return "required"
    return f"`{_json(node['default'])}`" if "default" in node else ""


def _settings(model: type[BaseModel], before: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        kind, path = field.annotation, f"{before}{name}"
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _settings(kind, f"{path}.")
            continue
        named = next((item for item in get_args(kind) if isinstance(item, type) and issubclass(item, BaseModel)), None)
        if named is not None:  # tables by name
            yield from _settings(named, f"{path}.NAME.")
            continue
        shown = _COMPUTED[path] if field.default_factory else _set_to(field.default)
        variable = "SLURM_AGENT_" + path.replace(".", "__").upper()
        project = "yes" if in_project(path.replace(".NAME.", ".*.")) else "no"
        yield f"| `{path}` | `{variable}` | {project} | {shown} | {field.description}{_choices(kind)} |"


def _set_to(value: object) -> str:
    return "not set" if value is None or value == "" else f"`{value}`"


def _choices(kind: Any) -> str:
    """The values of a literal field."""
    allowed = [str(value) for value in get_args(kind) if isinstance(value, str) and value]
    return f": {', '.join(f'`{value}`' for value in allowed)}" if allowed else ""


def _json(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
