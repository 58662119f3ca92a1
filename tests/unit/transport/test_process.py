import os
import sys
from pathlib import Path

import anyio
import pytest
from tests.watchdog import eventually, until

from slurm_agent_tools.transport import process

ENV = {"PATH": "/usr/bin:/bin"}
STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
child = os.fork()
if child:
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(f"{os.getpid()} {child}")
    os.rename(sys.argv[1] + ".new", sys.argv[1])
time.sleep(600)
"""


def alive(pid: int) -> bool:
    """False also for a zombie, which only waits for init."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def gone(pids: list[int]) -> bool:
    until(lambda: not any(alive(pid) for pid in pids), pids)
    return True


async def test_a_process_that_ends_tells_its_code_and_both_outputs():
    ended = await process.run(["sh", "-c", "echo out; echo err >&2; exit 7"], env=ENV)
    assert (ended.exit_code, ended.stdout, ended.stderr, ended.truncated) == (7, b"out\n", b"err\n", False)
    assert ended.seconds > 0


async def test_a_process_that_dies_by_a_signal_tells_it():
    assert (await process.run(["sh", "-c", "kill -SEGV $$"], env=ENV)).exit_code == -11


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
async def test_input_arrives_whole(size):
    data = os.urandom(size)
    assert (await process.run(["cat"], stdin=data, env=ENV)).stdout == data


async def test_a_process_that_does_not_read_its_input_is_no_error():
    ended = await process.run(["true"], stdin=b"x" * 5_000_000, env=ENV)
    assert ended.exit_code == 0


async def test_the_environment_is_exactly_what_was_given(monkeypatch):
    monkeypatch.setenv("SQUEUE_FORMAT", "x")
    assert (await process.run(["/usr/bin/env"], env={"A": "1"})).stdout == b"A=1\n"


async def test_words_are_no_shell_text(tmp_path):
    ended = await process.run(["printf", "%s|", "a b", "$(id)", ";", "*"], env=ENV, cwd=str(tmp_path))
    assert ended.stdout == b"a b|$(id)|;|*|"


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no limit can be set")
@pytest.mark.parametrize(("memory", "code"), [(100 * 2**20, 1), (600 * 2**20, 0)])
async def test_a_process_gets_no_more_memory_than_it_may_have(memory, code):
    argv = [sys.executable, "-c", "import sys; sys.stdin.read(); print(len(bytearray(300 * 2**20)))"]
    ended = await process.run(argv, env=ENV, limits={"RLIMIT_DATA": memory})
    assert ended.exit_code == code
    assert (b"MemoryError" in ended.stderr) is (code == 1)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no limit can be set")
async def test_a_process_gets_no_more_of_the_processor_than_it_may_have():
    argv = [sys.executable, "-c", "while True: pass"]
    ended = await process.run(argv, env=ENV, timeout=100, limits={"RLIMIT_CPU": 1})
    assert ended.exit_code == -9


async def test_output_is_bounded_and_the_process_still_ends():
    ended = await process.run(["head", "-c", "3000000", "/dev/zero"], env=ENV, max_output=1000)
    assert (len(ended.stdout), ended.truncated, ended.exit_code) == (1000, True, 0)


async def test_output_of_just_the_bound_is_whole():
    ended = await process.run(["head", "-c", "1000", "/dev/zero"], env=ENV, max_output=1000)
    assert (len(ended.stdout), ended.truncated) == (1000, False)


async def test_errors_are_bounded_too():
    ended = await process.run(["sh", "-c", "head -c 3000000 /dev/zero >&2"], env=ENV)
    assert (len(ended.stderr), ended.truncated) == (2**20, True)


async def test_a_program_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError):
        await process.run(["/no/such/program"], env=ENV)


async def test_at_the_time_limit_the_whole_group_is_killed(tmp_path):
    note = tmp_path / "pids"
    ended = await process.run([sys.executable, "-c", STUBBORN, str(note)], env=ENV, timeout=3)
    assert ended.exit_code is None
    assert gone([int(pid) for pid in note.read_text().split()])


async def test_what_was_said_before_the_time_limit_is_kept():
    ended = await process.run(["sh", "-c", "echo early; sleep 600"], env=ENV, timeout=0.5)
    assert (ended.exit_code, ended.stdout) == (None, b"early\n")


async def test_a_child_that_keeps_the_output_open_does_not_outlast_the_time_limit():
    ended = await process.run(["sh", "-c", "sleep 600 & echo $!"], env=ENV, timeout=0.5)
    assert ended.exit_code is None
    assert gone([int(ended.stdout)])


async def test_cancelling_while_it_starts_leaves_no_process(tmp_path, monkeypatch):
    """On a busy machine a process may run for a while before its start is known here."""
    note, start, cancelled = tmp_path / "pids", anyio.open_process, anyio.Event()

    async def slow(*args, **options):
        made = await start(*args, **options)
        await cancelled.wait()
        return made

    monkeypatch.setattr(anyio, "open_process", slow)
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: process.run([sys.executable, "-c", STUBBORN, str(note)], env=ENV, timeout=60))
        await eventually(note.exists)
        group.cancel_scope.cancel()
        cancelled.set()
    assert gone([int(pid) for pid in note.read_text().split()])


async def test_cancelling_kills_the_group_and_waits_for_it(tmp_path):
    note = tmp_path / "pids"
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: process.run([sys.executable, "-c", STUBBORN, str(note)], env=ENV, timeout=60))
        await eventually(note.exists)
        group.cancel_scope.cancel()
    assert gone([int(pid) for pid in note.read_text().split()])


async def test_a_process_that_is_told_to_stop_is_ended_and_what_it_printed_counts(tmp_path):
    stop, said = anyio.Event(), tmp_path / "said"
    code = "import sys, time; print('best so far', flush=True); open(sys.argv[1], 'w').close(); time.sleep(600)"

    async def soon() -> None:
        await eventually(said.exists)
        stop.set()

    async with anyio.create_task_group() as group:
        group.start_soon(soon)
        done = await process.run([sys.executable, "-c", code, str(said)], env=ENV, timeout=300, stop=stop)
    assert (done.exit_code, done.stdout) == (None, b"best so far\n")
    again = await process.run([sys.executable, "-c", "print(1)"], env=ENV, timeout=300, stop=anyio.Event())
    assert (again.exit_code, again.stdout) == (0, b"1\n")


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("size", [0, 1, 3_000_000])
async def test_output_is_told_while_it_comes_and_whole_at_the_end(size):
    told = list[bytes]()
    code = f"import sys; sys.stdout.write('x' * {size}); sys.stderr.write('done')"
    ended = await process.run([sys.executable, "-c", code], env=ENV, on_output=told.append)
    assert (ended.exit_code, ended.stdout, ended.stderr) == (0, b"x" * size, b"done")
    assert b"".join(told) == ended.stdout
    assert len(told) >= size // 2**16


async def test_no_more_is_told_than_is_kept():
    told = list[bytes]()
    ended = await process.run(["head", "-c", "300000", "/dev/zero"], env=ENV, max_output=100_000, on_output=told.append)
    assert (len(b"".join(told)), len(ended.stdout), ended.truncated, ended.exit_code) == (100_000, 100_000, True, 0)


@pytest.mark.parametrize("argv", [["sleep", "600"], ["sh", "-c", "sleep 600 & echo first"], ["no-such-program"]])
async def test_a_process_whose_output_is_told_leaves_no_file_open_however_it_ends(argv):
    await process.run(["true"], env=ENV, on_output=lambda _: None)
    before, told = open_files(), list[bytes]()
    if argv == ["no-such-program"]:
        with pytest.raises(FileNotFoundError):
            await process.run(argv, env=ENV, on_output=told.append)
    else:
        ended = await process.run(argv, env=ENV, timeout=0.3, on_output=told.append)
        assert ended.exit_code is None
        assert b"".join(told) == ended.stdout
    await eventually(lambda: open_files() == before)
