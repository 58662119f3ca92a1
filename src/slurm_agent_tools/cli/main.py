"""The command line: one subcommand per tool beside serve, policy, init, devcluster, demo and doctor.

A command's module is imported when it is called, and none but `serve` and `connect` the MCP SDK, which takes a second.
Exit codes: 0 done, 1 failed, 2 usage or invalid input, 3 blocked, 4 not finished or not confirmed yet.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NoReturn

from slurm_agent_tools import __version__
from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.text import log_events

DONE, FAILED, INVALID, INTERRUPTED = 0, 1, 2, 130

_OVERVIEW = """usage: slurm-agent-tools COMMAND [ARGUMENTS]

Guarded Slurm tools for coding agents. The tools (--json prints the document that MCP clients get):
{tools}
Around them:
  serve             speak MCP on standard input and output; --http over HTTP
  connect           speak MCP as serve does, with the site's service as the judge of submissions
  site              install, check, remove, serve: the guard as a service of the site (administrators)
  token             make, list and revoke tokens for the server over HTTP
  policy            check scripts, show and explain the policy, trust a file, show what was decided
  approve           read a request that needs a person, and approve exactly it, once
  passkey           add, list, remove: passkeys that may approve on a page
  launch            start a SkyPilot task, after a person agreed to its price and its end
  report            what a finished job used and cost, and what to ask for next time
  sync              push, pull, status: the project's files on a cluster over SSH; pull --follow
  campaign          plan, run, status, report, stop: many runs to an answer, by campaigns/NAME.yaml
  history           jobs of this project: by tag, text or likeness, what they used, what to ask for
  simulate          what other strategies would have made of a trace or of the accounting
  findings          what the cluster does badly, by its accounting, and what would mend it
  plan              what starts when: jobs on limited GPUs, with the bound; --svg as a picture
  fleet             what there is, is free or idle, costs, who waits; --match, --watch
  dashboard         pages for a browser: what runs, waits, is free and idle, campaigns, costs, decisions
  watch             send alerts where people are, each once: mail, Slack, ntfy, ...
  backends          list, show, new, check: pages of facts about where jobs can run
  init              set up an experiment folder: policy, client files, agent file
  workstation       up, status, down, enable: this machine as a cluster of its own
  devcluster        up, status, down, env: a private real Slurm for trying and testing
  demo              show the whole way on a devcluster
  doctor            what works here and what does not, the settings and where each came from
  completion        what makes bash, zsh or fish complete commands and options

slurm-agent-tools COMMAND --help says more."""

_SUMMARY = re.compile(r"^  ([a-z_]+) {2,}(\S.*)$", re.MULTILINE)

# Modules with add_arguments(parser) and run(args) -> exit code; run may be async.
_MODULES = {
    "serve": "slurm_agent_tools.cli.commands.serve_command",
    "connect": "slurm_agent_tools.cli.commands.connect_command",
    "site": "slurm_agent_tools.cli.commands.site_command",
    "token": "slurm_agent_tools.cli.commands.token_command",
    "policy": "slurm_agent_tools.cli.commands.policy_command",
    "approve": "slurm_agent_tools.cli.commands.approve_command",
    "passkey": "slurm_agent_tools.cli.commands.passkey_command",
    "launch": "slurm_agent_tools.cli.commands.launch_command",
    "plan": "slurm_agent_tools.cli.commands.plan_command",
    "fleet": "slurm_agent_tools.cli.commands.fleet_command",
    "dashboard": "slurm_agent_tools.cli.commands.dashboard_command",
    "watch": "slurm_agent_tools.cli.commands.watch_command",
    "backends": "slurm_agent_tools.cli.commands.backends_command",
    "init": "slurm_agent_tools.cli.commands.init_command",
    "workstation": "slurm_agent_tools.cli.commands.workstation_command",
    "devcluster": "slurm_agent_tools.cli.commands.devcluster_command",
    "demo": "slurm_agent_tools.cli.commands.demo_command",
    "doctor": "slurm_agent_tools.cli.commands.doctor_command",
    "report": "slurm_agent_tools.cli.commands.report_command",
    "sync": "slurm_agent_tools.cli.commands.sync_command",
    "simulate": "slurm_agent_tools.cli.commands.simulate_command",
    "findings": "slurm_agent_tools.cli.commands.findings_command",
    "history": "slurm_agent_tools.cli.commands.history_command",
    "campaign": "slurm_agent_tools.cli.commands.campaign_command",
    "completion": "slurm_agent_tools.cli.commands.completion_command",
}

COMMANDS = tuple(_MODULES)

_TOOLS = "slurm_agent_tools.cli.commands.tool_command"


def whole(act: Callable[[], int]) -> NoReturn:
    """Run a process from start to end: nothing is collected while modules load, nothing is taken apart at the end.

    Both together are a third of what a command takes that asks one thing. Plugins of pydantic are not looked for.
    """
    gc.disable()
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    code = act()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:  # the reader went away
        code = code or FAILED
    os._exit(code)


def command() -> NoReturn:
    """The command slurm-agent-tools, as a process."""
    whole(main)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        return _guarded("help", False, _first_contact)
    if words[0] in {"-h", "--help", "help", "--version"}:
        from slurm_agent_tools.api import printing

        printing.lines([f"slurm-agent-tools {__version__}" if words[:1] == ["--version"] else _overview()])
        return DONE
    if words[0] in _MODULES:
        return _guarded(words[0], "--json" in words, lambda: _command(words[0], words[1:]))
    return tool_main(words[0], words[1:], json=False)


def tool_main(name: str, argv: Sequence[str] | None = None, *, json: bool = True) -> int:
    """Run one tool by its name (hyphens or underscores); `json` says what it prints unless told otherwise."""
    words = list(sys.argv[1:] if argv is None else argv)
    name = name.replace("-", "_")
    own = words[: words.index("--")] if "--" in words else words
    as_json = (json or "--json" in own) and "--text" not in own
    return _guarded(name, as_json, lambda: int(_module(_TOOLS).run(name, words, as_json)))


def _overview() -> str:
    from slurm_agent_tools import settings
    from slurm_agent_tools.api.catalogue import published

    try:
        toolsets = settings.load().toolsets
    except AgentToolsError:  # whoever asks for help may not know yet what to correct
        toolsets = settings.TOOLSETS
    return _OVERVIEW.format(tools="\n".join(f"  {tool.name:<17} {tool.title}" for tool in published(toolsets)))


def _first_contact() -> int:
    from slurm_agent_tools.api import printing
    from slurm_agent_tools.cli.commands import first_contact

    printing.lines(first_contact.lines())
    return DONE


def summaries() -> dict[str, str]:
    """What each command is for, in a line, as the overview tells it."""
    return dict(_SUMMARY.findall(_OVERVIEW))


def command_parser(name: str) -> Parser:
    """What reads the words of a command that is no tool."""
    parser = Parser(prog=f"slurm-agent-tools {name}", allow_abbrev=False)
    _module(_MODULES[name]).add_arguments(parser)
    return parser


def _command(name: str, words: list[str]) -> int:
    import inspect

    import anyio

    _whole(words)
    module = _module(_MODULES[name])
    parser = command_parser(name)
    mixed = getattr(module, "MIXED", False)  # options may stand between its words
    args = parser.parse_intermixed_args(words) if mixed else parser.parse_args(words)
    if inspect.iscoroutinefunction(module.run):
        return int(anyio.run(module.run, args))
    return int(module.run(args))


def _whole(words: list[str]) -> None:
    """Raise InputError for a word of which no text can be made."""
    from slurm_agent_tools.text import bounded_documents

    for word in filter(bounded_documents.is_half, words):
        raise InputError("arguments", word, bounded_documents.NOT_WHOLE, hint=bounded_documents.WHOLE_HINT)


def _module(name: str) -> ModuleType:
    """Load a command's module; what is loaded by then stays, and is never looked through for garbage."""
    module = importlib.import_module(name)
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    return module


def _guarded(name: str, as_json: bool, act: Callable[[], int]) -> int:
    """Run it; every failure becomes one document (or a line on standard error) and its exit code."""
    log_events.configure("warning")  # until the settings say otherwise; standard output is for the answer alone
    try:
        return act()
    except AgentToolsError as error:
        _tell(error, name, as_json=as_json)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader went away; the exit must not trip over it again
        return FAILED
    except Exception as error:  # noqa: BLE001 - the last stop: the details go to the log
        log_events.get_logger().error("command failed unexpectedly", command=name, exc_info=error)
        _tell(error, name, as_json=as_json)
        return FAILED


def _tell(error: Exception, name: str, *, as_json: bool) -> None:
    from slurm_agent_tools.api import printing, serialize

    printing.failure(serialize.failure(error, name), as_json=as_json)


# --- The parser of the commands around the tools ----------------------------------------------------------------------


_REQUIRED = "the following arguments are required: "

_WRONG = re.compile(r"unrecognized arguments: (.*)|invalid choice: '([^']*)'", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are our errors."""

    def error(self, message: str) -> NoReturn:
        """Raise InputError where argparse would print and exit."""
        hint = self.format_usage().strip()
        if message.startswith(_REQUIRED):
            missing = message.removeprefix(_REQUIRED)
            raise InputError(missing, None, "are required" if ", " in missing else "is required", hint=hint)
        raise InputError("arguments", None, message, hint=self._meant(message) + hint)

    def _meant(self, message: str) -> str:
        """What is near to the words that the message complains of."""
        from difflib import get_close_matches

        from slurm_agent_tools.cli.commands import command_tree

        wrong = _WRONG.search(message)
        known = command_tree.suggestions(self) if wrong else ()
        near = [
            each
            for word in (wrong[1] or wrong[2] if wrong else "").split()
            for each in get_close_matches(word, known, 1, 0.7)
        ]
        return f"Did you mean {near[0]}? " if near else ""
