"""The files that connect a client: in the form that the client documents, and each starts our server."""

from __future__ import annotations

import argparse
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml
from tests.unit.cli.test_init import told

from slurm_agent_tools.api.catalogue import TOOLS
from slurm_agent_tools.api.client_files import CLIENTS, SERVER
from slurm_agent_tools.cli.commands import init_command

ROOT = Path(__file__).parents[3]
PLUGIN = ROOT / "src/slurm_agent_tools/assets/claude-code"
SKILL = (PLUGIN / "skills/slurm-experiments/SKILL.md").read_text()
BLOCK = (ROOT / "src/slurm_agent_tools/assets/init/AGENTS.md").read_text()

# What each client's documentation names for a server on standard input and output, and which of it has to be there.
# Checked in November 2026 against the schema that is published with Gemini CLI, and otherwise against the pages.
FIELDS = {
    "vscode": ({"command"}, {"type", "args", "env", "envFile", "cwd", "dev", "gallery"}),
    "claude-code": ({"command"}, {"type", "args", "env", "timeout"}),
    "cursor": ({"command"}, {"type", "args", "env", "envFile"}),
    "codex": (
        {"command"},
        {"args", "env", "env_vars", "cwd", "startup_timeout_sec", "tool_timeout_sec", "enabled", "enabled_tools", "disabled_tools"},
    ),
    "gemini": (
        {"command"},
        {"type", "args", "env", "cwd", "timeout", "trust", "description", "includeTools", "excludeTools"},
    ),
    "zed": ({"command", "args"}, {"source", "env", "enabled", "timeout"}),
    "claude-desktop": ({"command"}, {"args", "env"}),
    "windsurf": ({"command"}, {"args", "env", "disabled", "disabledTools", "alwaysAllow"}),
    "goose": (
        {"type", "name", "cmd", "args", "enabled"},
        {"description", "bundled", "envs", "env_keys", "timeout", "display_name", "available_tools", "cwd"},
    ),
    "other": ({"command", "args", "env"}, set()),
}  # fmt: skip
TABLES = {"claude-desktop": "mcpServers", "windsurf": "mcpServers", "goose": "extensions", "other": "mcpServers"}


def read(text: str, path: str) -> dict[str, object]:
    if path.endswith(".toml"):
        return tomllib.loads(text)
    return yaml.safe_load(text) if path.endswith(".yaml") else json.loads(text)


def connected(folder: Path, capsys: pytest.CaptureFixture[str], name: str) -> dict[str, object]:
    """Our server's entry as `init` leaves it for one client, or shows it for a person's own file."""
    body = told(folder, capsys, "--client", name)
    client = CLIENTS[name]
    if client.config:
        return read((folder / client.config).read_text(), client.config)[client.table][SERVER]
    [one] = body["personal"]
    assert (one["client"], one["file"]) == (client.title, client.personal)
    return read(one["lines"], client.personal)[TABLES[name]][SERVER]


@pytest.mark.parametrize("name", FIELDS)
def test_each_client_is_told_in_its_own_form_how_to_start_the_server(tmp_path, capsys, name):
    entry = connected(tmp_path, capsys, name)

    needed, allowed = FIELDS[name]
    assert needed <= entry.keys() <= needed | allowed
    command = entry["cmd" if name == "goose" else "command"]
    assert Path(str(command)).name == SERVER
    assert entry["args"] == ["serve"]
    variables = entry.get("envs" if name == "goose" else "env", {})
    assert variables.get("PYTHONPATH") == (None if name == "gemini" else "")  # which that client refuses
    assert "trust" not in entry  # which would answer every question of the client's by itself
    if CLIENTS[name].personal:
        assert (Path(str(command)).is_absolute(), variables["SLURM_AGENT_PROJECT_ROOT"]) == (True, str(tmp_path))


def test_codex_is_told_to_pass_on_where_slurm_is(tmp_path, capsys):
    assert connected(tmp_path, capsys, "codex")["env_vars"] == ["SLURM_CONF"]


def test_every_client_that_init_offers_has_its_form_here_and_a_page():
    assert FIELDS.keys() | {"agents-md"} == CLIENTS.keys()
    pages = "\n".join(path.read_text() for path in (ROOT / "docs/get-started").glob("*.md"))
    assert [name for name in CLIENTS if f"--client {name}" not in pages] == []


@pytest.mark.parametrize("name", [name for name in CLIENTS if CLIENTS[name].personal])
def test_a_folder_of_any_name_is_spelled_so_that_it_can_be_read(tmp_path, capsys, name):
    folder = tmp_path / 'of "Ada": \\ # ü'
    entry = connected(folder, capsys, name)

    assert entry["envs" if name == "goose" else "env"]["SLURM_AGENT_PROJECT_ROOT"] == str(folder)


def test_only_the_clients_that_are_named_get_files(tmp_path, capsys):
    told(tmp_path, capsys, "--client", "cursor", "--client", "codex")

    assert (tmp_path / ".cursor/mcp.json").is_file()
    assert (tmp_path / ".codex/config.toml").is_file()
    assert not (tmp_path / ".mcp.json").exists()
    assert not (tmp_path / ".vscode").exists()


def test_all_names_every_client_and_a_persons_own_files_are_not_touched(tmp_path, capsys, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    body = told(tmp_path / "project", capsys, "--client", "all")

    assert {one["client"] for one in body["personal"]} == {"Claude Desktop", "Windsurf", "Goose", "Any other client"}
    assert list(home.iterdir()) == []
    assert all((tmp_path / "project" / path).is_file() for client in CLIENTS.values() for path in client.files)


def test_a_file_of_codex_that_is_there_is_kept_and_the_table_to_add_is_told(tmp_path, capsys):
    path = tmp_path / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text('model = "mine"\n')

    [note] = [note for note in told(tmp_path, capsys, "--client", "codex")["notes"] if ".codex" in note]

    assert path.read_text() == 'model = "mine"\n'
    assert tomllib.loads(note.partition("the lines:\n")[2])["mcp_servers"][SERVER]["args"] == ["serve"]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ('command = "slurm-agent-tools"', ['["SLURM_CONF"]']),
        ('command = "slurm-agent-tools"\nenv_vars = ["HOME"]', ['["HOME", "SLURM_CONF"]']),
        ('command = "slurm-agent-tools"\nenv_vars = ["HOME", "SLURM_CONF"]', []),
        ('command = "slurm-agent-tools"\nenv = { SLURM_CONF = "/etc/slurm.conf" }', []),
        ('url = "http://localhost:8000/mcp"', []),
    ],
)
@pytest.mark.parametrize("words", [(), ("--client", "codex")])
def test_a_file_of_codex_that_hands_no_slurm_conf_on_is_told_in_one_line(tmp_path, capsys, lines, wanted, words):
    path = tmp_path / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text(f"[mcp_servers.{SERVER}]\n{lines}\n")

    notes = [note for note in told(tmp_path, capsys, *words)["notes"] if ".codex" in note]

    assert [note.partition("write there: env_vars = ")[2] for note in notes] == wanted


def test_an_agents_file_that_is_there_is_kept_and_the_block_to_add_is_told_until_it_is_there(tmp_path, capsys):
    (tmp_path / "AGENTS.md").write_text("# Ours\n")
    [note] = [note for note in told(tmp_path, capsys, "--client", "agents-md")["notes"] if "AGENTS.md" in note]
    assert (tmp_path / "AGENTS.md").read_text() == "# Ours\n"
    assert note.endswith(BLOCK.rstrip())

    (tmp_path / "AGENTS.md").write_text(f"# Ours\n\n{BLOCK}")
    assert not [note for note in told(tmp_path, capsys, "--client", "agents-md")["notes"] if "AGENTS.md" in note]


def test_a_client_that_is_not_known_is_told_with_those_that_are(capsys):
    parser = argparse.ArgumentParser(exit_on_error=False)
    init_command.add_arguments(parser)
    with pytest.raises(argparse.ArgumentError, match=r"choose from .*'zed'"):
        parser.parse_args(["--client", "none"])


@pytest.mark.parametrize(
    ("page", "words"),
    [("tutorial/first-experiment.md", "with {} tools"), ("get-started/windsurf.md", "these are {}")],
)
def test_a_page_that_tells_how_many_tools_there_are_is_right(page, words):
    assert words.format(len(TOOLS)) in (ROOT / "docs" / page).read_text()


@pytest.mark.parametrize("text", [SKILL, BLOCK], ids=["skill", "AGENTS.md"])
def test_what_agents_read_names_only_tools_that_there_are(text):
    known = {tool.name for tool in TOOLS}
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", text))
    fields = {"idempotency_key", "next_poll_seconds", "human_action_required", "manual_commands"}

    assert named - fields <= known
    assert {"get_status", "submit_job", "wait_for_job", "analyze_log", "save_result"} <= named
    assert "sbatch" in text


def test_the_skill_has_the_head_that_clients_look_for():
    _, head, _ = SKILL.split("---\n", 2)
    front = yaml.safe_load(head)

    assert front.keys() == {"name", "description"}
    assert front["name"] == "slurm-experiments"
    assert re.fullmatch(r"[a-z0-9-]{1,64}", front["name"])
    assert 0 < len(front["description"]) <= 1024


def test_the_plugin_is_where_the_marketplace_says_and_starts_the_server():
    market = json.loads((ROOT / ".claude-plugin/marketplace.json").read_text())
    [entry] = market["plugins"]
    plugin = json.loads((PLUGIN / ".claude-plugin/plugin.json").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert market["owner"]["name"]
    assert (ROOT / entry["source"]) == PLUGIN
    assert (entry["name"], plugin["name"], plugin["version"]) == (project["name"], project["name"], project["version"])
    assert plugin["mcpServers"][SERVER]["args"] == ["serve"]
    assert (PLUGIN / "skills/slurm-experiments/SKILL.md").is_file()


def test_the_agent_of_vs_code_can_edit_and_execute():
    _, head, _ = (ROOT / ".github/agents/slurm-manager.agent.md").read_text().split("---\n", 2)

    assert {"edit", "execute", "read", "search"} <= set(yaml.safe_load(head)["tools"])


@pytest.mark.parametrize("name", ["cursor", "codex", "gemini", "zed", "windsurf", "goose", "claude-desktop", "other"])
def test_the_page_of_a_client_shows_what_init_gives(tmp_path, capsys, monkeypatch, name):
    monkeypatch.delenv("SLURM_CONF", raising=False)
    page = (ROOT / f"docs/get-started/{name.removesuffix('-desktop')}.md").read_text()
    client = CLIENTS[name]
    shown, *_ = re.findall(r"```(?:json|toml|yaml)\n(.*?)\n```", page, re.DOTALL)
    shown = shown.replace("/home/ada/.local/bin/", "/bin/").replace("/home/ada/experiments", str(tmp_path))

    body = told(tmp_path, capsys, "--client", name)
    given = (tmp_path / client.config).read_text() if client.config else body["personal"][0]["lines"]
    assert shown == re.sub(r'"[^"\n]*/slurm-agent-tools"', '"/bin/slurm-agent-tools"', given).strip()


@pytest.mark.parametrize("name", ["windsurf", "goose", "claude-desktop", "other"])
def test_a_slurm_conf_of_the_terminal_stands_in_the_lines_for_a_persons_own_file(tmp_path, capsys, monkeypatch, name):
    monkeypatch.setenv("SLURM_CONF", "/srv/a b/slurm.conf")
    entry = connected(tmp_path, capsys, name)

    given = entry["envs" if name == "goose" else "env"]
    assert (given["SLURM_CONF"], given["SLURM_AGENT_PROJECT_ROOT"]) == ("/srv/a b/slurm.conf", str(tmp_path))


def test_who_writes_into_a_file_of_their_own_is_not_told_to_open_the_folder(tmp_path, capsys):
    own, usual = ("\n".join(told(tmp_path, capsys, *words)["next"]) for words in (("--client", "other"), ()))

    assert "Start your client anew, once its own file has the lines above. Then ask:" in own
    assert "Open this folder" not in own
    assert "Open this folder in your client (VS Code, Claude Code)" in usual
    both = "\n".join(told(tmp_path, capsys, "--client", "gemini", "--client", "other")["next"])
    assert "in your client (Gemini CLI): the server is found by its client file; or: Start your client anew" in both


def test_where_a_slurm_is_named_none_is_offered(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("SLURM_CONF", raising=False)
    assert "devcluster up" in "\n".join(told(tmp_path, capsys)["next"])
    monkeypatch.setenv("SLURM_CONF", "/srv/slurm.conf")
    assert "devcluster up" not in "\n".join(told(tmp_path, capsys)["next"])
