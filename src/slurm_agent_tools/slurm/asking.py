"""Running Slurm's commands: each is counted by its kind, and the controller's answers are timed."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

from slurm_agent_tools.config import SlurmSettings
from slurm_agent_tools.slurm import load
from slurm_agent_tools.slurm.runner import Completed, Runner

_TIMED = frozenset({"squeue", "sinfo", "scontrol", "sdiag"})


class Asker:
    """Asks one cluster. `calls` counts the commands by kind, `answers` are the controller's last ones."""

    def __init__(self, runner: Runner, settings: SlurmSettings) -> None:
        self.settings = settings
        self.calls: Counter[str] = Counter()
        self.answers: deque[load.Answer] = deque(maxlen=load.KEPT)
        self._runner = runner

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        max_output: int = 64 * 2**20,
    ) -> Completed:
        """A command that changes nothing."""
        self.calls[_kind(argv)] += 1
        done = await self._runner.run(
            argv, stdin=stdin, cwd=cwd, env=env, timeout=self.settings.read_timeout, max_output=max_output
        )
        if argv[0] in _TIMED:
            self.answers.append(load.Answer(done.seconds, len(done.stdout), not done.timed_out))
        return done

    async def change(
        self, argv: Sequence[str], *, stdin: bytes = b"", cwd: str | None = None, env: Mapping[str, str] | None = None
    ) -> Completed:
        """A command that changes something: it gets more time."""
        self.calls[_kind(argv)] += 1
        return await self._runner.run(argv, stdin=stdin, cwd=cwd, env=env, timeout=self.settings.submit_timeout)


def _kind(argv: Sequence[str]) -> str:
    if argv[:2] == ["sacct", "--helpformat"]:
        return " ".join(argv)
    return " ".join(argv[:3]) if argv[0] == "scontrol" and argv[1] == "show" else argv[0]
