"""Large texts are read beside the event loop, in which others are answered meanwhile."""

from __future__ import annotations

import threading

import anyio
import pytest
from tests.unit.counting import counted
from tests.unit.scripts.project import project, read
from tests.watchdog import SECONDS

from slurm_agent_tools.programs.languages import python_program
from slurm_agent_tools.scripts import analyse, reader, script_layout
from slurm_agent_tools.transport import process

SET = "export CUDA_VISIBLE_DEVICES=0\n"


@pytest.mark.parametrize(("lines", "beside"), [(3, False), (3000, True)])
async def test_a_large_text_is_worked_on_beside_the_event_loop(
    lines: int, beside: bool, monkeypatch: pytest.MonkeyPatch
):
    seen: dict[str, set[int]] = {}

    def noted(name: str, work):
        def call(*words, **more):
            seen.setdefault(name, set()).add(threading.get_ident())
            return work(*words, **more)

        return call

    monkeypatch.setattr(reader, "load", noted("parsed", reader.load))
    monkeypatch.setattr(analyse, "read_shell", noted("read", analyse.read_shell))
    monkeypatch.setattr(script_layout, "layout", noted("laid out", script_layout.layout))
    monkeypatch.setattr(reader, "_PRINTED", {})
    assert (await read(SET + "echo 1\n" * lines)).layout is not None

    assert set(seen) == {"parsed", "read", "laid out"}
    assert all((threads != {threading.get_ident()}) is beside for threads in seen.values())


@pytest.mark.parametrize(("lines", "beside"), [(3, False), (3000, True)])
async def test_so_is_a_large_script_in_python(lines: int, beside: bool, monkeypatch: pytest.MonkeyPatch):
    real, seen = python_program.parsed, set[int]()

    def noted(text: str):
        seen.add(threading.get_ident())
        return real(text)

    monkeypatch.setattr(python_program, "parsed", noted)
    await read("#!/usr/bin/python3\n" + "print(1)\n" * lines)
    assert (seen != {threading.get_ident()}) is beside


async def test_so_are_many_files_and_one_that_is_read_after_another_was_not_there(monkeypatch: pytest.MonkeyPatch):
    real, seen = python_program.parsed, list[bool]()

    def noted(text: str):
        seen.append(threading.get_ident() == threading.main_thread().ident)
        return real(text)

    monkeypatch.setattr(python_program, "parsed", noted)
    many = project(**{f"m{number}__py": f"x = {number}\n" * 300 for number in range(20)})
    await read("".join(f"python m{number}.py\n" for number in range(20)), many)
    assert seen[0]
    assert not any(seen[10:])

    seen.clear()
    await read("cd sub\npython big.py\n", project(big__py="print(1)\n" * 3000))
    assert seen == [False]


def test_what_prints_in_what_prints_is_looked_through_once():
    def calls(deep: int) -> int:
        return counted(lambda: python_program.read_python("print(" * deep + "1" + ")" * deep))[1]

    assert calls(80) < 2.5 * calls(40)


async def test_a_small_text_does_not_wait_until_large_ones_are_parsed(monkeypatch: pytest.MonkeyPatch):
    real, large = process.run, anyio.Event()

    async def run(words, **more):
        if len(more["stdin"]) > 1000:
            await large.wait()
        return await real(words, **more)

    monkeypatch.setattr(process, "run", run)
    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(read, f"echo large{number}\n" * 3000)
        await anyio.wait_all_tasks_blocked()
        assert (await read("echo small\n")).findings == ()
        large.set()


async def test_large_texts_are_read_one_after_the_other(monkeypatch: pytest.MonkeyPatch):
    real, now, most = analyse.read_shell, 0, 0

    def noted(*words, **more):
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return real(*words, **more)
        finally:
            now -= 1

    monkeypatch.setattr(analyse, "read_shell", noted)
    monkeypatch.setattr(reader, "_AT_ONCE", 4)
    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(read, f"echo large{number}\n" * 3000)
    assert most == 1


async def test_nobody_waits_until_all_large_texts_of_another_are_read(monkeypatch: pytest.MonkeyPatch):
    real, others, done = analyse.read_shell, threading.Event(), list[str]()

    def held(*words, **more):
        if reader.WHOSE.get() == 1:
            assert others.wait(SECONDS)
        return real(*words, **more)

    async def asked(whose: int, text: str):
        reader.WHOSE.set(whose)
        await read(text * 3000)
        done.append(text)

    monkeypatch.setattr(analyse, "read_shell", held)
    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(asked, 1, f"echo {number}\n")
        await anyio.sleep(0.1)
        await asked(2, "echo mine\n")
        assert done == ["echo mine\n"]
        others.set()
    assert len(done) == 5
    assert reader._turns()._of == {}


async def test_the_small_files_of_a_project_wait_for_nobodys_turn(monkeypatch: pytest.MonkeyPatch):
    """Two users with large scripts, again and again, kept a project of forty small files waiting for a minute."""
    real, others = analyse.read_shell, threading.Event()

    def held(*words, **more):
        if reader.WHOSE.get() != 3:
            assert others.wait(SECONDS)
        return real(*words, **more)

    async def large(whose: int):
        reader.WHOSE.set(whose)
        await read(f"echo {whose}\n" * 3000)

    monkeypatch.setattr(analyse, "read_shell", held)
    many = project(**{f"m{number}__py": f"x = {number}\n" * 300 for number in range(20)})
    async with anyio.create_task_group() as group:
        for whose in (1, 2):
            group.start_soon(large, whose)
        await anyio.sleep(0.1)
        reader.WHOSE.set(3)
        assert len((await read("".join(f"python m{number}.py\n" for number in range(20)), many)).files) == 20
        others.set()
