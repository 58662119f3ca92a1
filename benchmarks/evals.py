"""What the 25 evaluation tasks cost on a private Slurm: calls and bytes of the recorded solutions."""

from __future__ import annotations

import anyio
from benchmarks.everyday import BEFORE, KB
from benchmarks.table import Row
from evals.catalogue import BASIC, NAMES
from evals.run import Score, play_all, private


def rows() -> list[Row]:
    scores = anyio.run(_played)
    undone = {score.task: score.wrong for score in scores if score.wrong is not None}
    if undone:
        raise RuntimeError(f"not done: {undone}")
    nine = [score for score in scores if score.task in BASIC]
    calls = sum(len(score.cost.calls) for score in scores)
    reference = "nine everyday tasks before answers were brief"
    return [
        Row("the nine basic evaluation tasks", _size(nine), "KB", reference, BEFORE / KB),
        Row(
            f"all {len(scores)} evaluation tasks, {calls} calls", _size(scores), "KB", reference, BEFORE / KB, limit=0.5
        ),
    ]


def _size(scores: list[Score]) -> float:
    return sum(score.cost.asked + score.cost.answered for score in scores) / KB


async def _played() -> list[Score]:
    async with private() as cluster:
        return await play_all(cluster, NAMES)
