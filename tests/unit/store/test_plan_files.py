"""Plans as files of one caller: what a process that was killed left behind goes, and nothing of anybody else."""

import os
import time
from pathlib import Path

import pytest

from slurm_agent_tools.store.plan_files import PlanFiles
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.text import safe_open

ALICE, OTHER = Owner("alice", "/p", "lab"), Owner("alice", "/other", "lab")
OLD = time.time() - 7200


def drafts(folder: Path) -> set[str]:
    return {path.name for path in (folder / "plans").iterdir() if path.name.startswith(".")}


def killed(folder: Path, owner: Owner, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write a plan in a process that ends before the draft has its name; its draft."""
    before = drafts(folder)
    with monkeypatch.context() as patched:
        patched.setattr(safe_open, "replace", _end)
        patched.setattr(safe_open, "dropped", _kept)
        with pytest.raises(KeyboardInterrupt):
            PlanFiles(folder, owner).keep("b", {"a": 1})
    (left,) = drafts(folder) - before
    return left


def _end(*_):
    raise KeyboardInterrupt


class _kept:  # noqa: N801 - in place of a function
    def __init__(self, *_):
        pass

    def __enter__(self):
        return None

    def __exit__(self, *_):
        return False


def test_the_draft_of_a_killed_process_goes_with_the_next_plan_once_it_is_old(tmp_path, monkeypatch):
    files = PlanFiles(tmp_path, ALICE)
    files.keep("a", {"a": 1})
    left = killed(tmp_path, ALICE, monkeypatch)
    files.keep("a", {"a": 1})
    assert drafts(tmp_path) == {left}  # somebody may be writing it just now
    os.utime(tmp_path / "plans" / left, (OLD, OLD))
    files.keep("a", {"a": 1})
    assert drafts(tmp_path) == set()
    assert files.find("a", dict) == {"a": 1}


def test_drafts_of_others_and_other_files_stay(tmp_path, monkeypatch):
    files = PlanFiles(tmp_path, ALICE)
    files.keep("a", {"a": 1})
    kept = {killed(tmp_path, OTHER, monkeypatch), ".notes", ".0123456789abcdef.txt"}
    for name in kept:
        (tmp_path / "plans" / name).touch()
    earlier = ".0123456789abcdef"  # as drafts were named before they said whose they are
    (tmp_path / "plans" / earlier).touch()
    for name in (*kept, earlier):
        os.utime(tmp_path / "plans" / name, (OLD, OLD))
    files.keep("a", {"a": 1})
    assert drafts(tmp_path) == kept


def test_a_draft_that_is_a_link_goes_alone(tmp_path):
    files = PlanFiles(tmp_path, ALICE)
    files.keep("a", {"a": 1})
    (tmp_path / "kept").write_text("text")
    link = tmp_path / "plans" / ".0123456789abcdef"
    link.symlink_to(tmp_path / "kept")
    os.utime(link, (OLD, OLD), follow_symlinks=False)
    files.keep("a", {"a": 1})
    assert (drafts(tmp_path), (tmp_path / "kept").read_text()) == (set(), "text")
