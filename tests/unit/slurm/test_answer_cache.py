import gc
import weakref
from contextlib import suppress
from functools import partial

import anyio
import anyio.lowlevel
import pytest

from slurm_agent_tools.devcluster.fake.fake_clock import FakeClock
from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.slurm.answer_cache import SharedAnswer, SharedAnswers


class Asked:
    """Answers a number, counts the questions, and can be held up or made to fail."""

    def __init__(self):
        self.clock, self.questions, self.gate, self.error = FakeClock(), [], None, None
        self.shared = SharedAnswer(self.clock, self.one)
        self.batch = SharedAnswers(self.clock, self.many)

    async def one(self):
        self.questions.append(None)
        await self._wait()
        return len(self.questions)

    async def many(self, keys, age):
        self.questions.append((sorted(keys), age))
        await self._wait()
        return {key: f"{key}!" for key in keys if key != 0}

    async def _wait(self):
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error


@pytest.fixture
def asked():
    return Asked()


async def settle():
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


async def test_the_age_of_an_answer_counts_from_the_question(asked):
    assert asked.shared.age is None
    await asked.shared.get(10)
    asked.clock.move(7)
    assert asked.shared.age == 7


async def test_after_a_change_what_was_asked_for_before_it_is_asked_for_again(asked):
    await asked.shared.get(10)
    asked.clock.move(1)
    asked.shared.changed()
    asked.clock.move(1)
    assert [await asked.shared.get(10), await asked.shared.get(10)] == [2, 2]


async def test_an_answer_under_way_while_something_changed_is_asked_for_again(asked):
    asked.gate = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(asked.shared.get, 10)
        await settle()
        asked.clock.move(1)
        asked.shared.changed()
        group.start_soon(asked.shared.get, 10)
        await settle()
        asked.gate.set()
    assert len(asked.questions) == 2


async def test_a_failure_has_no_age_and_is_told_to_all_within_the_time(asked):
    asked.error = SlurmUnreachable("silent")
    for _ in range(3):
        with pytest.raises(SlurmUnreachable):
            await asked.shared.get(10)
    assert (len(asked.questions), asked.shared.age) == (1, None)


async def test_whoever_waits_for_a_question_that_was_given_up_asks_it_again(asked):
    asked.gate = anyio.Event()
    answers = []

    async def ask():
        answers.append(await asked.shared.get(10))

    async with anyio.create_task_group() as group:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as first:
                first.start_soon(ask)
                await settle()
                group.start_soon(ask)
                await settle()
                scope.cancel()
        asked.gate.set()
    assert answers == [2]


async def test_single_questions_of_one_moment_are_asked_as_one(asked):
    async with anyio.create_task_group() as group:
        for key in (1, 2, 3, 2):
            group.start_soon(partial(asked.batch.get, [key], 10))
    assert [keys for keys, _ in asked.questions] == [[1, 2, 3]]


async def test_those_that_come_while_a_question_is_out_are_asked_as_the_next_one(asked):
    asked.gate = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(partial(asked.batch.get, [1], 10))
        await settle()
        for key in (2, 3, 1):
            group.start_soon(partial(asked.batch.get, [key], 10))
        await settle()
        asked.gate.set()
    assert [keys for keys, _ in asked.questions] == [[1], [2, 3]]


async def test_an_answer_about_one_thing_is_used_until_its_age(asked):
    assert await asked.batch.get([1, 2], 10) == {1: "1!", 2: "2!"}
    asked.clock.move(5)
    assert await asked.batch.get([2, 3], 10) == {2: "2!", 3: "3!"}
    await asked.batch.get([1], 3)
    assert [keys for keys, _ in asked.questions] == [[1, 2], [3], [1]]


async def test_the_strictest_asker_says_how_old_the_answer_may_be(asked):
    async with anyio.create_task_group() as group:
        group.start_soon(partial(asked.batch.get, [1], 10))
        group.start_soon(partial(asked.batch.get, [2], 2))
    assert asked.questions == [([1, 2], 2)]


async def test_what_nothing_is_told_of_is_left_out_and_not_asked_again(asked):
    for _ in range(2):
        assert await asked.batch.get([0, 1], 10) == {1: "1!"}
    assert len(asked.questions) == 1


async def test_a_failed_batch_is_an_error_for_each_of_its_askers(asked):
    asked.error = SlurmUnreachable("silent")
    for key in (1, 2):
        with pytest.raises(SlurmUnreachable):
            await asked.batch.get([key], 10)


async def test_old_answers_are_let_go(asked):
    await asked.batch.get(range(1, 500), 10)
    asked.clock.move(61)
    await asked.batch.get([1], 10)
    assert list(asked.batch._kept) == [1]


class Answer:
    """Stands for the megabytes that a command printed."""


@pytest.mark.parametrize("kind", ["one", "many"])
async def test_an_error_that_is_kept_keeps_nothing_of_the_answer_that_it_is_about(kind):
    seen = []

    async def ask(*_):
        whole = Answer()
        seen.append(weakref.ref(whole))
        raise SlurmUnreachable("what cannot be read") from ValueError(whole)

    shared = SharedAnswer(FakeClock(), ask) if kind == "one" else SharedAnswers(FakeClock(), ask)
    get = partial(shared.get, 10) if kind == "one" else partial(shared.get, [1], 10)
    for _ in range(2):
        with suppress(SlurmUnreachable):
            await get()
    gc.collect()
    assert [one() for one in seen] == [None]
