"""Our own program, but it dies by SIGKILL at one point: `python dying.py STEP:WHEN serve`, or a tool and its words.

Nothing of the product knows of this: its steps are wrapped from outside, then the ordinary command line runs.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

STEPS = {
    "trial": ("sbatch", "--test-only"),
    "sbatch": ("sbatch", "--parsable"),
    "show": ("scontrol", "show"),
    "script": ("scontrol", "write"),
    "release": ("scontrol", "release"),
}
"""Commands of a submission, by two of their words."""
METHODS = {
    "decide": "log_decision", "intent": "add", "held": "update", "told": "log_decision", "released": "update",
    "delivered": "deliver",
}  # fmt: skip
POINTS = tuple(
    [f"{step}:{when}" for step in ("decide", "trial", "intent") for when in ("before", "after")]
    + [f"sbatch:{when}" for when in ("before", "during", "after")]
    + [f"{step}:{when}" for step in ("held", "show", "script") for when in ("before", "after")]
    + [f"release:{when}" for when in ("before", "during", "after")]
    + [f"{step}:{when}" for step in ("told", "released", "delivered") for when in ("before", "after")]
)
"""In the order of a submission."""
_WHILE = 0.004
"""Seconds after its start at which a command is `during`: sbatch takes about twice as long."""


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def meant(name: str, args: tuple[Any, ...], facts: dict[str, Any]) -> bool:
    """Whether a call of the ledger's method is this step of a submission."""
    if METHODS[name] == "log_decision":
        event = {"decide": "decided", "told": "submitted"}[name]
        return bool(args[0]["event"] == event and args[0]["tool"] == "submit_job")
    return METHODS[name] != "update" or facts.get("phase") == name


def wrap_record(store: type, name: str, when: str) -> None:
    """Die before or after the ledger's method, where its arguments are those of this step."""
    method: Callable[..., Any] = getattr(store, METHODS[name])

    @functools.wraps(method)
    def wrapped(self: object, *args: Any, **facts: Any) -> Any:
        mine = meant(name, args, facts)
        if mine and when == "before":
            die()
        found = method(self, *args, **facts)
        if mine:
            die()
        return found

    setattr(store, METHODS[name], wrapped)


def wrap_command(runner: type, name: str, when: str) -> None:
    """Die before, during or after one of Slurm's commands."""
    run: Callable[..., Any] = runner.run  # type: ignore[attr-defined]

    @functools.wraps(run)
    async def wrapped(self: object, argv: Any, **facts: Any) -> Any:
        mine = argv[0] == STEPS[name][0] and STEPS[name][1] in argv and (name == "trial") == ("--test-only" in argv)
        if name == "show":
            mine = mine and argv[2] == "job"
        if mine and when == "before":
            die()
        if mine and when == "during":
            threading.Timer(_WHILE, die).start()
        found = await run(self, argv, **facts)
        if mine:
            die()
        return found

    runner.run = wrapped  # type: ignore[attr-defined]


def main() -> int:
    name, _, when = sys.argv[1].partition(":")
    from slurm_agent_tools.cli import main as main_module  # noqa: PLC0415 - this file is also imported for its names
    from slurm_agent_tools.store.ledger import Store  # noqa: PLC0415
    from slurm_agent_tools.transport.local import LocalRunner  # noqa: PLC0415

    if name in STEPS:
        wrap_command(LocalRunner, name, when)
    else:
        wrap_record(Store, name, when)
    words = sys.argv[2:]
    return main_module.main(words) if words == ["serve"] else main_module.tool_main(words[0], words[1:])


if __name__ == "__main__":
    sys.exit(main())
