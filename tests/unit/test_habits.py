"""Workflows, templates and hooks: each can be read by what reads it, and the commands in them are there."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
GITHUB = ROOT / ".github"
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)[1].split())  # type: ignore[index]
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yaml"))
ACTION = re.compile(r"uses: ([\w./-]+)@([0-9a-f]{40})  # v\d+\.\d+\.\d+$")


def document(path: Path) -> dict[str, Any]:
    """The file; `on` is no boolean here, as it is for GitHub."""
    body = yaml.load(path.read_text(), Loader=yaml.BaseLoader)  # noqa: S506 - makes text alone
    assert isinstance(body, dict)
    return body


def steps(workflow: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            yield job, step


def filled(text: str, job: dict[str, Any]) -> list[str]:
    """The command once for each value of the matrix that stands in it."""
    matrix = job.get("strategy", {}).get("matrix", {})
    found = [text]
    for name, values in matrix.items():
        found = [line.replace(f"${{{{ matrix.{name} }}}}", value) for line in found for value in values]
    return list(dict.fromkeys(found))


def commands(path: Path) -> list[list[str]]:
    lines = [line for job, step in steps(document(path)) if "run" in step for line in filled(step["run"], job)]
    return [shlex.split(part) for line in lines for part in re.split(r"&&|\n", line)]


def test_the_workflows_are_those_that_were_planned() -> None:
    assert [path.stem for path in WORKFLOWS] == ["lint", "nightly", "release", "tests"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_what_github_needs(path: Path) -> None:
    workflow = document(path)

    assert (
        {"name", "on", "jobs", "permissions"} <= workflow.keys() <= {"name", "on", "jobs", "permissions", "concurrency"}
    )
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert {"runs-on", "steps", "timeout-minutes"} <= job.keys()
        known = {
            "runs-on",
            "steps",
            "timeout-minutes",
            "strategy",
            "container",
            "env",
            "needs",
            "permissions",
            "environment",
        }
        assert job.keys() <= known
        assert set(re.findall(r"matrix\.(\w+)", str(job))) == set(job.get("strategy", {}).get("matrix", {}))
        needed = job.get("needs", [])
        assert {needed} if isinstance(needed, str) else set(needed) <= workflow["jobs"].keys()
    for _, step in steps(workflow):
        assert len({"run", "uses"} & step.keys()) == 1
        assert step.keys() <= {"run", "uses", "with", "env", "name", "if"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_starts_targets_and_scripts_that_there_are(path: Path) -> None:
    made = [words[1] for words in commands(path) if words[0] == "make"]
    scripts = [word for words in commands(path) for word in words if word.startswith("scripts/")]

    assert made
    assert [target for target in made if target not in TARGETS] == []
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_git_works_in_a_container_whose_checkout_belongs_to_another_user(path: Path) -> None:
    for job in document(path)["jobs"].values():
        told = [step.get("run", step.get("uses", "")) for step in job["steps"]]
        checkout = next(number for number, step in enumerate(told) if "actions/checkout" in step)
        if "container" in job:
            assert told[checkout + 1] == 'git config --global --add safe.directory "$GITHUB_WORKSPACE"'


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_action_is_held_to_a_commit_and_no_text_of_others_gets_into_a_shell(path: Path) -> None:
    used = [line.strip().removeprefix("- ") for line in path.read_text().splitlines() if "uses:" in line]
    found = [ACTION.fullmatch(line) for line in used]

    assert [line for line, match in zip(used, found, strict=True) if match is None] == []
    assert {match[1].split("/")[0] for match in found if match} == {"actions"}
    assert [step["run"] for _, step in steps(document(path)) if "${{ github." in step.get("run", "")] == []
    kept = [step["with"] for _, step in steps(document(path)) if "checkout" in step.get("uses", "")]
    assert all(given["persist-credentials"] == "false" for given in kept)


def test_the_tests_run_on_each_system_and_python_that_is_supported() -> None:
    jobs = document(GITHUB / "workflows/tests.yaml")["jobs"]

    assert jobs["systems"]["strategy"]["matrix"]["image"] == ["debian:12", "debian:13", "ubuntu:24.04"]
    pythons = jobs["pythons"]["strategy"]["matrix"]["python"]
    assert pythons == ["3.11", "3.12", "3.13", "3.14"]
    assert f'requires-python = ">={pythons[0]}"' in (ROOT / "pyproject.toml").read_text()


def test_every_night_meets_the_newer_versions_of_slurm() -> None:
    matrix = document(GITHUB / "workflows/nightly.yaml")["jobs"]["slurm"]["strategy"]["matrix"]

    assert f"SLURMS = {' '.join(matrix['slurm'])}\n" in MAKEFILE


def test_only_what_signs_and_publishes_may_do_more_than_read() -> None:
    more = {
        (path.stem, name): set(job["permissions"]) - {"contents"}
        for path in WORKFLOWS
        for name, job in document(path)["jobs"].items()
        if "permissions" in job
    }

    assert more == {("release", "build"): {"id-token", "attestations"}, ("release", "publish"): {"id-token"}}


@pytest.mark.parametrize("path", sorted((GITHUB / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem)
def test_an_issue_template_has_what_its_form_needs(path: Path) -> None:
    form = document(path)
    fields = [field for field in form["body"] if field["type"] != "markdown"]

    assert {"name", "description", "body"} <= form.keys()
    assert {field["type"] for field in fields} <= {"textarea", "input", "dropdown", "checkboxes"}
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert any(field.get("validations", {}).get("required") == "true" for field in fields)


def test_the_hooks_start_the_tools_of_the_set_up() -> None:
    (repository,) = document(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    lint = re.search(r"^lint: setup\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    for hook in repository["hooks"]:
        assert {"id", "name", "entry", "language"} <= hook.keys()
        program, *words = shlex.split(hook["entry"])
        assert program.startswith(".venv/bin/")
        assert all((ROOT / word).exists() for word in words if "/" in word)
        assert program.endswith("/python") or lint is None or program.removeprefix(".venv/bin/") in lint[1]


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", ".github/pull_request_template.md"])
def test_pages_for_contributors_name_targets_and_modules_that_there_are(page: str) -> None:
    text = (ROOT / page).read_text()
    named = set(re.findall(r"`?\bmake ([a-z][a-z-]+)", text))

    assert named
    assert named <= TARGETS
    parts = re.findall(r"`((?:policy|slurm|diagnosis|models|api|cli|services|store)/[\w/.]+)`", text)
    assert [part for part in parts if not (ROOT / "src/slurm_agent_tools" / part).exists()] == []


def test_the_map_of_the_source_names_files_that_there_are() -> None:
    named = set(re.findall(r"`([a-z_]+/[\w/.-]+)`", (ROOT / "docs/concepts/rooms.md").read_text()))
    tops = (ROOT, ROOT / "src/slurm_agent_tools")

    assert len(named) > 80
    assert [name for name in sorted(named) if not any((top / name).exists() for top in tops)] == []
