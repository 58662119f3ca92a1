"""A path that was resolved is opened as it was: no link that appears meanwhile leads elsewhere, and files are private."""

import os
import stat
import subprocess
import sys
import threading

import pytest

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.ledger_location import submission_lock
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.transport.local import LocalFiles

FILES = LocalFiles()
WAYS = pytest.mark.parametrize("steps", [True, False], ids=["in steps", "by path"])


@pytest.fixture
def folders(tmp_path):
    """`project/logs/a.out`, and a secret of the same name elsewhere."""
    (tmp_path / "project" / "logs").mkdir(parents=True)
    (tmp_path / "project" / "logs" / "a.out").write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.out").write_text("secret")
    return tmp_path


def swap(folders):
    """The folder that was looked at becomes a link to another one."""
    (folders / "project" / "logs").rename(folders / "project" / "old")
    (folders / "project" / "logs").symlink_to(folders / "elsewhere")


@pytest.mark.proves("paths-stay-inside")
async def test_a_folder_that_becomes_a_link_after_the_check_is_not_followed_when_reading(folders):
    path = await FILES.real_path(str(folders / "project/logs/a.out"))
    swap(folders)
    assert await FILES.read(path) is None


@pytest.mark.proves("paths-stay-inside")
async def test_a_file_that_becomes_a_link_after_the_check_is_not_followed(folders):
    path = folders / "project/logs/a.out"
    path.unlink()
    path.symlink_to(folders / "elsewhere/a.out")
    with pytest.raises(StorageError):
        await FILES.read(str(path))


@pytest.mark.proves("paths-stay-inside")
async def test_a_folder_that_becomes_a_link_after_the_check_is_not_written_through(folders):
    path = await FILES.real_path(str(folders / "project/logs/new.json"))
    swap(folders)
    with pytest.raises(StorageError):
        await FILES.write_new(path, b"x")
    with pytest.raises(StorageError):
        await FILES.make_folder(str(folders / "project/logs/deeper"))
    assert [path.name for path in (folders / "elsewhere").iterdir()] == ["a.out"]


@pytest.mark.proves("paths-stay-inside")
async def test_while_a_link_is_swapped_all_the_time_nothing_of_elsewhere_is_read(folders):
    path, link, stop = str(folders / "project/logs/a.out"), folders / "project/logs", threading.Event()

    def swapping():
        while not stop.is_set():
            link.rename(folders / "project/old")
            link.symlink_to(folders / "elsewhere")
            link.unlink()
            (folders / "project/old").rename(link)

    thread = threading.Thread(target=swapping)
    thread.start()
    try:
        found = {await FILES.read(path) for _ in range(300)}
    finally:
        stop.set()
        thread.join()
    assert found <= {b"mine", None}


@pytest.mark.parametrize("what", ["pipe", "device", "folder"])
async def test_what_is_no_regular_file_is_not_read(tmp_path, what):
    path = tmp_path / "x"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    assert await FILES.read("/dev/zero" if what == "device" else str(path)) is None


@WAYS
@pytest.mark.proves("files-are-private")
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_files_and_folders_are_private_under_every_umask(tmp_path, umask, steps):
    """In a process of its own: the umask is one for all threads."""
    code = (
        "import anyio, os, sys; from pathlib import Path;"
        "from slurm_agent_tools.text import safe_open; from slurm_agent_tools.transport import local;"
        "from slurm_agent_tools.store.ledger import Store; from slurm_agent_tools.store import ledger_location;"
        f"os.umask({umask}); safe_open.IN_STEPS = {steps};"
        "files, root = local.LocalFiles(), Path(sys.argv[1]);"
        "anyio.run(files.write_new, str(root / 'results/deep/a.json'), b'{}');"
        "anyio.run(files.make_folder, str(root / 'logs/slurm'));"
        "store = Store(root / 'state/deep');"
        "store.log_decision({'at': 'now'});"
        "ledger_location.register(root / 'state/deep', root / 'other'); (root / 'place').mkdir(0o700);"
        "ledger_location.register(root / 'place', root / 'state/deep'); lock = ledger_location.submission_lock(root / 'place');"
        "lock.__enter__(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    made = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert {"results/deep/a.json", "logs/slurm", "state/deep/ledger.sqlite3", "state/deep/decisions.jsonl"} <= set(made)
    assert {"place/folders.sqlite3", "place/submit-lock.sqlite3"} <= set(made)
    assert {name: oct(mode) for name, mode in made.items() if mode & 0o077} == {}


@WAYS
async def test_a_file_is_written_and_read_either_way(tmp_path, steps, monkeypatch):
    monkeypatch.setattr(safe_open, "IN_STEPS", steps)
    path = str(tmp_path / "a" / "b.txt")
    assert await FILES.write_new(path, b"one") is True
    assert await FILES.write_new(path, b"two") is False
    assert await FILES.read(path) == b"one"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.txt"]


def test_the_lock_and_the_ledger_work_in_a_folder_that_is_made_for_them(tmp_path):
    Store(tmp_path / "a" / "b").close()
    with submission_lock(tmp_path / "a" / "b") as held:
        assert held
