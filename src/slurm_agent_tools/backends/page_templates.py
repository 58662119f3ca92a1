"""Templates of pages that come with the package, and what a page still has of one: their figures are examples."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources

from slurm_agent_tools.backends.pages import FOLDER, BackendPage, PageQueue, Price, parsed_page
from slurm_agent_tools.errors import InputError

TEMPLATES = ("slurm", "workstation", "pbs", "kubernetes", "cloud")

_OF_KIND = {"slurm": "slurm", "pbs": "pbs", "kubernetes": "kubernetes", "skypilot": "cloud"}

_EXAMPLE_HOST = re.compile(r"\bexample\.(?:org|com|net)\b", re.IGNORECASE)  # names that nobody can have, by RFC 2606


def template(name: str) -> str:
    """The text of a packaged template. Raises InputError."""
    if name not in TEMPLATES:
        raise InputError("from", name, "is not a template", hint=f"Templates: {', '.join(TEMPLATES)}.")
    return (resources.files("slurm_agent_tools") / "assets" / FOLDER / f"{name}.yaml").read_text(encoding="utf-8")


def unfilled(page: BackendPage) -> str:
    """What of a page are still the examples of its template, as the verb of a sentence; empty where nothing is.

    The template of this machine has none.
    """
    name = _OF_KIND.get(page.kind)
    if name is None:
        return ""
    if page == _of_template(name):
        return "still says what the template says, and those figures are examples: fill it in"
    found = list(_examples(page, _of_template(name)))
    return f"still has examples of the template in {', '.join(found)}: fill them in" if found else ""


def _examples(page: BackendPage, example: BackendPage) -> Iterator[str]:
    """Fields that still hold an example. What people leave as it is because it is right is none."""
    for field in ("title", "reach", "who", "image", "files"):
        text = getattr(page, field)
        if text is not None and (_EXAMPLE_HOST.search(text) or (field == "reach" and _placeholder(page, example))):
            yield field
    for queue in page.queues:
        if queue in example.queues and queue != PageQueue(name=queue.name, purpose=queue.purpose):
            yield f"partitions {queue.name}"
    if page.price == example.price != Price():
        yield "price"
    yield from (f"notes[{number}]" for number, text in enumerate(page.notes) if _EXAMPLE_HOST.search(text))


def _placeholder(page: BackendPage, example: BackendPage) -> bool:
    """Whether it is reached as the template says; a cloud is, whoever uses it."""
    return page.kind != "skypilot" and page.reach == example.reach


@cache
def _of_template(name: str) -> BackendPage:
    return parsed_page(template(name).encode(), name)
