"""What another user could change or put in the place of something."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm_agent_tools.transport.private_files import replaceable, writable_by_others

NOBODY = 65534


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    made = tmp_path / "open" / "mine"
    made.mkdir(mode=0o700, parents=True)
    return made


@pytest.mark.parametrize(("mode", "weak"), [(0o600, False), (0o644, False), (0o660, True), (0o602, True)])
def test_a_file_that_others_may_write_is_not_ours_alone(tmp_path: Path, mode: int, weak: bool):
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    assert writable_by_others(path) is weak


def test_a_file_of_somebody_else_is_not_ours_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "file"
    path.touch(0o600)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    assert writable_by_others(path)


@pytest.mark.parametrize(("mode", "weak"), [(0o755, False), (0o1777, False), (0o777, True)])
def test_a_folder_in_which_all_may_rename_is_a_way_in(mine: Path, mode: int, weak: bool):
    mine.parent.chmod(mode)
    assert replaceable(mine) == (mine.parent if weak else None)


def test_a_link_is_followed_and_has_to_be_our_own(mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    link = tmp_path / "link"
    link.symlink_to(mine.parent)
    assert replaceable(link / "mine") is None
    mine.parent.chmod(0o777)
    assert replaceable(link / "mine") == mine.parent
    mine.parent.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY + 1)
    if os.getuid() == 0:  # a link of root's is trusted
        os.lchown(link, NOBODY, NOBODY)
    assert replaceable(link / "mine") == link
