"""A file that somebody else may have written is read when it is a stored file of a bounded size, and else told in words."""

import os
import socket
import threading
from pathlib import Path

import pytest
from tests.watchdog import ends

from slurm_agent_tools.text import safe_open

KEY = "-----BEGIN OPENSSH PRIVATE KEY-----"


@pytest.fixture
def folders(tmp_path):
    """A project, and a secret beside it."""
    (tmp_path / "project" / "sub").mkdir(parents=True)
    (tmp_path / "id_rsa").write_text(KEY)
    return tmp_path


def test_a_file_is_read_whole_up_to_its_limit(tmp_path):
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert safe_open.read(tmp_path / "a", 10) == b"x" * 10
    with pytest.raises(OSError, match="larger than 9 bytes"):
        safe_open.read(tmp_path / "a", 9)


def test_a_file_larger_than_one_piece_is_read_whole(tmp_path):
    data = os.urandom(3 * 2**20 + 1)
    (tmp_path / "a").write_bytes(data)
    assert safe_open.read(tmp_path / "a", 2**22) == data


def test_an_empty_file_is_empty(tmp_path):
    (tmp_path / "a").touch()
    assert safe_open.read(tmp_path / "a", 1) == b""


def test_what_is_not_there_is_said_as_python_says_it(tmp_path):
    (tmp_path / "a").touch()
    with pytest.raises(FileNotFoundError):
        safe_open.read(tmp_path / "b", 1)
    with pytest.raises(NotADirectoryError):
        safe_open.read(tmp_path / "a" / "b", 1)


def unnamed(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


@pytest.mark.parametrize(
    ("make", "kind"), [(os.mkfifo, "a named pipe"), (os.mkdir, "a folder"), (unnamed, "a socket")], ids=str
)
def test_what_is_no_file_is_told_without_waiting_for_anybody(tmp_path, make, kind):
    make(tmp_path / "a")
    with ends(), pytest.raises(safe_open.NotStored, match=f"it is {kind}, not a file"):
        safe_open.read(tmp_path / "a", 10)


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/random"])
def test_a_device_is_not_opened_also_through_a_link(tmp_path, device):
    (tmp_path / "a").symlink_to(device)
    for path in (tmp_path / "a", device):
        with ends(), pytest.raises(safe_open.NotStored, match="a device"):
            safe_open.read(tmp_path / path, 10)


@pytest.mark.parametrize("made_up", ["/proc/self/maps", "/proc/cpuinfo", "/proc/self/environ"])
def test_what_the_kernel_makes_up_while_it_is_read_is_no_stored_file(made_up):
    with pytest.raises(OSError, match=r"not a stored file|larger than"):
        safe_open.read(made_up, 2**20)


def test_a_sparse_file_of_any_size_costs_nothing(tmp_path):
    with (tmp_path / "a").open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(OSError, match="larger than 10 bytes"):
        safe_open.read(tmp_path / "a", 10)


def test_a_file_that_grows_while_it_is_read_ends_at_the_limit(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"x")
    real, taken = os.read, []

    def growing(handle, size):
        with (tmp_path / "a").open("ab") as file:
            file.write(b"y" * 100)
        taken.append(size)
        return real(handle, size)

    monkeypatch.setattr(os, "read", growing)
    with ends(), pytest.raises(OSError, match="larger than 1000 bytes"):
        safe_open.read(tmp_path / "a", 1000)
    assert max(taken) <= 1001


def test_a_link_inside_of_the_folder_is_followed_and_one_out_of_it_is_not(folders):
    project = folders / "project"
    (project / "sub" / "real").write_text("mine")
    (project / "inner").symlink_to("sub/real")
    (project / "outer").symlink_to("../id_rsa")
    assert safe_open.read(project / "inner", 100, within=project) == b"mine"
    with pytest.raises(OSError, match="leads out of") as caught:
        safe_open.read(project / "outer", 100, within=project)
    assert KEY not in str(caught.value)
    assert "id_rsa" not in str(caught.value)
    assert safe_open.read(project / "outer", 100) == KEY.encode()  # where nobody asked for a folder


def test_a_folder_that_is_a_link_out_is_no_way_to_a_file(folders):
    project = folders / "project"
    (project / "away").symlink_to(folders)
    with pytest.raises(OSError, match="leads out of"):
        safe_open.read(project / "away" / "id_rsa", 100, within=project)


def test_the_folder_itself_may_be_reached_through_a_link(folders):
    (folders / "project" / "a").write_text("mine")
    (folders / "short").symlink_to("project")
    assert safe_open.read(folders / "short" / "a", 100, within=folders / "short") == b"mine"


def test_a_link_that_appears_between_the_look_and_the_opening_is_not_followed(folders, monkeypatch):
    project = folders / "project"
    (project / "a").write_text("mine")
    real = os.path.realpath

    def swapped(path):
        found = real(path)
        if str(path).endswith("/a"):
            (project / "a").unlink()
            (project / "a").symlink_to(folders / "id_rsa")
        return found

    monkeypatch.setattr(os.path, "realpath", swapped)
    with pytest.raises(OSError, match=r"."):
        safe_open.read(project / "a", 100, within=project)


def test_many_swaps_never_show_what_lies_outside(folders):
    project, stop = folders / "project", threading.Event()
    (project / "good").write_text("mine")

    def swap():
        while not stop.is_set():
            for target in ("good", "../id_rsa"):
                (project / "new").symlink_to(target)
                (project / "new").rename(project / "a")

    (project / "a").symlink_to("good")
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = set()
        for _ in range(2000):
            try:
                seen.add(safe_open.read(project / "a", 100, within=project))
            except OSError:
                seen.add(None)
    finally:
        stop.set()
        thread.join()
    assert seen <= {b"mine", None}


def test_no_handle_stays_open(folders):
    before = set(Path("/proc/self/fd").iterdir())
    for path in ("id_rsa", "project", "none", "project/sub/none"):
        try:
            safe_open.read(folders / path, 5)
        except OSError:
            continue
    assert set(Path("/proc/self/fd").iterdir()) == before
