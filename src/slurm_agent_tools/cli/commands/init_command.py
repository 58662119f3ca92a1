"""The subcommand `init`: set up an experiment folder for the tools. Nothing that is there is ever overwritten."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Literal

from slurm_agent_tools.api import client_files
from slurm_agent_tools.api.client_files import CLIENTS, SERVER
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.policy.for_others import schema_text
from slurm_agent_tools.text import safe_open, sanitize

_MARK = "<!-- slurm-agent-tools: begin -->"  # of our block in AGENTS.md

_SCHEMA = "policy.schema.json"

_EXAMPLE = "scripts/slurm/example.sh"

_FILES = {
    "slurm-agent.toml": "init/slurm-agent.toml",
    "policies/project.yaml": "init/project.yaml",
    "policies/policy.schema.json": _SCHEMA,
    _EXAMPLE: "init/example.sh",
    "scripts/slurm/generated/.gitkeep": None,
    "logs/slurm/.gitkeep": None,
    "results/.gitkeep": None,
}

_TUTORIAL = {
    "train.py": "init/tutorial/train.py",
    **{f"scripts/slurm/{name}": f"init/tutorial/{name}" for name in ("train.sh", "copied.sh", "broken.sh")},
}

CAMPAIGNS = {"learning-rate": "train.py", "pipeline": "pipeline.py", "list": "train.py", "search": "train.py"}
"""The packaged campaigns, by what they are an example of, and the program that each runs."""

_A_SLURM = (
    "slurm-agent-tools workstation up             # where there is no Slurm: this machine as a cluster of its own,",
    "slurm-agent-tools devcluster up --yes        # or a private Slurm to try things on, for root as well",
)

_NEXT = (
    "slurm-agent-tools doctor                     # does all of it work? what does not, and what to do",
    *_A_SLURM,
    "{opened}. Then ask:",
    f"  Submit {_EXAMPLE}, wait for it, and save its metrics as the result `example`.",
)

_BROKEN = "  Run scripts/slurm/broken.sh and tell me what happened."

_LATER = (
    "slurm-agent-tools policy show                # what an agent may do here",
    "slurm-agent-tools policy check YOUR_SCRIPT   # what the policy says of a script",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One file, relative to the folder, and what became of it."""

    path: str
    action: Literal["created", "kept"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the arguments of `init`."""
    parser.description = "Set up a folder of experiments for agents. Files that are there are kept as they are."
    parser.add_argument("folder", nargs="?", default=".", help="The folder (default: this one); made if missing")
    parser.add_argument(
        "--tutorial",
        action="store_true",
        help="Write the files of the tutorial as well: three jobs, one of which fails",
    )
    parser.add_argument(
        "--campaign", metavar="KIND", help=f"Write an example of a campaign alone: {', '.join(CAMPAIGNS)}"
    )
    parser.add_argument(
        "--client", metavar="NAME", action="append", choices=[*CLIENTS, "all"],
        help=f"A client to write the files of, or show the lines for, once for each: {', '.join(CLIENTS)}, all "
        f"(default: {', '.join(client_files.USUAL)})",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="Print one JSON document")


def run(args: argparse.Namespace) -> int:
    """Create what is missing and say so; always 0 when every file could be written."""
    clients = client_files.chosen(args.client) if args.campaign is None else []
    files = _files(clients) if args.campaign is None else _campaign_files(args.campaign)
    files |= _TUTORIAL if args.tutorial else {}
    folder = _folder(args.folder)
    entries = [_place(folder, path, asset) for path, asset in files.items()]
    notes = list(_left_out(folder, files))
    if args.campaign is None:
        notes += [*_shadowed(folder), *_not_on_path(), *_client_notes(folder, clients), *_not_handed_on(folder)]
    personal = list(_personal(folder, clients))
    after = _next(clients, tutorial=args.tutorial) if args.campaign is None else _campaign_next(args.campaign)
    following = [*_way_to(folder), *after]
    if args.json:
        body = {"folder": str(folder), "files": [asdict(entry) for entry in entries], "notes": notes, "next": following}
        body |= {"personal": personal} if personal else {}
        print(json.dumps(body, indent=2))  # noqa: T201 - the command's answer
    else:
        print(sanitize.visible("\n".join(_text(folder, entries, notes, personal, following))))  # noqa: T201
    return 0


def _files(clients: Iterable[str]) -> dict[str, str | None]:
    """What a project gets: its own files, and those of its clients."""
    theirs = {path: source for name in clients for path, source in CLIENTS[name].files.items()}
    return {**_FILES, **theirs}


def _campaign_files(kind: str) -> dict[str, str | None]:
    """An example of a campaign: its file, the schema that editors check it by, and the program that it runs."""
    if kind not in CAMPAIGNS:
        raise InputError("campaign", kind, "is not an example", hint=f"Examples: {', '.join(CAMPAIGNS)}.")
    program = f"campaigns/programs/{CAMPAIGNS[kind]}"
    own = (f"campaigns/{kind}.yaml", "campaigns/campaign.schema.json", program)
    return {**{path: path for path in own}, "scripts/slurm/generated/.gitkeep": None, "logs/slurm/.gitkeep": None}


def _next(clients: Sequence[str], *, tutorial: bool) -> tuple[str, ...]:
    titles = [CLIENTS[name].title for name in clients if CLIENTS[name].config]
    personal = any(CLIENTS[name].personal for name in clients)
    ways = [f"Open this folder in your client ({', '.join(titles)}): the server is found by its client file"] * bool(
        titles
    )
    ways += ["Start your client anew, once its own file has the lines above"] * personal
    opened = "; or: ".join(ways or ["Open this folder in your client"])
    known = bool(os.environ.get("SLURM_CONF"))
    steps = (line.format(opened=opened) for line in _NEXT if not (known and line in _A_SLURM))
    return (*steps, *((_BROKEN,) if tutorial else ()), *_LATER)


def _campaign_next(kind: str) -> tuple[str, ...]:
    return (
        f"Open campaigns/{kind}.yaml: each line says what it is; make it yours.",
        f"slurm-agent-tools campaign plan {kind}   # what it would run, wait and cost, and what the policy says",
        f"slurm-agent-tools campaign run {kind}    # can be left and continued at any time",
    )


def asset(name: str) -> str:
    """A file that ships with the package: from the wheel, or from the repository in an editable install."""
    if name == _SCHEMA:
        return schema_text()
    shipped = resources.files("slurm_agent_tools") / "assets" / name
    if shipped.is_file():
        return shipped.read_text(encoding="utf-8")
    try:
        return (Path(__file__).parents[4] / ".github" / "agents" / name).read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(f"{name} is missing from the package", hint="Install slurm-agent-tools again.") from error


def _folder(named: str) -> Path:
    folder = Path(named).expanduser().absolute()
    if folder.exists() and not folder.is_dir():
        raise InputError("folder", named, "is not a folder", hint="Name a folder, new or existing.")
    return folder


def _way_to(folder: Path) -> list[str]:
    """All that follows is typed in the folder."""
    return [] if folder.resolve() == Path.cwd().resolve() else [f"cd {shlex.quote(str(folder))}"]


def _place(folder: Path, path: str, source: str | None) -> Entry:
    """Create one file unless something by that name is there, a dangling link included, or a link leads out."""
    target = folder / path
    if _leads_out(folder, target.parent):
        return Entry(path, "kept")
    content = asset(source) if source else ""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "w", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        if not os.path.lexists(target):  # it is the folder's name that is taken by a file
            raise StorageError(f"{target.parent} is not a folder", hint="Move that file away.") from None
        return Entry(path, "kept")
    except OSError as error:
        raise StorageError(
            f"{target} could not be written: {error.strerror}", hint="Choose a folder of yours."
        ) from error
    return Entry(path, "created")


def _leads_out(folder: Path, inner: Path) -> bool:
    """Whether a link in the folder leads to a place outside of it, which its owner may not know of."""
    return not Path(os.path.realpath(inner)).is_relative_to(os.path.realpath(folder))


def _left_out(folder: Path, files: Iterable[str]) -> Iterator[str]:
    """What lies behind such links."""
    for path in files:
        if _leads_out(folder, (folder / path).parent):
            yield f"{path} lies behind a link that leads out of the folder, where nothing is written. Make it by hand."


def _client_notes(folder: Path, clients: Iterable[str]) -> Iterator[str]:
    """What to add by hand to a client file that was there and does not know our server."""
    for client in (CLIENTS[name] for name in clients):
        if client.table:
            named = client_files.servers(folder / client.config, client.table)
            if named is None or SERVER not in named:
                kind = "TOML" if client.config.endswith(".toml") else "JSON"
                problem = f"is not plain {kind}" if named is None else "does not name this server"
                lines = client_files.to_add(client, asset(client.files[client.config]))
                yield f"{client.config} {problem}. If it is missing there, add {lines}"
        elif "AGENTS.md" in client.files and _MARK not in _own_text(folder / "AGENTS.md"):
            yield f"AGENTS.md says nothing of Slurm jobs. Add to it:\n{asset(client.files['AGENTS.md']).rstrip()}"


def _not_handed_on(folder: Path) -> Iterator[str]:
    """Where a client file that names our server keeps a variable from it: whichever clients were asked for."""
    for client in (one for one in CLIENTS.values() if one.table):
        entry = (client_files.servers(folder / client.config, client.table) or {}).get(SERVER)
        names = client_files.not_handed_on(client, entry, asset(client.files[client.config]))
        if names and isinstance(entry, dict):
            held = entry.get("env_vars")
            every = [*(held if isinstance(held, list) else []), *names]
            yield (
                f"{client.config} names this server, but {client.title} hands no {', '.join(names)} on to it. "
                f"If you export that, write there: env_vars = {json.dumps(every)}"
            )


def _own_text(path: Path) -> str:
    try:
        return safe_open.read(path, 2**20).decode(errors="replace")
    except OSError:
        return ""


def _personal(folder: Path, clients: Iterable[str]) -> Iterator[dict[str, str]]:
    """The lines for a person's own files, which `init` never writes: they lie outside of the folder."""
    command = shutil.which(SERVER) or str(Path(sys.executable).parent / SERVER)
    for client in (CLIENTS[name] for name in clients):
        if client.personal:
            lines = client_files.filled(asset(client.lines), command, folder)
            yield {"client": client.title, "file": client.personal, "lines": lines}


def _shadowed(folder: Path) -> Iterator[str]:
    """A `tools` of the project's own hides ours from `python -m`, which looks in the working folder first."""
    for path in ("tools/__init__.py", "tools.py", "tools/agent_tools"):
        if (folder / path).exists():
            yield (
                f"{path} hides tools.agent_tools from `python -m tools.agent_tools.NAME` here. "
                "Use `slurm-agent-tools NAME --json` instead, or rename it."
            )


def _not_on_path() -> Iterator[str]:
    """Clients look on the PATH of the login: what `uv run` or an active environment adds to it does not count."""
    here = Path(sys.executable).parent
    own = here.resolve() if sys.prefix != sys.base_prefix else None
    others = [folder for folder in os.get_exec_path() if Path(folder).resolve() != own]
    if shutil.which(SERVER, path=os.pathsep.join(others)) is None:
        yield (
            "slurm-agent-tools is not on your PATH, or only by its own environment, so clients may not find it. Put "
            f"its full path into the client files as `command`: {here / SERVER}. Or install it for your user: "
            "`make install` in the folder of its sources."
        )


def _text(
    folder: Path, entries: list[Entry], notes: list[str], personal: Sequence[dict[str, str]], following: Iterable[str]
) -> Iterator[str]:
    yield f"{folder}"
    for entry in entries:
        yield f"  {entry.action:<8} {entry.path}"
    if notes:
        yield "\nPlease look at this:"
        yield from (f"  - {note}" for note in notes)
    for one in personal:
        yield f"\n{one['client']} keeps its servers in {one['file']}, which is yours. Add there:"
        yield one["lines"].rstrip()
    yield "\nNext:"
    yield from (f"  {line}" for line in following)
