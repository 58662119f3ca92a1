"""Every page that shows commands with their answers, run on a real Slurm as it is written."""

from __future__ import annotations

import asyncio
import functools
import os
from pathlib import Path

import pytest
from tests.system import shown_pages
from tests.system.faces import Place

DOCS = Path(__file__).parents[2] / "docs"
PAGES = shown_pages.pages(DOCS)


@pytest.mark.proves("pages-are-run")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_gets_the_answers_that_it_shows(page: Path, fresh: Place) -> None:
    text = page.read_text()
    differs = asyncio.run(answered(text, fresh))
    if os.environ.get("UPDATE_PAGES"):
        page.write_text(functools.reduce(lambda page, one: one.mended(page), differs, text))
    else:
        assert not differs, "\n\n".join(map(str, differs))


async def answered(text: str, place: Place) -> list[shown_pages.Difference]:
    async with place.client() as client:
        return await shown_pages.run(text, shown_pages.Run(place, client))


@pytest.mark.proves("pages-are-run")
def test_the_tutorial_is_among_the_pages_that_are_run() -> None:
    assert DOCS / "tutorial/first-experiment.md" in PAGES


@pytest.mark.parametrize(
    ("shown", "given", "same"),
    [
        ("Job 2 is done in 00:01", "Job 17 is done in\n00:12", True),
        ("Job 2 is done", "Job 2 is lost", False),
        ("at wide-20261123-160554-0f1727.sh", "at wide-20270101-000000-abcdef.sh", True),
        ("say `approve 184ec4d0`", "say `approve beefcafe`", True),
        ("first ... last", "first and second and last", True),
        ("first ... last", "first and second", False),
        ("sleeps (a.b)", "sleeps (axb)", False),
    ],
)
def test_answers_are_alike_but_for_their_numbers(shown: str, given: str, same: bool) -> None:
    assert shown_pages.alike(shown, given) is same


def test_a_block_without_a_command_in_front_is_an_error() -> None:
    with pytest.raises(AssertionError, match="begins with an answer"):
        shown_pages.steps("something\n$ command\n")
