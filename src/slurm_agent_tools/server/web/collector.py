"""One look for all who watch: however many pages are open, each thing is asked once a tick, and never for nobody."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from slurm_agent_tools.server.web.web_page import PageAsked, WebPage
from slurm_agent_tools.services.context import ClusterContext, ContextRegistry
from slurm_agent_tools.slurm.answer_cache import SharedAnswer

_MOST = 64
"""Different questions that are kept; the one that was asked longest ago goes first."""

_Key = tuple[str, str]


class Collector:
    """The records of all pages of one process. A controller that is slow is asked less often."""

    def __init__(self, registry: ContextRegistry, cluster: str | None = None) -> None:
        self._registry, self._cluster = registry, cluster
        self._kept: dict[_Key, SharedAnswer[dict[str, Any]]] = {}

    async def record(self, page: WebPage, asked: PageAsked) -> Mapping[str, Any]:
        """What the page shows, a tick old at most. Raises AgentToolsError."""
        context = await self.context()
        key = (page.name, asked.rest)
        shared = self._kept.pop(key, None) or SharedAnswer(context.clock, partial(self._gather, page, asked))
        self._kept[key] = shared
        while len(self._kept) > _MOST:
            del self._kept[next(iter(self._kept))]
        return await shared.get(page.age * context.slurm.verdict.factor)

    async def _gather(self, page: WebPage, asked: PageAsked) -> dict[str, Any]:
        context = await self.context()
        return {"as_of": context.clock.now().isoformat(), **await page.gather(context, asked)}

    async def context(self) -> ClusterContext:
        """Of the cluster that is shown, with the policy as it is now. Raises AgentToolsError."""
        if self._cluster is None:
            return await self._registry.home()
        return await self._registry.at(self._cluster)
