"""The clock of the fake Slurm: time moves only when somebody sleeps or tells it to."""

from __future__ import annotations

from datetime import timedelta

import anyio

from slurm_agent_tools.devcluster.fake.fake_clock import START, FakeClock


def test_what_is_due_happens_in_its_order_and_at_its_moment():
    clock, seen = FakeClock(), list[tuple[str, float]]()
    begun = clock.seconds
    for name, seconds in (("third", 5.0), ("first", 1.0), ("second", 1.0), ("later", 10.5)):
        clock.call_at(begun + seconds, lambda name=name: seen.append((name, clock.seconds - begun)))
    clock.move(10)
    assert seen == [("first", 1.0), ("second", 1.0), ("third", 5.0)]
    assert clock.now() == START + timedelta(seconds=10)


def test_what_was_due_before_happens_at_once_and_time_never_goes_back():
    clock, seen = FakeClock(), list[float]()
    clock.call_at(clock.seconds - 100, lambda: seen.append(clock.seconds))
    clock.move(-5)
    assert seen == [START.timestamp()]
    assert clock.now() == START


async def test_whoever_sleeps_moves_the_time_on_to_the_first_who_wakes():
    clock, woken = FakeClock(), list[tuple[str, float]]()

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, (clock.now() - START).total_seconds()))

    async with anyio.create_task_group() as group:
        group.start_soon(sleeper, "long", 60)
        group.start_soon(sleeper, "short", 2.5)
        group.start_soon(sleeper, "not at all", 0)
    assert woken == [("not at all", 0), ("short", 2.5), ("long", 60)]


async def test_a_steady_clock_is_moved_by_nobody_but_the_test():
    clock, woken = FakeClock(steady=True), list[float]()

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((clock.now() - START).total_seconds())
        await clock.sleep(1)
        woken.append((clock.now() - START).total_seconds())

    async with anyio.create_task_group() as group:
        group.start_soon(sleeper, 3)
        await clock.advance(2.5)
        assert woken == []
        await clock.advance(0.5)
        assert woken == [3]
        await clock.advance(100)
        assert woken == [3, 4]  # the one who slept on woke in its own time
    assert clock.now() == START + timedelta(seconds=103)


async def test_whoever_is_woken_acts_before_another_sleeper_moves_the_time_on():
    clock, seen = FakeClock(), list[float]()

    async def often() -> None:
        for _ in range(3):
            await clock.sleep(1)
            seen.append(clock.seconds - START.timestamp())

    async with anyio.create_task_group() as group:
        for seconds in (10, 20, 30):
            group.start_soon(clock.sleep, seconds)
        group.start_soon(often)
    assert seen == [1, 2, 3]
