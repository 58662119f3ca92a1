"""The subcommand `backends`: pages of facts about where jobs can run; list, show, new, check."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from slurm_agent_tools.api import printing
from slurm_agent_tools.backends import page_templates, pages
from slurm_agent_tools.backends.pages import FoundPage, PageQueue
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.settings import load
from slurm_agent_tools.units import format_duration, human_memory

DONE, INVALID = 0, 2

_NONE = [
    "No page yet. Begin one: slurm-agent-tools backends new NAME --from TEMPLATE",
    f"Templates: {', '.join(page_templates.TEMPLATES)}.",
]

_AS_JSON = "print one JSON document"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define `backends list`, `show`, `new` and `check`."""
    parser.description = (
        "Where jobs can run, as choose_backend knows it: one YAML page each, in the project's folder backends/, the"
        " user's (~/.config/slurm-agent-tools/backends/) or the site's (/etc/slurm-agent-tools/backends/). Of pages of"
        " one name the user's counts first, then the site's. What a live cluster says of itself counts before its page."
    )
    commands = parser.add_subparsers(dest="what", required=True, metavar="list|show|new|check")
    listed = commands.add_parser("list", help="every page that counts")
    listed.add_argument("--json", action="store_true", help=_AS_JSON)
    shown = commands.add_parser("show", help="one page, and where it lies")
    shown.add_argument("name", metavar="NAME")
    shown.add_argument("--json", action="store_true", help=_AS_JSON)
    new = commands.add_parser("new", help="write a page from a template, to be filled in")
    new.add_argument("name", metavar="NAME", help="small letters, digits and dashes")
    new.add_argument(
        "--from", dest="template", required=True, metavar="TEMPLATE", help=", ".join(page_templates.TEMPLATES)
    )
    new.add_argument("--user", action="store_true", help="into the user's folder instead of the project's")
    new.add_argument("--json", action="store_true", help=_AS_JSON)
    checked = commands.add_parser("check", help="tell all that is wrong with pages; 2 where anything is")
    checked.add_argument("files", nargs="*", metavar="FILE", help="default: every page")
    checked.add_argument("--json", action="store_true", help=_AS_JSON)


def run(args: argparse.Namespace) -> int:
    """Do it and print one answer. Raises AgentToolsError."""
    project = load().project_root
    act = {"list": _list, "show": _show, "new": _new, "check": _check}[args.what]
    return act(args, project)


def _list(args: argparse.Namespace, project: Path) -> int:
    found = pages.found_pages(project)
    if args.json:
        printing.document({"backends": [_body(one) for one in found]}, as_json=True)
        return DONE
    lines = [line for one in found for line in _lines(one)]
    printing.lines(lines or _NONE)
    return DONE


def _show(args: argparse.Namespace, project: Path) -> int:
    found = next((one for one in pages.found_pages(project) if one.name == args.name), None)
    if found is None:
        hint = "slurm-agent-tools backends list names them all."
        raise InputError("name", args.name, "is no backend with a page", hint=hint)
    if args.json:
        printing.document(_body(found), as_json=True)
    else:
        printing.lines(_lines(found))
        printing.lines([f"  {what}: {text}" for what, text in _more(found)])
    return DONE


def _new(args: argparse.Namespace, project: Path) -> int:
    name, text = pages.checked_name(args.name), page_templates.template(args.template)
    user, _, own = pages.folders(project)
    folder = user if args.user else own
    path = folder / f"{name}.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError("name", name, "has a page already", hint=f"Edit {path}, or choose another name.") from error
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror}", hint="Check the folder and its owner.") from error
    then = f"Fill in {path}, then: slurm-agent-tools backends check"
    if args.json:
        printing.document({"path": str(path), "template": args.template, "next": then}, as_json=True)
    else:
        printing.lines([f"written: {path}", then])
    return DONE


def _check(args: argparse.Namespace, project: Path) -> int:
    files = [Path(os.path.abspath(file)) for file in args.files] or [*pages.page_files(project)]  # noqa: PTH100
    found = {str(path): pages.checked_file(path, project) for path in files}
    left = {path: _left(path, project) for path, wrong in found.items() if not wrong}
    if args.json:
        told = {path: [{"message": one.message, "hint": one.hint} for one in wrong] for path, wrong in found.items()}
        unfilled = {path: text for path, text in left.items() if text}
        printing.document({"pages": told, "unfilled": unfilled}, as_json=True)
    else:
        if not found:
            printing.lines(_NONE)
        for path, wrong in found.items():
            word = "wrong" if wrong else f"right, but it {left[path]}" if left[path] else "right"
            printing.lines([f"{path}: {word}"])
            printing.lines([f"  {one.message}. {one.hint}" for one in wrong])
    return INVALID if any(found.values()) else DONE


def _left(path: str, project: Path) -> str:
    return page_templates.unfilled(pages.read_page(Path(path), project))


# --- words ------------------------------------------------------------------------------------------------------------


def _body(one: FoundPage) -> dict[str, Any]:
    page = one.page.model_dump(mode="json", by_alias=True, exclude_none=True)
    left = page_templates.unfilled(one.page)
    return {"name": one.name, "path": one.path, "hidden": list(one.hidden), "unfilled": left or None, **page}


def _lines(one: FoundPage) -> list[str]:
    title = f", {one.page.title}" if one.page.title else ""
    hidden = [f"  not counted: {path}" for path in one.hidden]
    left = page_templates.unfilled(one.page)
    told = [f"  it {left}"] if left else []
    return [f"{one.name}: {one.page.kind}{title} ({one.path})", *map(_queue, one.page.queues), *told, *hidden]


def _queue(queue: PageQueue) -> str:
    told: list[str] = [queue.purpose]
    if queue.time_limit is not None:
        told.append(f"up to {format_duration(queue.time_limit)}")
    if queue.gpus is not None:
        memory = f" of {human_memory(queue.gpus.memory)}" if queue.gpus.memory is not None else ""
        told.append(f"{queue.gpus.per_node} {queue.gpus.type}{memory} a node")
    return f"  {queue.name}: {', '.join(told)}"


def _more(one: FoundPage) -> list[tuple[str, str]]:
    page, price = one.page, one.page.price
    told = [("reach", page.reach), ("who", page.who), ("files", page.files)]
    if price.allocation_hours is not None:
        until = f" until {price.allocation_ends}" if price.allocation_ends else ""
        told.append(("price", f"free with an allocation, {price.allocation_hours:g} hours left{until}"))
    elif price.gpu_hour is not None or price.cpu_hour is not None:
        parts = [(price.gpu_hour, "GPU"), (price.cpu_hour, "CPU")]
        said = ", ".join(
            f"{value:g} {price.currency or ''} per {what} hour" for value, what in parts if value is not None
        )
        told.append(("price", said + (f", seen on {price.priced_on}" if price.priced_on else "")))
    if page.can_be_ended:
        told.append(("careful", "jobs can be ended without warning"))
    told += [("note", note) for note in page.notes]
    return [(what, text) for what, text in told if text]
