"""The subcommand `serve`: speak MCP on standard input and output, or over HTTP."""

from __future__ import annotations

import argparse
import shutil
import sys

import anyio
from pydantic import ValidationError

from slurm_agent_tools.errors import ConfigError, InputError
from slurm_agent_tools.server.mcp_server import serve
from slurm_agent_tools.settings import HttpSettings, Settings, devcluster_place, load, workstation_place

_OPTIONS = {
    "listen": "--listen",
    "hosts": "--public-host",
    "proxy": "--behind-proxy",
    "tls_cert": "--tls-cert",
    "tls_key": "--tls-key",
}


_WAITS = (
    "slurm-agent-tools serve waits for an MCP client to speak on standard input. A client starts it by itself:"
    " `slurm-agent-tools init` writes its configuration. Control-C ends it."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `serve`."""
    parser.description = (
        "Speak the Model Context Protocol on standard input and output, or with --http over streamable HTTP, where"
        " every request needs a token (slurm-agent-tools token new). Logs go to standard error."
    )
    parser.add_argument("--http", action="store_true", help="streamable HTTP, at the path /mcp")
    parser.add_argument(
        "--listen", metavar="WHERE", help="unix:PATH or HOST:PORT; default: a socket in a private folder of yours"
    )
    parser.add_argument(
        "--public-host", dest="hosts", action="append", metavar="HOST", help="a name clients call it by"
    )
    parser.add_argument(
        "--behind-proxy", dest="proxy", action="append", metavar="HOST", help="a proxy of this name does TLS before it"
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate with its chain, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="its private key, PEM")


def run(args: argparse.Namespace) -> int:
    """Serve; returns the exit code. What is wrong with the settings is raised."""
    given = {name: value for name in _OPTIONS if (value := getattr(args, name)) is not None}
    if given and not args.http:
        option = _OPTIONS[next(iter(given))]
        raise InputError("arguments", option, "is only for --http", hint=f"Write: serve --http {option} ...")
    settings = load()
    notes = [_no_slurm(settings), _WAITS if not args.http and sys.stdin.isatty() else None]
    for note in filter(None, notes):
        from slurm_agent_tools.api import printing  # noqa: PLC0415 - a client's server mostly prints nothing

        printing.note(note)
    if not args.http:
        anyio.run(serve, settings)
        return 0
    from slurm_agent_tools.server.http import app  # noqa: PLC0415 - its server is not loaded for standard input

    anyio.run(app.serve, _with(settings, given))
    return 0


def _no_slurm(settings: Settings) -> str | None:
    """What to do where calls would find no Slurm; None where there is one, as far as can be told without asking it."""
    name = workstation_place.NAME
    if settings.cluster == name and settings.clusters[name].host is None:
        from slurm_agent_tools.devcluster import workstation  # noqa: PLC0415 - most machines are none

        return workstation.asleep(settings.clusters[name].slurm)
    if not sys.platform.startswith("linux"):
        return None
    named = settings.clusters or settings.slurm.conf or settings.slurm.bin_dir
    if named or workstation_place.other_slurm() or (shutil.which("sbatch") or "/usr/bin/sbatch") != "/usr/bin/sbatch":
        return None
    own, runs = workstation_place.offer(), devcluster_place.hint()
    if runs and workstation_place.is_root():  # what root is offered is another devcluster
        return f"No Slurm is known here. {runs.strip()}"
    return f"No Slurm is known here. {runs}{own[0].upper()}{own[1:]}"


def _with(settings: Settings, given: dict[str, object]) -> Settings:
    """The settings with the options of the command line before them."""
    try:
        http = HttpSettings.model_validate(settings.http.model_dump() | given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0])
        raise ConfigError(f"http.{name}", given.get(name), first["msg"], hint=f"Correct {_OPTIONS[name]}.") from error
    return settings.model_copy(update={"http": http})
