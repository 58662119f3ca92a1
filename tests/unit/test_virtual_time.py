import time
from datetime import timedelta

import anyio
import anyio.to_thread
import pytest
from tests.unit.virtual_time import VirtualClock, in_no_time, passed
from tests.watchdog import Hung, ends


@in_no_time
async def test_hours_pass_in_their_order_and_to_the_second():
    clock, order = VirtualClock(), []
    begun = clock.now()

    async def nap(seconds: float) -> None:
        await clock.sleep(seconds)
        order.append((seconds, passed()))

    async with anyio.create_task_group() as group:
        for seconds in (7200, 3600.5, 1):
            group.start_soon(nap, seconds)
    assert order == [(1, 1), (3600.5, 3600.5), (7200, 7200)]
    assert clock.now() - begun == timedelta(hours=2)


@in_no_time
async def test_a_time_limit_ends_what_never_answers():
    with anyio.move_on_after(1000) as limit:
        await anyio.sleep_forever()
    assert (limit.cancelled_caught, passed()) == (True, 1000)


@in_no_time
async def test_a_thread_that_works_is_waited_for_and_takes_no_time():
    with anyio.move_on_after(0.001) as limit:
        await anyio.to_thread.run_sync(time.sleep, 0.1)
    assert (limit.cancelled_caught, passed()) == (False, 0)


def test_what_runs_on_is_ended():
    def forever() -> None:
        with ends(0.05):
            while True:
                pass

    with pytest.raises(Hung):
        forever()
