"""What is saved of a repository, and that no program is started which it, its submodules or its user's settings name."""

from __future__ import annotations

import os
import subprocess
import tracemalloc
from pathlib import Path

import pytest
from tests.unit.transport.git_repositories import ATTACKS, committed, evil, git, touched

from slurm_agent_tools.models.result import GitState
from slurm_agent_tools.transport import git_state as git_state_module
from slurm_agent_tools.transport.git_state import git_state, tracked_files

pytestmark = pytest.mark.proves("repositories-start-nothing")


@pytest.fixture(autouse=True)
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with the settings of somebody who commits."""
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / ".gitconfig").write_text("[user]\nname = a\nemail = a@b.example\n[init]\ndefaultBranch = main\n")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{home}/bin{os.pathsep}{os.environ['PATH']}")
    return home


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """One commit of two files, one of which is touched so that git has to look into it."""
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    return committed(folder)


# --- What it says ------------------------------------------------------------------------------------------------------


async def test_a_clean_repository_is_told_with_its_commit_and_branch(repository: Path):
    expected = GitState(commit=git(repository, "rev-parse", "HEAD"), branch="main", dirty=False)

    assert await git_state(str(repository)) == expected


async def test_a_file_that_was_only_touched_is_no_change(repository: Path):
    touched(repository, weights="weights\n")

    assert (await git_state(str(repository))).dirty is False


@pytest.mark.parametrize("change", ["content", "deleted", "staged", "mode"])
async def test_a_change_of_a_tracked_file_is_told(repository: Path, change: str):
    file = repository / "train.py"
    if change == "deleted":
        file.unlink()
    elif change == "mode":
        file.chmod(0o755)
    else:
        file.write_text("print(22)\n")
    if change == "staged":
        git(repository, "add", ".")

    assert (await git_state(str(repository))).dirty is True


async def test_a_file_that_is_not_tracked_is_no_change(repository: Path):
    (repository / "notes.txt").write_text("x")

    assert (await git_state(str(repository))).dirty is False


async def test_a_repository_that_ignores_modes_is_asked_with_that(repository: Path):
    git(repository, "config", "core.fileMode", "false")
    (repository / "train.py").chmod(0o755)

    assert (await git_state(str(repository))).dirty is False


async def test_line_ends_are_compared_as_the_repository_says(repository: Path):
    git(repository, "config", "core.autocrlf", "true")
    (repository / "train.py").unlink()
    git(repository, "checkout", "-q", "train.py")
    touched(repository, weights="weights\n")

    assert (repository / "train.py").read_bytes() == b"print(1)\r\n"
    assert (await git_state(str(repository))).dirty is False


async def test_a_folder_below_belongs_to_the_repository_above_it(repository: Path):
    (repository / "deep/er").mkdir(parents=True)

    assert (await git_state(str(repository / "deep/er"))).branch == "main"


async def test_a_detached_head_a_packed_branch_and_a_linked_work_tree_are_known(repository: Path, tmp_path: Path):
    commit = git(repository, "rev-parse", "HEAD")
    git(repository, "branch", "feature/x")
    git(repository, "pack-refs", "--all")
    git(repository, "gc", "-q")
    git(repository, "worktree", "add", "-q", str(tmp_path / "linked"), "feature/x")

    assert await git_state(str(repository)) == GitState(commit=commit, branch="main", dirty=False)
    assert await git_state(str(tmp_path / "linked")) == GitState(commit=commit, branch="feature/x", dirty=False)
    git(repository, "checkout", "-q", "--detach")
    assert await git_state(str(repository)) == GitState(commit=commit, branch="HEAD", dirty=False)


async def test_hashes_of_256_bits_are_known(tmp_path: Path):
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q", "--object-format=sha256")
    committed(folder)
    found = await git_state(str(folder))

    assert (len(found.commit or ""), found.dirty) == (64, False)


@pytest.mark.parametrize("what", ["nothing", "no commit", "a file", "an endless file", "a pipe", "a branch outside"])
async def test_what_is_no_repository_says_nothing(tmp_path: Path, what: str):
    folder = tmp_path / "project"
    folder.mkdir()
    if what == "a file":
        (folder / ".git").write_text("no gitdir\n")
    elif what != "nothing":
        git(folder, "init", "-q")
    head = folder / ".git/HEAD"
    if what == "an endless file":
        head.unlink()
        head.symlink_to("/dev/zero")
    elif what == "a pipe":
        head.unlink()
        os.mkfifo(head)
    elif what == "a branch outside":
        (tmp_path / "secret").write_text("a" * 40)
        head.write_text("ref: refs/../../../secret\n")

    assert await git_state(str(folder)) == GitState()


async def test_without_git_the_commit_is_known_and_the_changes_are_not(repository: Path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    found = await git_state(str(repository))

    assert (found.branch, found.dirty, len(found.commit or "")) == ("main", None, 40)


@pytest.mark.parametrize("what", ["garbage", "a pipe", "away", "a circle", "endless objects elsewhere"])
async def test_an_index_or_objects_that_cannot_be_read_leave_the_changes_unknown(repository: Path, what: str):
    index = repository / ".git/index"
    index.unlink()
    if what == "garbage":
        index.write_bytes(b"DIRC" + b"\xff" * 100)
    elif what == "a pipe":
        os.mkfifo(index)
    elif what == "a circle":
        index.symlink_to("index")
    elif what == "endless objects elsewhere":
        git(repository, "reset", "-q")
        (repository / ".git/objects/info").mkdir(exist_ok=True)
        (repository / ".git/objects/info/alternates").symlink_to("/dev/zero")

    assert (await git_state(str(repository))).dirty is None


@pytest.mark.parametrize("folder", ["", "src", "src/deep", "elsewhere"])
async def test_attributes_that_are_a_pipe_leave_the_changes_unknown_without_waiting(
    repository: Path, folder: str, monkeypatch: pytest.MonkeyPatch
):
    """git would wait for somebody to write there, until its time is over."""
    (repository / "src/deep").mkdir(parents=True)
    (repository / "src/deep/a.py").write_text("1\n")
    (repository / "elsewhere").mkdir()
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "more")
    (repository / "src/deep/a.py").write_text("2\n")
    os.mkfifo(repository / folder / ".gitattributes")
    asked, run = [], git_state_module.run

    async def seen(argv, **more):
        asked.append(argv[-1])
        return await run(argv, **more)

    monkeypatch.setattr(git_state_module, "run", seen)
    found = await git_state(str(repository))

    assert (found.dirty, len(found.commit or "")) == (True if folder == "elsewhere" else None, 40)
    assert len(asked) == (3 if folder == "elsewhere" else 1)


@pytest.mark.parametrize(
    "what", ["commit", "link to a pipe", "index of a pack", "graph", "folders in a circle", "too many"]
)
async def test_objects_that_are_no_files_leave_the_changes_unknown_and_git_is_not_asked(
    repository: Path, what: str, monkeypatch: pytest.MonkeyPatch
):
    objects, commit = repository / ".git/objects", git(repository, "rev-parse", "HEAD")
    pipe = {"index of a pack": objects / "pack/pack-1.idx", "graph": objects / "info/commit-graph"}.get(what)
    if what == "folders in a circle":
        (objects / "pack/more").symlink_to(objects)
    elif what == "too many":
        monkeypatch.setattr(git_state_module, "_MOST_OBJECTS", 5)
    elif what == "link to a pipe":
        os.mkfifo(repository / "pipe")
        (objects / commit[:2] / commit[2:]).unlink()
        (objects / commit[:2] / commit[2:]).symlink_to(repository / "pipe")
    else:
        pipe = pipe or objects / commit[:2] / commit[2:]
        pipe.unlink(missing_ok=True)
        os.mkfifo(pipe)
    monkeypatch.setattr(git_state_module, "run", None)

    found = await git_state(str(repository))
    assert (found.dirty, found.commit) == (None, commit)


def folders_without_end(repository: Path) -> None:
    """Less than a megabyte of index, whose names are made of 400,000 folders with names of 800 MB in all."""
    blob = git(repository, "hash-object", "-w", "train.py")
    names = "".join(f"100644 {blob}\t{number}/{'a/' * 2000}f\n" for number in range(200))
    subprocess.run(["git", "-C", str(repository), "update-index", "--index-info"], input=names.encode(), check=True)


async def test_an_index_of_folders_without_end_is_not_unfolded(repository: Path):
    folders_without_end(repository)
    tracemalloc.start()
    try:
        found = await git_state(str(repository))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert (found.dirty, peak < 40 * 2**20) == (None, True)


@pytest.mark.parametrize("kind", ["a link", "a folder", "a circle"])
async def test_attributes_that_git_passes_over_hide_no_change(repository: Path, kind: str):
    place = repository / ".gitattributes"
    (repository / "train.py").write_text("print(2)\n")
    if kind == "a folder":
        place.mkdir()
    else:
        place.symlink_to("/dev/zero" if kind == "a link" else place)

    assert (await git_state(str(repository))).dirty is True


# --- What it never starts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__.removeprefix("by_").replace("_", " "))
async def test_no_program_is_started_that_a_repository_names(
    attack, repository: Path, user: Path, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    run, proof = evil(repository)
    attack(repository, run, user)
    proof.unlink(missing_ok=True)  # the attack itself asked git
    touched(repository)
    found = await git_state(str(repository))

    assert not proof.exists(), proof.read_text()
    assert found.branch in {"main", None}


async def test_a_change_that_only_a_filter_could_tell_is_not_known(repository: Path, user: Path):
    run, _ = evil(repository)
    (repository / ".gitattributes").write_text("*.bin filter=lfs\n")
    git(repository, "add", ".gitattributes")
    git(repository, "commit", "-q", "-m", "filtered")
    git(repository, "config", "filter.lfs.clean", run)
    (repository / "model.bin").write_text("WEIGHTS\n")

    assert (await git_state(str(repository))).dirty is None
    (repository / "train.py").write_text("print(3)\n")
    assert (await git_state(str(repository))).dirty is True


async def test_nothing_is_written_into_the_repository(repository: Path):
    touched(repository)
    before = {path: path.stat().st_mtime_ns for path in (repository / ".git").rglob("*")}
    await git_state(str(repository))

    assert {path: path.stat().st_mtime_ns for path in (repository / ".git").rglob("*")} == before


# --- Which files it tracks ---------------------------------------------------------------------------------------------


async def test_tracked_files_are_told_by_their_names_however_odd(repository: Path):
    odd = ["-dash", "two\nlines", "spa ce", "ünï"]
    for name in odd:
        (repository / name).write_text("x")
    (repository / "sub").mkdir()
    (repository / "sub/inner").write_text("x")
    git(repository, "add", "--", ".")
    (repository / "untracked").write_text("x")
    (repository / "train.py").unlink()  # tracked all the same

    assert await tracked_files(str(repository)) == tuple(sorted([*odd, "model.bin", "sub/inner", "train.py"]))
    assert await tracked_files(str(repository / "sub")) == ("inner",)


async def test_before_the_first_commit_what_was_added_is_tracked(tmp_path: Path):
    folder = tmp_path / "new"
    folder.mkdir()
    assert await tracked_files(str(folder)) is None
    git(folder, "init", "-q")
    (folder / "a").write_text("x")
    git(folder, "add", "a")
    assert await tracked_files(str(folder)) == ("a",)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_listing_tracked_files_starts_no_program_of_the_repository(repository: Path, user: Path, attack):
    run, proof = evil(repository)
    attack(repository, run, user)
    touched(repository)
    proof.unlink(missing_ok=True)

    await tracked_files(str(repository))

    assert not proof.exists()
