"""Where programs are looked for: not in the project, whose files anybody may have written who writes its scripts."""

from __future__ import annotations

import os
import platform
import pwd
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from slurm_agent_tools.errors import SlurmMissing
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.local import LocalRunner
from slurm_agent_tools.transport.process import machine, program, search_path

pytestmark = pytest.mark.proves("repositories-start-nothing")


def test_programs_are_looked_for_in_absolute_folders_outside_the_project_alone(tmp_path: Path):
    project, link = tmp_path / "project", tmp_path / "link"
    (project / "bin").mkdir(parents=True)
    link.symlink_to(project / "bin")
    beside = f"{project}-other/bin"
    said = [
        "",
        ".",
        "bin",
        "../bin",
        str(project),
        f"{project}/bin",
        f"{tmp_path}/x/../project/bin",
        str(link),
        beside,
        "/usr/bin",
    ]

    assert search_path(os.pathsep.join(said), project) == f"{beside}{os.pathsep}/usr/bin"


@pytest.mark.parametrize("kind", ["a repository", "a work tree", "a link", "two repositories"])
def test_programs_are_not_looked_for_in_the_repository_around_the_project(tmp_path: Path, kind: str):
    repository = tmp_path / "repository"
    project = repository / "experiments/one"
    (repository / "bin").mkdir(parents=True)
    project.mkdir(parents=True)
    if kind in {"a repository", "two repositories"}:
        (repository / ".git").mkdir()
    elif kind == "a work tree":
        (repository / ".git").write_text("gitdir: /nowhere\n")
    else:
        (repository / ".git").symlink_to("nothing")
    if kind == "two repositories":
        (repository / "experiments/.git").mkdir()
    (tmp_path / "link").symlink_to(repository / "bin")
    inside = [str(repository), f"{repository}/bin", f"{repository}/experiments/bin", str(tmp_path / "link")]

    assert search_path(os.pathsep.join([*inside, f"{repository}-other/bin"]), project) == f"{repository}-other/bin"


def test_a_folder_above_that_is_no_repository_is_searched(tmp_path: Path):
    assert search_path(f"{tmp_path}/bin", tmp_path / "a/b") == f"{tmp_path}/bin"


@pytest.mark.parametrize("holds", ["home", "system"])
def test_a_repository_that_holds_all_of_a_persons_programs_is_not_the_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, holds: str
):
    """A home folder in git, for its settings; a machine whose root is."""
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("HOME", "/nowhere")
    if holds == "home":
        account = (*pwd.getpwuid(os.getuid())[:5], f"{tmp_path}/ada", "/bin/sh")
        monkeypatch.setattr(pwd, "getpwuid", lambda _: pwd.struct_passwd(account))
    else:
        monkeypatch.setattr(process, "_SYSTEM_PATH", f"{tmp_path}/usr/bin")

    assert search_path(f"{tmp_path}/ada/.local/bin", tmp_path / "ada/project") == f"{tmp_path}/ada/.local/bin"


def test_a_home_that_whoever_set_path_made_up_opens_no_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))

    assert search_path(f"{tmp_path}/bin:/usr/bin", tmp_path / "project") == "/usr/bin"


@pytest.mark.parametrize("path", ["", ".", "{project}", ":"])
def test_where_no_folder_is_left_the_systems_are_searched_and_never_the_working_one(tmp_path: Path, path: str):
    assert search_path(path.format(project=tmp_path), tmp_path) == "/usr/bin:/bin"


def test_links_in_a_circle_are_no_way_into_the_project(tmp_path: Path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")

    assert search_path(f"{tmp_path}/a:/usr/bin", tmp_path / "project").endswith("/usr/bin")


def test_a_program_is_not_taken_from_where_we_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copy("/bin/true", tmp_path / "only-here")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".:{tmp_path}:/usr/bin")

    assert program("only-here") is None
    assert (program("env") or "").endswith("/env")


async def test_a_command_of_slurm_in_the_project_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    project = tmp_path / "project"
    project.mkdir()
    proof = tmp_path / "was-run.txt"
    for name in ("sinfo", "date"):
        (project / name).write_text(f"#!/bin/sh\ntouch {proof}\n")
        (project / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{project}:/usr/bin:/bin")
    runner = LocalRunner(Settings(project_root=project))

    assert (await runner.run(["date", "+%Y"])).stdout.strip().isdigit()
    found = await runner.run(["sh", "-c", "date +%Y"])
    assert found.stdout.strip().isdigit()
    monkeypatch.setenv("PATH", f"{project}:/nowhere")
    with pytest.raises(SlurmMissing):
        await LocalRunner(Settings(project_root=project)).run(["sinfo"])
    assert not proof.exists()


async def test_a_command_of_slurm_in_the_repository_around_the_project_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project, proof = tmp_path / "sub", tmp_path / "was-run.txt"
    for folder in (project, tmp_path / ".git", tmp_path / "bin"):
        folder.mkdir()
    (tmp_path / "bin/sinfo").write_text(f"#!/bin/sh\ntouch {proof}\n")
    (tmp_path / "bin/sinfo").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/nowhere")
    with pytest.raises(SlurmMissing):
        await LocalRunner(Settings(project_root=project)).run(["sinfo"])
    assert (program("sinfo", project), proof.exists()) == (None, False)


def test_the_machine_is_named_as_python_does_and_no_program_is_run_for_it(tmp_path: Path, monkeypatch):
    wanted, proof = platform.platform(), tmp_path / "was-run.txt"
    (tmp_path / "uname").write_text(f"#!/bin/sh\ntouch {proof}\n")
    (tmp_path / "uname").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{os.pathsep}{tmp_path}{os.pathsep}{os.environ['PATH']}")

    assert machine() == wanted
    assert not proof.exists()


ASKS = """
import anyio, resource, sys
from slurm_agent_tools.transport.git_state import git_state
print(anyio.run(git_state, sys.argv[1]).dirty, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


def test_an_object_that_unfolds_without_end_ends_git_and_not_this_machine(tmp_path: Path):
    """Half a megabyte of zeros that are a gigabyte, in the place of the commit."""
    who = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", "-C", str(tmp_path)]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run([*who, *words], check=True, capture_output=True)
    commit = subprocess.run([*who, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    (tmp_path / ".git/index").touch()
    place = tmp_path / ".git/objects" / commit[:2] / commit[2:]
    place.chmod(0o644)
    place.write_bytes(zlib.compress(f"commit {2**30}\0".encode() + bytes(2**30), 1))
    done = subprocess.run([sys.executable, "-c", ASKS, str(tmp_path)], capture_output=True, text=True)

    dirty, megabytes = done.stdout.split()
    assert dirty == "None", done.stderr
    assert int(megabytes) < 500


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere Python looks for libraries without programs")
def test_loading_the_ssh_library_starts_no_program_that_path_names(tmp_path: Path):
    proof = tmp_path / "was-run.txt"
    for name in ("gcc", "cc", "ld", "objdump"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {proof}\n')
        (tmp_path / name).chmod(0o755)
    text = (
        "import importlib, pkgutil, sys\n"
        "started = []\n"
        "sys.addaudithook(lambda event, words: started.append(words) if event == 'subprocess.Popen' else None)\n"
        "import slurm_agent_tools.transport.ssh as room\n"
        "for one in pkgutil.iter_modules(room.__path__):\n"
        "    importlib.import_module(f'{room.__name__}.{one.name}')\n"
        "assert 'asyncssh' in sys.modules\n"
        "print(started)\n"
        "import ctypes.util\n"
        "print(ctypes.util.find_library('no-such-library'), len(started) > 0)  # what others look for is as it was\n"
    )
    argv = [sys.executable, "-c", text]
    done = subprocess.run(argv, capture_output=True, text=True, env={"PATH": f"{tmp_path}:/nowhere"}, check=False)

    assert done.stdout == "[]\nNone True\n", done.stderr
    assert "oqs" not in proof.read_text()
