"""Finding and reading the output of jobs: large, odd, growing, rotated, gone, here and over SSH."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from benchmarks import logs
from benchmarks.logs import TRACE
from tests.effort import some
from tests.unit.services.contexts import Here, NothingReachesSlurm, toolbox
from tests.unit.transport.sshserver import Node, running

from slurm_agent_tools.diagnosis import log_signs
from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.errors import SlurmMissing
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.services import log_files, log_paths
from slurm_agent_tools.transport.local import LocalFiles, LocalRunner
from slurm_agent_tools.transport.ssh.remote import SshTransport
from slurm_agent_tools.units import JobId

MIB = 2**20
SAID = "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB"


@cache
def spoken(more: str) -> bytes:
    return "".join(
        f"2026-03-01 12:{n // 60 % 60:02d}:{n % 60:02d} INFO step {n} loss={1 / (n + 1):.4f} lr=1e-4 report{more}\n"
        for n in range(5000)
    ).encode()


def chatter(size: int, *, more: str = "") -> bytes:
    """Lines of a program that is well, at most so many bytes."""
    lines = spoken(more)
    return (lines * (size // len(lines) + 1))[:size].rpartition(b"\n")[0] + b"\n"


def hole(path: str | Path, size: int, then: bytes) -> None:
    """Make a file that large without taking room for it, and write behind that."""
    with Path(path).open("r+b") as file:
        file.truncate(size)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + then)


@pytest.fixture
def box(tmp_path):
    made = toolbox(tmp_path, NothingReachesSlurm())
    place = Here(LocalRunner(made.context.settings), tmp_path / "project")
    made.context = replace(made.context, transport=place)
    return made


def project(box) -> Path:
    return Path(box.context.there.root)


def put(box, data: bytes, name: str = "a.out") -> str:
    path = project(box) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


async def look(box, data: bytes, *, whole: bool = False) -> log_files.OutputFile:
    return await log_files.read(box.context, put(box, data), "stderr", whole=whole)


def category(log: log_files.OutputFile) -> str:
    assert log.text is not None, log.file
    return diagnose(None, (), [log.text]).category


def numbers(log: log_files.OutputFile) -> list[int]:
    return [line.line for line in log.text.lines if line.text == SAID]


# --- large ones -----------------------------------------------------------------------------------------------------


async def test_a_small_log_is_read_as_a_whole_and_no_command_runs(tmp_path):
    box = toolbox(tmp_path, NothingReachesSlurm())
    log = await look(box, b"one\n" + TRACE)
    assert (log.file.read_bytes, log.file.note) == (log.file.size_bytes, None)
    assert numbers(log) == [7]


@pytest.mark.parametrize("before", [300_000, 2 * MIB, 7 * MIB])
async def test_evidence_far_from_both_ends_is_found_with_its_traceback_and_its_number(box, before):
    start = chatter(before)
    log = await look(box, start + TRACE + chatter(8 * MIB))
    assert category(log) == "gpu-out-of-memory"
    assert numbers(log) == [start.count(b"\n") + 6]
    assert "Traceback (most recent call last):" in [line.text for line in log.text.lines]
    assert log.file.read_bytes < MIB / 2
    assert "of it were searched" in log.file.note


@pytest.mark.proves("large-logs-are-searched")
@pytest.mark.parametrize("place", ["at 8 MB from the start", "at 8 MB from the end"])
async def test_evidence_in_the_first_and_the_last_8_mb_is_found_in_a_file_with_a_hole(box, place):
    first, last = chatter(9 * MIB), chatter(12 * MIB)
    if "start" in place:
        first = chatter(8 * MIB - len(TRACE)) + TRACE + chatter(MIB)
    else:
        last = chatter(4 * MIB) + TRACE + chatter(8 * MIB - len(TRACE))
    path = put(box, first)
    hole(path, 2**30, last)
    log = await log_files.read(box.context, path, "stderr")
    assert category(log) == "gpu-out-of-memory"
    assert "mode full searches all of it" in log.file.note
    assert log.file.read_bytes < MIB


@pytest.mark.proves("large-logs-are-searched")
async def test_what_lies_between_the_ends_is_found_by_the_search_of_everything_alone(box):
    data = chatter(12 * MIB) + TRACE + chatter(12 * MIB)
    assert category(await look(box, data)) == "unknown"
    log = await look(box, data, whole=True)
    assert category(log) == "gpu-out-of-memory"
    assert numbers(log) == [data[: data.index(b"RuntimeError")].count(b"\n") + 1]
    assert "all 24" in log.file.note


async def test_where_parts_were_left_out_their_lines_still_count_between_two_breakdowns(box):
    """The first of two failures that lie far from each other is not the cause of the last."""
    first = TRACE.replace(SAID.encode(), b"ModuleNotFoundError: No module named 'torch'")
    log = await look(box, chatter(MIB) + first + chatter(MIB) + TRACE + chatter(10_000))
    assert category(log) == "gpu-out-of-memory"
    assert any("are not shown" in line.text for line in log.text.lines)


async def test_words_that_fill_the_whole_log_are_no_signs_and_hide_none(box):
    noise = chatter(4 * MIB, more=" connection to port 80 timed out, retry; module reloaded")
    log = await look(box, noise + TRACE + noise, whole=True)
    assert category(log) == "gpu-out-of-memory"
    assert "not looked for where the log is full of them" in log.file.note
    assert "connection" in log.file.note


async def test_of_many_matches_the_first_and_the_last_come_back_and_all_are_counted(box):
    spans = [chatter(300_000)] + [b"Killed\n" * 3000 + chatter(300_000)] * 3
    log = await look(box, b"".join(spans))
    assert "9000 lines hold a word of a failure" in log.file.note
    assert log.file.read_bytes < MIB
    numbered = [line.line for line in log.text.lines if line.text == "Killed"]
    assert numbered[0] == spans[0].count(b"\n") + 1


async def test_a_flood_that_follows_hides_no_cause(box):
    """The ranks that died of it said so ten thousand times, and many others before were well in spite of errors."""
    before = b"".join(b"NCCL INFO connection error %d ignored\n" % n for n in range(2000))
    flood = b"".join(b"[rank%d]: NCCL WARN timed out, call %d\n" % (n % 8, n) for n in range(10_000))
    log = await look(box, chatter(400_000) + before + chatter(400_000) + TRACE + flood + chatter(MIB))
    assert SAID in [line.text for line in log.text.lines]
    assert log.file.read_bytes < MIB


@pytest.mark.proves("large-logs-are-searched")
@pytest.mark.parametrize("kind", some(list(logs.FLOODS)))
async def test_a_flood_of_any_kind_hides_neither_what_came_before_it_nor_what_came_after(box, kind):
    path = project(box) / "a.out"
    logs.write_flooded(path, 24 * MIB, kind)
    after = "ModuleNotFoundError: No module named 'torch'"
    with path.open("ab") as file:
        file.write(b"\n" + after.encode() + b"\n" + chatter(MIB))
    log = await log_files.read(box.context, str(path), "stderr", whole=True)
    assert {SAID, after} <= {line.text for line in log.text.lines}
    assert log.file.read_bytes < MIB


async def test_no_grep_means_head_and_tail_and_is_told(box, monkeypatch):
    async def none(*_args, **_more):
        raise SlurmMissing("sh is not installed here", hint="")

    monkeypatch.setattr(LocalRunner, "run", none)
    log = await look(box, chatter(3 * MIB) + TRACE)
    assert category(log) == "gpu-out-of-memory"
    assert "only its first 256K and its last 1M were read" in log.file.note
    assert log.file.read_bytes == 1280 * 1024


async def test_a_search_that_is_not_done_in_time_is_told(box, monkeypatch):
    slow = {key: "sleep 60" if key[0] == "all" else script for key, script in log_signs._SCRIPTS.items()}
    monkeypatch.setattr(log_signs, "_SCRIPTS", slow)
    run = LocalRunner.run

    async def impatient(self, argv, **more):  # with the search that sleeps alone: the others take as long as they need
        return await run(self, argv, **more | ({"timeout": 0.2} if "sleep 60" in argv else {}))

    monkeypatch.setattr(LocalRunner, "run", impatient)
    log = await look(box, chatter(17 * MIB) + TRACE, whole=True)
    assert category(log) == "gpu-out-of-memory"
    assert "could not be searched from end to end" in log.file.note


# --- odd ones -------------------------------------------------------------------------------------------------------

BAR = b"".join(b"\r%3d%%|%s| %d/1000 [00:01<00:10, loss=0.1]" % (n % 100, b"#" * (n % 20), n) for n in range(30_000))
ODD = {
    "one line that is drawn over and over": BAR + b"\r" + TRACE.replace(b"\n", b"\r") + BAR,
    "two marks at each line's end": (chatter(MIB) + TRACE + chatter(MIB)).replace(b"\n", b"\r\n"),
    "binary junk": bytes(range(256)) * 4000 + b"\n" + TRACE + bytes(range(255, -1, -1)) * 4000,
    "NULs": b"\0" * MIB + b"\n" + TRACE + b"\0" * MIB,
    "no UTF-8": chatter(MIB, more=" Größe").decode().encode("latin-1") + TRACE + b"\xff\xfe\xe9" * 100_000,
    "colours": chatter(MIB) + b"\n".join(b"\x1b[31m" + line + b"\x1b[0m" for line in TRACE.split(b"\n")) + chatter(MIB),
    "ranks in turn": chatter(MIB)
    + b"".join(b"[rank%d]: %b\n" % (rank, line) for line in TRACE.split(b"\n")[:-1] for rank in (0, 1))
    + chatter(MIB),
    "UTF-16": ("\ufeff" + (chatter(200_000) + TRACE + chatter(200_000)).decode()).encode("utf-16-le"),
    "UTF-16, large, without a mark": (chatter(2 * MIB) + TRACE).decode().encode("utf-16-be"),
    "a very long line": chatter(MIB) + b"x" * 3 * MIB + b" RuntimeError: CUDA out of memory " + b"y" * MIB,
}


@pytest.mark.proves("odd-logs-are-read")
@pytest.mark.parametrize("kind", ODD)
async def test_an_odd_log_is_read_and_its_evidence_found(box, kind):
    log = await look(box, ODD[kind])
    assert category(log) == "gpu-out-of-memory"
    assert log.file.read_bytes <= 1280 * 1024


async def test_an_empty_log_is_a_log(box):
    log = await look(box, b"")
    assert (log.file.size_bytes, log.file.read_bytes, log.file.note, log.text.lines) == (0, 0, None, ())


# --- in motion ------------------------------------------------------------------------------------------------------


class Growing(LocalFiles):
    """Something is written into the file whenever it has been looked at."""

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        found = await super().read(path, offset=offset, size=size)
        os.truncate(path, os.stat(path).st_size + 14)  # noqa: PTH116
        return found


class Vanishing(LocalFiles):
    """The file goes right after it was looked at."""

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        os.unlink(path)  # noqa: PTH108
        return await super().read(path, offset=offset, size=size)


@pytest.mark.proves("odd-logs-are-read")
@pytest.mark.parametrize("size", [100, 3 * MIB])
async def test_a_file_that_grows_meanwhile_is_told(box, size):
    box.context.transport.files = Growing()
    log = await look(box, chatter(size) + TRACE)
    assert category(log) == "gpu-out-of-memory"
    assert "it is still being written: 14B came while it was read" in log.file.note


async def test_a_file_that_goes_meanwhile_is_told(box):
    box.context.transport.files = Vanishing()
    log = await look(box, chatter(3 * MIB))
    assert log.text is None
    assert log.file.note.startswith("does not exist. It was moved or deleted")


@pytest.mark.proves("odd-logs-are-read")
async def test_older_parts_beside_a_log_are_named_and_not_read(box):
    put(box, b"old\n", "a.out.1")
    put(box, b"packed", "a.out.2.gz")
    put(box, b"another job's", "a.out-put")
    assert "older parts lie beside it and were not read: a.out.1, a.out.2.gz;" in (await look(box, b"x\n")).file.note
    (project(box) / "a.out").unlink()
    log = await log_files.read(box.context, str(project(box) / "a.out"), "stdout")
    assert (log.text, "Older parts lie beside it: a.out.1, a.out.2.gz." in log.file.note) == (None, True)


@pytest.mark.parametrize("what", ["pipe", "folder", "socket"])
async def test_something_else_in_the_place_of_a_log_is_told_at_once(box, what):
    path = project(box) / "a.out"
    made = {"pipe": lambda: os.mkfifo(path), "folder": path.mkdir, "socket": lambda: os.mknod(path, 0o140600)}
    made[what]()
    log = await log_files.read(box.context, str(path), "stdout")
    assert log.text is None
    assert log.file.note == ("is a folder: name a file in it" if what == "folder" else "is not a regular file") + (
        "; nothing was read"
    )


# --- where they are -------------------------------------------------------------------------------------------------


def job(**facts) -> Job:
    return replace(Job(JobId(71), "train", "FAILED", ("sacct",), user="alice", nodes="gpu[03-05].site"), **facts)


@pytest.mark.parametrize(
    ("pattern", "made"),
    [
        ("%A-%j-%J-%x-%u-%%.out", "71-71-71-train-alice-%.out"),
        ("%6j.%3n.%t.%s.%N", "000071.000.0.batch.gpu03"),
        ("%4x-%2u", "train-alice"),
        (r"\%j-\\x", r"%j-\x"),
        ("%99j", "0000000071"),
        ("%A_%a-%b", "71_4294967294-4"),
        ("%z-%", "%z-%"),
    ],
)
async def test_slurm_s_patterns_are_put_in_as_slurm_does(box, pattern, made):
    told = job(stdout=pattern, work_dir=str(project(box) / "runs"))
    assert await log_paths.paths_of(box.context, told) == [(str(project(box) / "runs" / made), "stdout")]


async def test_where_slurm_left_a_sign_as_it_is_the_file_with_that_name_is_taken(box):
    """22.05 knows no %b, and what it tells may hold a job's name with a per cent sign."""
    root = put(box, b"x", "a-%b.out").removesuffix("/a-%b.out")
    put(box, b"x", "50%j.out")
    put(box, b"x", "(null)-71.out")
    assert await log_paths.paths_of(box.context, job(stdout=f"{root}/a-%b.out")) == [(f"{root}/a-%b.out", "stdout")]
    assert await log_paths.paths_of(box.context, job(stdout=f"{root}/50%j.out")) == [(f"{root}/50%j.out", "stdout")]
    piped = job(name="sbatch", stdout=f"{root}/sbatch-71.out")
    assert await log_paths.paths_of(box.context, piped) == [(f"{root}/(null)-71.out", "stdout")]


async def test_a_task_of_an_array_has_its_own_numbers(box):
    task = job(job_id=JobId(71, task=13), raw_id=84, stdout="/p/%A_%3a_%b_%j.out", stderr="/p/x_4294967294.err")
    assert await log_paths.paths_of(box.context, task) == [("/p/71_013_3_84.out", "stdout"), ("/p/x_13.err", "stderr")]


async def test_standard_error_that_goes_where_output_goes_is_read_once(box):
    told = job(stdout="logs/%x.out", stderr="logs/train.out", work_dir="/p")
    assert await log_paths.paths_of(box.context, told) == [("/p/logs/train.out", "stdout")]
    assert await log_paths.paths_of(box.context, job(stdout="/dev/null", stderr="/p/e")) == [("/p/e", "stderr")]


@pytest.mark.proves("logs-are-found")
async def test_without_a_record_names_that_end_in_the_job_s_number_are_taken(box):
    put(box, b"x", "logs/slurm/train-71.out")
    put(box, b"x", "logs/slurm/train-171.out")
    put(box, b"x", "runs/slurm-84.out")
    put(box, b"x", "runs/slurm-84.err")
    put(box, b"x", "runs/slurm-84.txt")
    root = str(project(box))
    assert sorted(await log_paths.paths_of(box.context, job(raw_id=84, work_dir=f"{root}/runs"))) == [
        (f"{root}/logs/slurm/train-71.out", "stdout"), (f"{root}/runs/slurm-84.err", "stderr"),
        (f"{root}/runs/slurm-84.out", "stdout"),
    ]  # fmt: skip
    assert await log_paths.paths_of(box.context, job(job_id=JobId(1))) == []
    gone = job(stdout="/gone/%j.out")  # another job's file of an earlier numbering is no log of this one
    assert await log_paths.paths_of(box.context, gone) == [("/gone/71.out", "stdout")]


# --- over SSH -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [False, True])
async def test_a_large_log_on_the_cluster_is_searched_there_and_little_is_copied(box, tmp_path, whole):
    put(box, chatter(10 * MIB) + TRACE + chatter(8 * MIB - 3000), "far.out")
    folder = tmp_path / "ssh"
    folder.mkdir()
    async with running(Node(folder)) as node:
        place = SshTransport("far", node.settings(remote_root=str(project(box))))
        try:
            context = replace(box.context, transport=place, environment=await place.login_environment())
            log = await log_files.read(context, str(project(box) / "far.out"), "stderr", whole=whole)
        finally:
            await place.close()
    assert category(log) == "gpu-out-of-memory"
    assert log.file.read_bytes < MIB / 2
    assert ("of it were searched" in log.file.note) is whole
