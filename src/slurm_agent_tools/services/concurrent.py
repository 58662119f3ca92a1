"""Several questions at once, each with its own answer or error."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import anyio

from slurm_agent_tools.errors import AgentToolsError

T = TypeVar("T")


class ConcurrentQuestion(Generic[T]):
    """A question that is asked once; its answer, or AgentToolsError, is kept until it is looked at."""

    def __init__(self, ask: Callable[[], Awaitable[T]]) -> None:
        self._ask: Callable[[], Awaitable[T]] | None = ask
        self._answer: T | None = None
        self.error: AgentToolsError | None = None

    async def run(self) -> None:
        """Ask, and let go of the question: its owner may be part of it, and should end with its last user."""
        ask, self._ask = self._ask, None
        if ask is None:
            raise RuntimeError("a question is asked once")
        try:
            self._answer = await ask()
        except AgentToolsError as error:
            self.error = error

    @property
    def answer(self) -> T | None:
        """The answer, None where there is none: not yet, or an error instead."""
        return self._answer

    def value(self) -> T:
        """The answer; raises the error that came instead."""
        if self.error is not None:
            raise self.error
        return self._answer  # type: ignore[return-value]  # None only where T allows it


async def ask_all(*questions: ConcurrentQuestion[Any]) -> None:
    """Ask all at once and wait for the last."""
    async with anyio.create_task_group() as group:
        for question in questions:
            group.start_soon(question.run)
