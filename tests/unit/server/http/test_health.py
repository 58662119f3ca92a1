"""Health: cached, and silent towards strangers about what is wrong."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from slurm_agent_tools.errors import AgentToolsError, ConfigError, InputError, SlurmUnreachable, StorageError
from slurm_agent_tools.server.http.auth import LIVES, READY, Health
from slurm_agent_tools.server.http.scope_check import ScopedToolbox


class ContextRegistry:
    """One context; what it raises is given."""

    def __init__(
        self, *, usual: Exception | None = None, ledger: Exception | None = None, slurm: Exception | None = None
    ):
        self.usual, self.ledger, self.slurm, self.looks = usual, ledger, slurm, 0

    async def at(self, cluster: str | None) -> Any:
        if cluster is None and self.usual is not None:
            raise self.usual
        return SimpleNamespace(db=self.db, store=SimpleNamespace(probe=None), slurm=self)

    async def db(self, _: None) -> None:
        self.looks += 1
        if self.ledger is not None:
            raise self.ledger

    async def partitions(self) -> None:
        if self.slurm is not None:
            raise self.slurm

    async def close(self) -> None: ...


async def told(registry: ContextRegistry, path: str = READY, *, known: bool = True) -> tuple[int, dict[str, str]]:
    answer = await Health(ScopedToolbox(registry)).answer(path, known=known)
    return answer.status_code, json.loads(answer.body)


async def test_all_is_well():
    assert await told(ContextRegistry(), known=False) == (200, {"status": "ok"})
    assert await told(ContextRegistry()) == (200, {"status": "ok", "ledger": "ok", "slurm": "ok"})


@pytest.mark.parametrize(("registry", "part"), [
    (ContextRegistry(ledger=StorageError("the disk is full")), "ledger"),
    (ContextRegistry(slurm=SlurmUnreachable("no answer from slurmctld")), "slurm"),
    (ContextRegistry(usual=ConfigError("policy", "x", "is broken")), "ledger"),
])  # fmt: skip
async def test_a_stranger_learns_that_and_not_what_is_wrong(registry: ContextRegistry, part: str):
    assert await told(registry, known=False) == (503, {"status": "unavailable"})
    code, body = await told(registry)
    raised = next(one for one in (registry.usual, registry.ledger, registry.slurm) if one is not None)
    assert isinstance(raised, AgentToolsError)
    assert (code, body[part]) == (503, raised.message)
    assert await told(registry, LIVES) == (200, {"status": "ok"})


async def test_of_several_clusters_none_is_asked():
    registry = ContextRegistry(usual=InputError("cluster", None, "is needed"), slurm=SlurmUnreachable("never asked"))
    code, body = await told(registry)
    assert (code, body["ledger"]) == (200, "ok")


async def test_many_askers_at_once_are_one_look():
    registry = ContextRegistry()
    health = Health(ScopedToolbox(registry))
    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(lambda: health.answer(READY, known=False))
    assert registry.looks == 1


async def test_a_server_that_stops_lives_and_is_not_ready():
    toolbox = ScopedToolbox(ContextRegistry())
    toolbox.stopping.set()
    health = Health(toolbox)
    assert (await health.answer(LIVES, known=False)).status_code == 200
    assert (await health.answer(READY, known=False)).status_code == 503
