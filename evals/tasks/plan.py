"""Jobs on four GPUs in the order that ends earliest."""

from __future__ import annotations

from evals.task import Outcome, Task, need


def check(seen: Outcome) -> None:
    """The shortest time: four GPUs are busy for all of three hours, which no order beats."""
    need(not seen.sent, "nothing was to be submitted")
    need(seen.text("plan.txt").split() == ["10800"], f"plan.txt says {seen.text('plan.txt')!r}")


TASK = Task(
    prompt="I have four GPUs and these jobs: four of one GPU and one hour, one of two GPUs and two hours, one of "
    "four GPUs and one hour. In how many seconds can all be over? Write the number into plan.txt; submit "
    "nothing.",
    files={},
    check=check,
)
