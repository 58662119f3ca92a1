import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from tests.watchdog import SECONDS

from slurm_agent_tools.errors import SlurmMissing, StorageError
from slurm_agent_tools.settings import Settings, SlurmSettings
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.transport.local import LocalFiles, LocalRunner, SystemClock

FILES = LocalFiles()
SHOW = """#!/usr/bin/python3
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "stdin": sys.stdin.read(), "cwd": os.getcwd()}))
"""


@pytest.fixture
def commands(tmp_path):
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "squeue").write_text(SHOW)
    (folder / "squeue").chmod(0o755)
    return folder


def runner(**slurm: object) -> LocalRunner:
    return LocalRunner(Settings(slurm=SlurmSettings(**slurm)))


# --- commands ----------------------------------------------------------------------------------------------------


@pytest.mark.proves("environment-is-listed")
async def test_a_command_gets_a_listed_environment(commands, monkeypatch):
    for name in (
        "SQUEUE_FORMAT",
        "SBATCH_PARTITION",
        "SACCT_FORMAT",
        "SLURM_CLUSTERS",
        "CUDA_VISIBLE_DEVICES",
        "SECRET",
    ):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("SLURM_TIME_FORMAT", "relative")
    monkeypatch.setenv("SLURM_CONF", "/elsewhere")
    done = await runner(bin_dir=commands, conf=Path("/etc/mine.conf")).run(["squeue"], env={"WANTED": "x"})
    found = json.loads(done.stdout)["env"]
    allowed = {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "TZ",
        "SLURM_CONF",
        "LC_ALL",
        "SLURM_TIME_FORMAT",
        "SLURM_BITSTR_LEN",
        "SCONTROL_ALL",
        "SINFO_ALL",
        "SQUEUE_ALL",
        "WANTED",
    }
    assert set(found) <= allowed | {"LC_CTYPE"}  # Python sets LC_CTYPE itself
    assert (found["WANTED"], found["LC_ALL"], found["SLURM_TIME_FORMAT"]) == ("x", "C.UTF-8", "%s")
    assert found["SLURM_CONF"] == "/etc/mine.conf"


async def test_arguments_input_and_folder_arrive_as_they_are(commands, tmp_path):
    words = ["squeue", "a b", "$(id)", "; rm -rf x", "*", "--x='y'"]
    done = await runner(bin_dir=commands).run(words, stdin=b"script\n", cwd=str(tmp_path))
    found = json.loads(done.stdout)
    assert (found["argv"], found["stdin"], found["cwd"]) == (words[1:], "script\n", str(tmp_path))
    assert (done.argv, done.exit_code, done.timed_out) == (tuple(words), 0, False)


async def test_a_command_is_found_on_the_path_when_no_folder_is_named(commands, monkeypatch):
    monkeypatch.setenv("PATH", f"{commands}:/usr/bin:/bin")
    assert (await runner().run(["squeue"])).exit_code == 0


@pytest.mark.parametrize("how", ["absent", "not executable", "no interpreter", "no folder"])
async def test_a_command_that_cannot_be_run_is_missing(commands, how):
    (commands / "sacct").write_text("#!/no/such/interpreter\n" if how == "no interpreter" else "x")
    (commands / "sacct").chmod(0o755 if how in {"no interpreter", "no folder"} else 0o644)
    name = "sinfo" if how == "absent" else "squeue" if how == "no folder" else "sacct"
    with pytest.raises(SlurmMissing, match=name) as caught:
        await runner(bin_dir=commands).run([name], cwd="/no/such/folder" if how == "no folder" else None)
    assert caught.value.hint


async def test_the_named_folder_is_the_only_one(commands):
    with pytest.raises(SlurmMissing):
        await runner(bin_dir=commands).run(["sinfo"])


async def test_a_time_limit_is_told_in_the_result(commands):
    (commands / "sinfo").write_text("#!/bin/sh\nsleep 600\n")
    (commands / "sinfo").chmod(0o755)
    done = await runner(bin_dir=commands).run(["sinfo"], timeout=0.2)
    assert done.timed_out


# --- files -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["without a name first", "as a draft"])
def way(request, monkeypatch):
    """Both ways to write a whole file: not every file system has files without a name."""
    if request.param == "as a draft":
        monkeypatch.setattr(safe_open, "_NAMELESS", 0)


@pytest.mark.usefixtures("way")
async def test_write_new_makes_a_private_file_and_its_folders(tmp_path):
    path = tmp_path / "a" / "b" / "new.txt"
    assert await FILES.write_new(str(path), b"\x00data") is True
    assert path.read_bytes() == b"\x00data"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(path.parent) == ["new.txt"]  # noqa: PTH208 - no draft is left


@pytest.mark.usefixtures("way")
async def test_write_new_takes_a_mode(tmp_path):
    assert await FILES.write_new(str(tmp_path / "x"), b"", mode=0o640)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("what", ["file", "link", "dangling", "folder"])
async def test_write_new_never_takes_a_name_that_is_taken(tmp_path, what):
    other, path = tmp_path / "other", tmp_path / "path"
    if what == "file":
        path.write_text("old")
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to(other)
        if what == "link":
            other.write_text("old")
    before = sorted(tmp_path.iterdir())
    assert await FILES.write_new(str(path), b"new") is False
    assert sorted(tmp_path.iterdir()) == before
    assert not other.exists() or other.read_text() == "old"


@pytest.mark.usefixtures("way")
@pytest.mark.proves("results-never-overwrite")
async def test_of_twenty_writers_of_one_name_one_wins_whole(tmp_path):
    won = []

    async def write(number):
        if await FILES.write_new(str(tmp_path / "x"), bytes([number]) * 100_000):
            won.append(number)

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(write, number)
    [winner] = won
    assert (tmp_path / "x").read_bytes() == bytes([winner]) * 100_000
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.usefixtures("way")
async def test_a_file_is_never_seen_half_written(tmp_path, monkeypatch):
    seen = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (seen.append((tmp_path / "x").exists()), real(handle)))
    await FILES.write_new(str(tmp_path / "x"), b"whole")
    assert seen == [False, True]  # the file before it has its name, the folder after it


@pytest.mark.proves("killed-anywhere-loses-nothing")
def test_a_process_that_is_killed_while_it_writes_leaves_nothing(tmp_path):
    code = (
        "import anyio, os, signal, sys; from slurm_agent_tools.transport.local import LocalFiles\n"
        "os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)\n"
        "anyio.run(LocalFiles().write_new, sys.argv[1], b'half')"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "x")], check=False)
    assert done.returncode == -signal.SIGKILL
    with safe_open.folder(str(tmp_path), make=False) as where:
        handle = safe_open.create_nameless(where, 0o600)
    left = [path.name for path in tmp_path.iterdir()]
    if handle is None:  # this file system knows no files without a name
        assert [name[0] for name in left] == ["."]
    else:
        os.close(handle)
        assert left == []


@pytest.mark.usefixtures("way")
async def test_a_write_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left"):
        await FILES.write_new(str(tmp_path / "x"), b"data")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("offset", "size", "found"),
    [(0, None, b"0123456789"), (4, None, b"456789"), (4, 3, b"456"), (0, 0, b""), (8, 50, b"89"), (50, None, b"")],
)
async def test_a_window_of_a_file_is_read(tmp_path, offset, size, found):
    (tmp_path / "x").write_bytes(b"0123456789")
    assert await FILES.read(str(tmp_path / "x"), offset=offset, size=size) == found


async def test_what_is_not_there_is_none(tmp_path):
    path = str(tmp_path / "no" / "x")
    assert (await FILES.read(path), await FILES.stat(path), await FILES.list(path)) == (None, None, None)


@pytest.mark.parametrize("path", ["\0", "x" * 5000])
async def test_a_path_that_cannot_be_is_an_error_with_a_hint(path):
    with pytest.raises(StorageError) as caught:
        await FILES.read(path)
    assert caught.value.hint


async def test_below_a_file_there_is_nothing(tmp_path):
    (tmp_path / "x").write_text("")
    path = str(tmp_path / "x" / "y")
    assert (await FILES.read(path), await FILES.stat(path), await FILES.list(path)) == (None, None, None)


async def test_kinds_of_files_are_told_apart(tmp_path):
    (tmp_path / "file").write_bytes(b"123")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    found = {name: await FILES.stat(str(tmp_path / name)) for name in ("file", "link", "pipe", "dangling", "")}
    kinds = {name: stat.kind if stat else None for name, stat in found.items()}
    assert kinds == {"file": "file", "link": "file", "pipe": "other", "dangling": None, "": "dir"}
    assert found["file"] is not None
    assert found["file"].size == 3
    assert abs((found["file"].modified - SystemClock().now()).total_seconds()) < 60


async def test_names_are_listed_in_order(tmp_path):
    for name in ("b", "a", ".c"):
        (tmp_path / name).mkdir()
    assert await FILES.list(str(tmp_path)) == [".c", "a", "b"]
    (tmp_path / "file").write_text("")
    assert await FILES.list(str(tmp_path / "file")) is None


async def test_folders_are_made_once_or_again(tmp_path):
    for _ in range(2):
        await FILES.make_folder(str(tmp_path / "a" / "b"))
    assert (tmp_path / "a" / "b").is_dir()


async def test_a_link_that_becomes_a_file_while_it_is_looked_at_is_looked_at_again(tmp_path, monkeypatch):
    link, real = tmp_path / "job.sh", os.readlink
    link.symlink_to("other.sh")

    def exchanged(path, *more):
        if link.is_symlink():
            link.unlink()
            link.touch()
        return real(path, *more)

    monkeypatch.setattr(os, "readlink", exchanged)
    assert await FILES.real_path(str(link)) == str(link)


async def test_a_real_path_goes_through_links_also_to_what_is_not_there(tmp_path):
    (tmp_path / "project").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "project" / "door").symlink_to(tmp_path / "outside")
    assert await FILES.real_path(f"{tmp_path}/project/door/new/../x") == str((tmp_path / "outside" / "x").resolve())


async def test_a_pipe_is_read_as_nothing_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with anyio.fail_after(SECONDS):
        assert await FILES.read(str(tmp_path / "pipe")) is None


# --- adding at the end -------------------------------------------------------------------------------------------


async def test_append_adds_at_the_end_of_a_file_that_is_there(tmp_path):
    path = tmp_path / "x"
    assert await FILES.append(str(path), b"a") is False
    path.write_bytes(b"a\n")
    assert await FILES.append(str(path), b"b\n") is True
    assert path.read_bytes() == b"a\nb\n"


async def test_append_writes_into_no_pipe_and_through_no_link(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "real").write_bytes(b"a")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(StorageError):
        await FILES.append(str(tmp_path / "link"), b"b")
    assert await FILES.append(str(tmp_path / "pipe"), b"b") is False
    assert (tmp_path / "real").read_bytes() == b"a"


async def test_lines_that_many_append_at_once_do_not_mix(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"")
    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(FILES.append, str(path), b"%02d" % number * 1000 + b"\n")
    assert sorted(path.read_bytes().splitlines()) == [b"%02d" % number * 1000 for number in range(20)]
