"""What a page still has of the template that it was made from."""

from __future__ import annotations

import pytest

from slurm_agent_tools.backends.page_templates import TEMPLATES, template, unfilled
from slurm_agent_tools.backends.pages import BackendPage, parsed_page


def page(text: str) -> BackendPage:
    return parsed_page(text.encode(), "lab.yaml")


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_page_as_its_template_is_told_as_a_whole_but_for_this_machines(name: str) -> None:
    told = unfilled(page(f"# mine\n{template(name)}"))
    assert ("still says what the template says" in told) == (name != "workstation")


@pytest.mark.parametrize(
    ("name", "change", "left"),
    [
        ("slurm", ("The group's cluster", "Ours"), ["reach", "partitions gputest", "partitions gpu", "price"]),
        ("slurm", ("login.example.org", "login.lab"), ["partitions gputest", "partitions gpulong", "price"]),
        ("pbs", ('time_limit: "1h"', 'time_limit: "2h"'), ["reach", "partitions prod", "price"]),
        ("kubernetes", ("nodes: 4", "nodes: 5"), ["reach"]),
        ("cloud", ("1.29", "2.49"), ["partitions a100-8"]),
        ("cloud", ("priced_on: 2026-11-01", "priced_on: 2026-11-20"), ["partitions a100", "partitions a100-8"]),
    ],
)
def test_a_page_that_is_half_filled_in_names_what_is_left(name: str, change: tuple[str, str], left: list[str]) -> None:
    told = unfilled(page(template(name).replace(*change)))
    fields = told.removeprefix("still has examples of the template in ").removesuffix(": fill them in").split(", ")
    assert set(left) <= set(fields)
    assert "title" not in fields


def test_what_was_filled_in_is_not_named() -> None:
    filled = template("slurm").replace("login.example.org", "login.lab").replace("5000.0", "800.0")
    assert unfilled(page(filled)).endswith(" in partitions gputest, partitions gpu, partitions gpulong: fill them in")
    for old, new in (("30m", "20m"), ("24h", "12h"), ("7d", "5d")):
        filled = filled.replace(old, new)
    assert unfilled(page(filled)) == ""


def test_a_page_that_says_only_what_its_partitions_are_for_has_nothing_left() -> None:
    short = "kind: slurm\npartitions:\n  - {name: gputest, purpose: testing}\n  - {name: gpu, purpose: production}\n"
    assert unfilled(page(short)) == ""


@pytest.mark.parametrize("text", ["notes: [Ask at help.example.com.]", "image: registry.example.net/a/b:1"])
def test_a_host_that_nobody_can_have_is_an_example_wherever_it_stands(text: str) -> None:
    told = unfilled(page(f"kind: kubernetes\npartitions:\n  - {{name: gpu, purpose: production}}\n{text}\n"))
    assert told in {f"still has examples of the template in {field}: fill them in" for field in ("image", "notes[0]")}
