"""How each MCP client is told of the server: files of a project, and lines for a file that is a person's own.

A client that keeps its servers in the person's home alone is never written to; its lines are shown instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from slurm_agent_tools.text import safe_open
from slurm_agent_tools.text.bounded_documents import decoded, json_value, toml

SERVER = "slurm-agent-tools"

_LARGEST = 2**20  # bytes of a client file


@dataclass(frozen=True, slots=True)
class McpClient:
    """One client: what it is called, its files in a project by path, and the table in which servers stand there."""

    title: str
    files: Mapping[str, str] = field(default_factory=dict)
    table: str = ""
    personal: str = ""
    lines: str = ""

    @property
    def config(self) -> str:
        """The file of the project that names servers; empty where there is none."""
        return next(iter(self.files), "") if self.table else ""


CLIENTS: Mapping[str, McpClient] = {
    "vscode": McpClient(
        "VS Code",
        {".vscode/mcp.json": "init/vscode-mcp.json", ".github/agents/slurm-manager.agent.md": "slurm-manager.agent.md"},
        "servers",
    ),
    "claude-code": McpClient(
        "Claude Code",
        {
            ".mcp.json": "init/mcp.json",
            ".claude/skills/slurm-experiments/SKILL.md": "claude-code/skills/slurm-experiments/SKILL.md",
        },
        "mcpServers",
    ),
    "cursor": McpClient("Cursor", {".cursor/mcp.json": "init/clients/cursor.json"}, "mcpServers"),
    "codex": McpClient("Codex", {".codex/config.toml": "init/clients/codex.toml"}, "mcp_servers"),
    # Gemini CLI refuses a PYTHONPATH in `env` and warns of it at each start, so its file alone has none.
    "gemini": McpClient("Gemini CLI", {".gemini/settings.json": "init/clients/gemini.json"}, "mcpServers"),
    "zed": McpClient("Zed", {".zed/settings.json": "init/clients/zed.json"}, "context_servers"),
    "agents-md": McpClient("AGENTS.md", {"AGENTS.md": "init/AGENTS.md"}),
    "claude-desktop": McpClient(
        "Claude Desktop", personal="claude_desktop_config.json", lines="init/clients/claude-desktop.json"
    ),
    "windsurf": McpClient(
        "Windsurf", personal="~/.codeium/windsurf/mcp_config.json", lines="init/clients/windsurf.json"
    ),
    "goose": McpClient("Goose", personal="~/.config/goose/config.yaml", lines="init/clients/goose.yaml"),
    "other": McpClient("Any other client", personal="a file of its own", lines="init/clients/other.json"),
}
"""Every client that `init --client` knows, by the word for it."""

USUAL = ("vscode", "claude-code")
"""Those whose files are written where none is named."""


def chosen(named: list[str] | None) -> list[str]:
    """The words for the clients of a call, `all` for every one."""
    return list(CLIENTS) if named and "all" in named else list(dict.fromkeys(named or USUAL))


def servers(path: Path, table: str) -> dict[str, object] | None:
    """The servers that a client file names; None where it cannot be read (VS Code allows comments, JSON does not)."""
    try:
        text = decoded(safe_open.read(path, _LARGEST))
        body = toml(text) if path.suffix == ".toml" else json_value(text)
    except (OSError, ValueError):
        return None
    found = body.get(table, {}) if isinstance(body, dict) else {}
    return found if isinstance(found, dict) else {}


def not_handed_on(client: McpClient, entry: object, text: str) -> list[str]:
    """Variables that `text`, which `init` would write, has a client hand on to the server, and this entry does not."""
    wanted = toml(text)[client.table][SERVER].get("env_vars", []) if client.config.endswith(".toml") else []
    if not isinstance(entry, dict) or "command" not in entry:  # without a command it names a server that runs already
        return []
    held = [entry.get("env_vars"), entry.get("env")]
    return [name for name in wanted if not any(isinstance(one, list | dict) and name in one for one in held)]


def to_add(client: McpClient, text: str) -> str:
    """What a person adds to a client file that is there, of the text that `init` would have written."""
    if client.config.endswith(".toml"):
        return f"the lines:\n{text.rstrip()}"
    entry = json.loads(text)[client.table][SERVER]
    return f"to {client.table!r}: {json.dumps({SERVER: entry})[1:-1]}"


def filled(text: str, command: str, folder: Path) -> str:
    """Lines for a person's own file: this command, folder and SLURM_CONF. Both YAML and JSON read JSON's texts."""
    place = json.dumps(str(folder))
    if conf := os.environ.get("SLURM_CONF"):  # many of these clients hand no environment on
        named = "SLURM_CONF" if '"SLURM_AGENT_PROJECT_ROOT"' not in text else '"SLURM_CONF"'
        place += f", {named}: {json.dumps(conf)}"
    return text.replace('"COMMAND"', json.dumps(command)).replace('"FOLDER"', place)
