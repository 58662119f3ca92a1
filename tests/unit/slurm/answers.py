"""Finished commands for parser tests, and a runner that gives prepared answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from slurm_agent_tools.transport.base import Completed


def done(
    stdout: bytes = b"", stderr: bytes = b"", code: int | None = 0, argv: Sequence[str] = ("squeue",)
) -> Completed:
    return Completed(tuple(argv), code, stdout, stderr, 0.01)


class Prepared:
    """Answers by the command's name; counts what was asked."""

    def __init__(self, answers: Mapping[str, Callable[[Sequence[str]], Completed]]) -> None:
        self.answers, self.asked = answers, []

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 10.0,
        max_output: int = 0,
        on_output: object = None,
    ) -> Completed:
        self.asked.append(tuple(argv))
        if tuple(argv) == ("sacct", "--helpformat"):
            return done(b"JobID               State", argv=argv)
        return self.answers[argv[0]](argv)
