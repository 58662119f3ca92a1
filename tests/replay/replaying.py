"""Recordings of Slurm's commands, and a runner that answers from one and from nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from slurm_agent_tools.settings import SlurmSettings
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.transport.base import Completed

RECORDINGS = Path(__file__).parent / "recordings"
USER = "researcher"


@dataclass(frozen=True)
class Answer:
    """One command and its answer. Bytes are kept as latin-1 text, which holds every byte."""

    argv: tuple[str, ...]
    stdin: str
    stdout: str
    stderr: str
    exit_code: int | None
    slurm_version: str

    def completed(self) -> Completed:
        return Completed(
            self.argv, self.exit_code, self.stdout.encode("latin-1"), self.stderr.encode("latin-1"), seconds=0.01
        )


def save(path: Path, answers: Sequence[Answer]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps([asdict(answer) for answer in answers], indent=1) + "\n")


def load(path: Path) -> list[Answer]:
    return [Answer(**{**found, "argv": tuple(found["argv"])}) for found in json.loads(path.read_text())]


class ReplayRunner:
    """Answers only the recorded argument vectors, with the recorded standard input; all else is an AssertionError."""

    def __init__(self, answers: Sequence[Answer], change: Callable[[Answer], Answer] = lambda answer: answer) -> None:
        self.answers = {(answer.argv, answer.stdin): change(answer) for answer in answers}
        self.asked: list[tuple[str, ...]] = []

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
        key = (tuple(argv), stdin.decode("latin-1"))
        assert key in self.answers, f"not recorded: {argv}"
        return self.answers[key].completed()


class Stopped:
    """A clock that stands."""

    def __init__(self, moment: datetime | None = None) -> None:
        self.moment = moment or datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing to wait for")


def client(answers: Sequence[Answer], change: Callable[[Answer], Answer] = lambda answer: answer) -> SlurmClient:
    return SlurmClient(ReplayRunner(answers, change), Stopped(), SlurmSettings(), user=USER, mark=str)
