"""`make pins` asks uv over the project's own files."""

import tomllib
from pathlib import Path

import pytest
from tests.unit.shipped_scripts import script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def pins():
    return script("pins")


def test_uv_is_asked_over_the_project_as_it_is_but_for_the_word_that_it_is_not_uvs_to_manage(pins):
    """uv reads no groups of a project that it does not manage, and `make pins` wants those of the group `dev`."""
    asked = {name: text for name, text in pins.questions().items() if name == "pyproject.toml"}
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert wanted["tool"]["uv"].pop("managed") is False
    assert tomllib.loads(asked["pyproject.toml"]) == wanted
    assert pins.questions()["requirements.txt"] == (ROOT / "requirements.txt").read_text()


def test_the_committed_lists_of_exact_versions_are_one_list(pins):
    pinned = pins.pins((ROOT / "requirements.txt").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    assert len(pinned) > 30
    assert pins.constrained(project, pinned) == project
