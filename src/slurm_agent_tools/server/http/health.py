"""`/healthz` says that the process lives, `/readyz` that it can do its work."""

from __future__ import annotations

import time

import anyio
from starlette.responses import JSONResponse

from slurm_agent_tools.errors import AgentToolsError, ConfigError, InputError
from slurm_agent_tools.server.http.scope_check import ScopedToolbox
from slurm_agent_tools.services.context import LOCAL, ClusterContext

LIVES, READY = "/healthz", "/readyz"

PATHS = frozenset({LIVES, READY})

_KEPT = 5.0

_LONGEST = 8.0


class Health:
    """Looks at most every five seconds, however often it is asked."""

    def __init__(self, gate: ScopedToolbox) -> None:
        self._gate, self._lock = gate, anyio.Lock()
        self._seen: dict[str, str] = {}
        self._at = -_KEPT

    async def answer(self, path: str, *, known: bool) -> JSONResponse:
        """The answer; what exactly is wrong is told to the `known` alone."""
        found = {} if path == LIVES else await self._look()
        if path == READY and self._gate.stopping.is_set():
            found = {**found, "server": "stopping"}
        good = all(value.startswith("ok") for value in found.values())
        body = {"status": "ok" if good else "unavailable"} | (found if known else {})
        return JSONResponse(body, 200 if good else 503, {"Cache-Control": "no-store"})

    async def _look(self) -> dict[str, str]:
        async with self._lock:
            if time.monotonic() - self._at >= _KEPT:
                self._seen = await self._probe()
                self._at = time.monotonic()
            return self._seen

    async def _probe(self) -> dict[str, str]:
        found = {"ledger": "not reached", "slurm": "no answer"}
        with anyio.move_on_after(_LONGEST):
            try:
                context, usual = await self._context()
                await context.db(context.store.probe)
                found["ledger"] = "ok"
                if usual:
                    await context.slurm.partitions()
                found["slurm"] = "ok" if usual else "ok, as no cluster is the usual one"
            except AgentToolsError as error:
                found["slurm" if found["ledger"] == "ok" else "ledger"] = error.message
        return found

    async def _context(self) -> tuple[ClusterContext, bool]:
        """The context to look at, and whether its cluster is the usual one. With several clusters there may be none."""
        try:
            return await self._gate.registry.at(None), True
        except ConfigError:
            raise
        except InputError:
            return await self._gate.registry.at(LOCAL), False
