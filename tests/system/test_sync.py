"""A project between a laptop and a cluster behind a real sshd: pushed, run, pulled back, and whatever breaks off."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.system.faces import Laptop, Place, cut_connections, laptop

from slurm_agent_tools.devcluster.login_node import LoginNode

SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --mem=100M\n#SBATCH --time=5\n#SBATCH --output=logs/%j.out\nbash steps.sh\n"
GUIDE = Path(__file__).parents[2] / "docs/guides/laptop.md"
HOSTILE = [
    "-rf",
    "two\nlines",
    "sp ace",
    "ünï",
    "$(touch x)",
    "deep/--/\n",
    "a'b\"c\\",
    "no\udcfftext",
    "~",
    "-e.sh -x",
    "*",
]


@pytest.fixture
def mine(fresh: Place, login: LoginNode) -> Laptop:
    return repository(fresh, login)


def repository(fresh: Place, login: LoginNode) -> Laptop:
    """A laptop with a repository of git, whose cluster has an empty folder for it."""
    made = laptop(fresh, login)
    programs = made.project.parent / "programs"  # all that is on PATH there
    for name in ("git", "rsync"):
        (programs / name).write_text(f'#!/bin/sh\nexec {shutil.which(name)} "$@"\n')
        (programs / name).chmod(0o755)
    git(made, "init", "-q")
    (fresh.project / "logs/slurm").rmdir()
    (fresh.project / "logs").rmdir()
    return made


def git(place: Place, *words: str) -> None:
    place.own()
    subprocess.run(
        place.as_user([str(shutil.which("git")), "-C", str(place.project), *words]), check=True, capture_output=True
    )


def written(place: Laptop, files: dict[str, bytes]) -> None:
    """Files that git tracks."""
    for name, data in files.items():
        path = place.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    place.own()
    git(place, "add", "-f", "--", *sorted({name.split("/")[0] for name in files}))


def sync(place: Laptop, *words: str) -> tuple[int, dict[str, Any]]:
    done = place.run(["slurm-agent-tools", "sync", words[0], "--json", *words[1:]])
    assert done.stdout, done.stderr[-2000:]
    reply = json.loads(done.stdout)
    assert "error" not in reply, reply
    return done.returncode, reply


def there(place: Laptop) -> dict[str, bytes]:
    root = place.there
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.proves("sync-moves-what-differs", "sync-stays-in-its-folders")
def test_two_thousand_files_go_there_and_then_only_the_one_that_changed(mine: Laptop) -> None:
    files = {f"src/p{number % 40}/f{number}.txt": f"file {number}\n".encode() for number in range(2000)}
    files |= {f"odd/{name}": os.fsencode(name) for name in HOSTILE}
    written(mine, files)
    code, first = sync(mine, "push")
    assert (code, first["status"], first["sent"]) == (0, "done", 2000 + len(HOSTILE)), first
    assert there(mine) == files
    (mine.project / "src/p7/f7.txt").write_bytes(b"changed\n")
    code, again = sync(mine, "push")
    assert (code, again["sent"], again["unchanged"], again["bytes"]) == (0, 1, 1999 + len(HOSTILE), 8), again
    assert there(mine) == files | {"src/p7/f7.txt": b"changed\n"}
    assert sync(mine, "status")[1].get("differs", []) == []


@pytest.mark.proves("sync-stays-in-its-folders")
def test_names_that_are_made_to_be_misread_come_back_as_they_are_and_nothing_lands_outside(mine: Laptop) -> None:
    written(mine, {"a": b"a"})
    made = {f"results/{name}": os.fsencode(name) for name in HOSTILE}
    for name, data in made.items():
        path = mine.there / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    outside = mine.there.parent / "outside"
    outside.mkdir()
    (outside / "theirs").write_bytes(b"not of the project")
    (mine.there / "results/link").symlink_to(outside)
    (mine.there / "results/file").symlink_to(outside / "theirs")
    mine.own()
    before = set(mine.project.parent.iterdir())
    code, reply = sync(mine, "pull")
    assert (code, reply["status"], reply["received"]) == (0, "done", len(HOSTILE)), reply
    found = {str(path.relative_to(mine.project)) for path in (mine.project / "results").rglob("*") if not path.is_dir()}
    assert found == set(made)
    assert all((mine.project / name).read_bytes() == data for name, data in made.items())
    assert {path.name for path in set(mine.project.parent.iterdir()) - before} <= {".state", ".local"}  # the ledger's


@pytest.mark.proves("sync-stays-in-its-folders")
def test_links_that_leave_either_folder_are_refused_by_name(mine: Laptop, tmp_path: Path) -> None:
    written(mine, {"a": b"a", "deep/b": b"b"})
    leads = {"absolute": "/etc/passwd", "out": "../../secret", "over": "deep/../../../secret"}
    for name, target in leads.items():
        (mine.project / name).symlink_to(target)
    (mine.project / "stays").symlink_to("deep/b")
    git(mine, "add", *leads, "stays")
    code, reply = sync(mine, "push")
    assert (code, reply["status"], [kept["path"] for kept in reply["kept"]]) == (3, "blocked", sorted(leads))
    assert there(mine) == {}
    git(mine, "rm", "-q", "--cached", *leads)
    outside = mine.there.parent / "outside"
    outside.mkdir()
    (mine.there / "deep").symlink_to(outside)
    mine.own()
    code, reply = sync(mine, "push")
    assert (code, reply["status"], [kept["path"] for kept in reply["kept"]]) == (3, "blocked", ["deep/b"])
    assert (list(outside.iterdir()), there(mine)) == ([], {})
    (mine.there / "deep").unlink()
    assert sync(mine, "push")[1]["status"] == "done"
    assert (str((mine.there / "stays").readlink()), (mine.there / "stays").read_bytes()) == ("deep/b", b"b")


def part_of_a_name(name: str) -> bool:
    """Whether it is what a transfer that was cut could not take away any more: hidden, never one of the project's."""
    return any(part.startswith(".") for part in Path(name).parts)


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m,mode=0777", "tmpfs", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a disk of its own, which only root can mount")
@pytest.mark.proves("sync-goes-on-where-it-broke")
@pytest.mark.parametrize("count", [10, 60])  # over SFTP, and by rsync
def test_a_full_disk_there_leaves_whole_files_alone_and_the_next_run_finishes(mine: Laptop, count: int) -> None:
    files = {f"f{number}": os.urandom(3_000_000 // count) for number in range(count)}
    written(mine, files)
    with small_disk(mine.there):
        filler = mine.there / "filler"
        filler.write_bytes(b"x" * 2_500_000)
        code, reply = sync(mine, "push")
        assert (code, reply["status"]) == (4, "partial"), reply
        assert reply["reason"]
        left = there(mine)
        assert all(left[name] == files[name] for name in left if name in files)
        assert any(name not in left for name in files)
        filler.unlink()
        code, reply = sync(mine, "push")
        assert (code, reply["status"]) == (0, "done"), reply
        assert there(mine) == files


@pytest.mark.proves("sync-goes-on-where-it-broke")
@pytest.mark.parametrize("count", [4, 40])  # over SFTP, and by rsync
def test_a_connection_that_is_cut_leaves_whole_files_alone_and_the_next_run_finishes(mine: Laptop, count: int) -> None:
    files = {f"f{number}": os.urandom(160_000_000 // count) for number in range(count)}
    if count == 4:  # below what rsync is begun for
        files = {f"f{number}": os.urandom(8_000_000) for number in range(18)}
    written(mine, files)
    cut = threading.Event()

    def cutting() -> None:
        while not cut.is_set():
            if any(mine.there.iterdir()):
                cut_connections(mine.cluster)
                cut.set()
            time.sleep(0.005)

    thread = threading.Thread(target=cutting)
    thread.start()
    try:
        code, reply = sync(mine, "push")
    finally:
        cut.set()
        thread.join()
    assert (code, reply["status"]) == (4, "partial"), reply
    left = there(mine)
    assert all(left[name] == files[name] for name in left if name in files)
    assert all(part_of_a_name(name) for name in left.keys() - files.keys()), left.keys()
    code, reply = sync(mine, "push")
    assert (code, reply["status"]) == (0, "done"), reply
    assert {name: data for name, data in there(mine).items() if name in files} == files


@pytest.mark.proves("files-differ-is-refused", "sync-moves-what-differs")
def test_a_job_is_refused_until_its_files_are_pushed_and_its_log_comes_back(mine: Laptop) -> None:
    written(mine, {"job.sh": SCRIPT.encode(), "steps.sh": b"echo one; sleep 3; echo two\n", "logs/.keep": b""})
    (mine.there / "steps.sh").write_bytes(b"echo other\n")
    mine.own()
    mine.cli("get_status")
    code, reply = mine.cli("submit_job", "--script=job.sh")
    assert (code, reply["blocker"]) == (3, "policy"), reply
    assert "steps.sh is not the same here and on the cluster" in reply["reason"]
    assert "Push first" in reply["reason"]
    assert sync(mine, "push")[0] == 0
    code, reply = mine.cli("submit_job", "--script=job.sh")
    assert (code, reply["status"]) == (0, "submitted"), reply
    code, pulled = sync(mine, "pull", "--follow", "--every=0.5", f"--job={reply['job_id']}", "logs/*.out")
    assert (code, pulled["status"]) == (0, "done"), pulled
    assert (mine.project / f"logs/{reply['job_id']}.out").read_text() == "one\ntwo\n"


def commands() -> list[list[str]]:
    """Every command of the guide's blocks, without its comment."""
    blocks = GUIDE.read_text(encoding="utf-8").split("```")[1::2]
    lines = [line for block in blocks for line in block.splitlines()] + re.findall(
        r"`(slurm-agent-tools [^`]+)`", "".join(GUIDE.read_text(encoding="utf-8").split("```")[::2])
    )
    return [shlex.split(line, comments=True) for line in lines if line.startswith("slurm-agent-tools ")]


def test_every_command_of_the_guide_runs(mine: Laptop) -> None:
    written(mine, {"job.sh": SCRIPT.encode(), "steps.sh": b"echo one\n", "logs/.keep": b"", "results/a.json": b"{}"})
    (mine.there / "old.py").write_bytes(b"")
    mine.own()
    assert sync(mine, "push")[0] == 0
    mine.cli("get_status")
    job_id = mine.cli("submit_job", "--script=job.sh")[1]["job_id"]
    found = commands()
    assert len(found) == 7
    for words in found:
        done = mine.run([job_id if word == "12345" else word for word in words])
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    assert (mine.project / f"logs/{job_id}.out").read_text() == "one\n"
    assert not (mine.there / "old.py").exists()
