"""The core: one async method per tool, called by MCP and CLI alike.

A tool's room is loaded by its first call: the command line calls one tool and ends, and a server says who it is before
it knows of clusters.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio

from slurm_agent_tools.models import arguments, shapes
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.text.log_events import begin_request, get_logger
from slurm_agent_tools.transport.base import AskPerson, Transport, asker

if TYPE_CHECKING:
    from slurm_agent_tools.api.views import Body
    from slurm_agent_tools.insights.memory_sync import MemorySync
    from slurm_agent_tools.models import (
        backend_answer,
        campaign_answer,
        diagnosis_answer,
        fleet_answer,
        plan_answer,
        report,
        result,
        status_answer,
        submission_answer,
        sync_answer,
        toolset_arguments,
    )
    from slurm_agent_tools.models.script_arguments import GenerateScript
    from slurm_agent_tools.services.approval import Consult
    from slurm_agent_tools.services.context import Caller, ClusterContext, ContextRegistry, Progress
    from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion
    from slurm_agent_tools.store.ledger import Store


_log = get_logger()


@dataclass(frozen=True, slots=True)
class ToolCall:
    """Who calls, with which policy, and where progress goes. `early`: see Toolbox.call."""

    context: ClusterContext
    caller: Caller
    progress: Progress | None = None
    consult: Consult | None = None
    early: Any = None


_REMEMBER = frozenset({"get_status", "wait_for_job", "analyze_log", "choose_backend"})
"""Tools that only read, and note down what was seen: a full disk of the ledger stops none of them."""

_OF_ALL_CLUSTERS = frozenset({"choose_backend"})
"""Tools that look at every cluster: a call need not name one of several."""

_LOST = (
    "The ledger was deleted while this process ran, and a new one was begun: submissions, approvals and results from"
    " before are not known any more. Jobs in Slurm go on; they count as not submitted by submit_job."
)


_CHANGED = (
    "The decision log was changed by somebody else than these tools: {what}. A person looks at it with"
    " `slurm-agent-tools policy log --verify`, and begins a new one with `--begin-anew`, which keeps this one."
)


def _with_ledger(reply: shapes.Reply, store: Store, changed: str | None) -> shapes.Reply:
    """The answer with what is wrong with the ledger, where it has alerts; of the decision log in every answer."""
    told = getattr(reply, "alerts", None)
    message = None if changed is None else _CHANGED.format(what=changed)
    if told is None:
        return reply if message is None else reply.model_copy(update={"summary": f"{reply.summary} {message}"})
    found = [shapes.Alert(severity="high", code="ledger-lost", message=_LOST)] if store.lost else []
    if store.unwritten is not None:
        problem = f"What was seen could not be noted down: {store.unwritten.message}. {store.unwritten.hint}"
        found.append(shapes.Alert(severity="high", code="ledger-not-written", message=problem))
    if message is not None:
        found.append(shapes.Alert(severity="high", code="log-changed", message=message))
    return reply.model_copy(update={"alerts": [*told, *found]}) if found else reply


async def _reached(reach: Callable[[], Awaitable[ClusterContext]], early: ConcurrentQuestion[Any]) -> ClusterContext:
    """The context, reached while what was begun early goes on."""
    from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all

    context = ConcurrentQuestion(reach)
    await ask_all(context, early)
    return context.value()


def _opened(settings: Settings, places: Mapping[str, Transport] | None) -> ContextRegistry:
    from slurm_agent_tools.api.context_registry import OpenedContexts

    return OpenedContexts(settings, places)


class Toolbox:
    """The tools over the contexts of the clusters. Refusals are replies; failures are AgentToolsError."""

    def __init__(
        self, registry: ContextRegistry | Callable[[], ContextRegistry], memory: MemorySync | None = None
    ) -> None:
        """`registry` may be what makes one, for the first call."""
        self._registry, self.memory = registry, memory

    @classmethod
    def open(cls, settings: Settings, places: Mapping[str, Transport] | None = None) -> Self:
        """The tools for the clusters and the project that the settings name; each is opened by its first call.

        `places`: clusters, by their names, that are being reached already. Raises ConfigError.
        """
        memory = None
        if settings.memory.on:
            from slurm_agent_tools.insights.memory_sync import MemorySync

            memory = MemorySync(settings.memory)
        box = cls(partial(_opened, settings, places), memory)
        if settings.cluster is not None:
            _ = box.registry  # whether there is such a cluster is told at once
        return box

    @cached_property
    def registry(self) -> ContextRegistry:
        """Where a call finds its cluster. Raises ConfigError."""
        return self._registry() if callable(self._registry) else self._registry

    async def close(self) -> None:
        """Close the ledger and every connection."""
        if not callable(self._registry) or "registry" in vars(self):
            await self.registry.close()

    async def during(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work`, and beside it what no call waits for: the memory server is told of jobs."""
        if self.memory is None:
            await work()
            return
        async with anyio.create_task_group() as beside:
            beside.start_soon(self.memory.run)
            await work()
            beside.cancel_scope.cancel()

    async def call(
        self,
        name: str,
        ask: arguments.ToolArguments,
        *,
        caller: Caller | None = None,
        progress: Progress | None = None,
        consult: Consult | None = None,
        asked: AskPerson | None = None,
        early: ConcurrentQuestion[Any] | None = None,
    ) -> shapes.Reply:
        """Run one tool by its name in the catalogue, under one request id.

        `consult` asks the person at the client for a yes, `asked` for what a login node wants to know. `early` is asked
        while the cluster is reached; the tool gets its answer.
        """
        from slurm_agent_tools.services.context import Caller

        begin_request(name)
        asker.set(asked)
        anywhere = name in _OF_ALL_CLUSTERS and ask.cluster is None
        reach = self.registry.home if anywhere else partial(self.registry.at, ask.cluster)
        context = await reach() if early is None else await _reached(reach, early)
        found = None if early is None else early.value()
        call = ToolCall(context, caller or Caller(), progress, consult, found)
        _log.info("request", client=call.caller.client, face=call.caller.face)
        method: Callable[[arguments.ToolArguments, ToolCall], Awaitable[shapes.Reply]] = getattr(self, name)
        if name in _REMEMBER:
            call = replace(call, context=replace(call.context, store=call.context.store.for_reading()))
        reply = await method(ask, call)
        store = call.context.store
        reply = _with_ledger(reply, store, await call.context.db(store.log_problem))
        if self.memory is not None:
            self.memory.note(call.context)
        _log.info("answer", status=reply.status)
        return reply

    async def view(
        self,
        name: str,
        arguments: Mapping[str, str],
        *,
        caller: Caller | None = None,
        asked: AskPerson | None = None,
    ) -> Body:
        """What one resource holds, by its name in api.views; `cluster` among the arguments says of which."""
        from slurm_agent_tools.api import views
        from slurm_agent_tools.services.context import Caller

        begin_request(name)
        asker.set(asked)
        given = dict(arguments)
        context = await self.registry.at(given.pop("cluster", None))
        _log.info("view", client=(caller or Caller()).client)
        body = await views.VIEWS[name](context, **given)
        if self.memory is not None:
            self.memory.note(context)
        return body

    async def complete(self, kind: str, typed: str, *, cluster: str | None = None) -> tuple[list[str], int]:
        """What may stand for an argument of this kind, and how much there is; nothing where it cannot be told."""
        from slurm_agent_tools.api import views

        begin_request("complete")
        asker.set(None)
        return await views.complete(self.registry, cluster, kind, typed)

    async def get_status(self, ask: arguments.GetStatus, call: ToolCall) -> status_answer.StatusReply:
        """See services.status."""
        from slurm_agent_tools.services import status

        return await status.get_status(call.context, ask, call.caller)

    async def validate_config(self, ask: arguments.ValidateConfig, call: ToolCall) -> submission_answer.ValidateReply:
        """See services.validation."""
        from slurm_agent_tools.services import validation

        return await validation.validate_config(call.context, ask)

    async def generate_script(self, ask: GenerateScript, call: ToolCall) -> submission_answer.GenerateReply:
        """See services.generation."""
        from slurm_agent_tools.services import generation

        return await generation.generate_script(call.context, ask, call.caller)

    async def submit_job(self, ask: arguments.SubmitJob, call: ToolCall) -> submission_answer.SubmitReply:
        """See services.submit."""
        from slurm_agent_tools.services import submit

        return await submit.submit_job(call.context, ask, call.caller, call.consult)

    async def wait_for_job(self, ask: arguments.WaitForJob, call: ToolCall) -> report.WaitReply:
        """See services.waiting."""
        from slurm_agent_tools.services import waiting

        return await waiting.wait_for_job(call.context, ask, call.caller, call.progress)

    async def analyze_log(self, ask: arguments.AnalyzeLog, call: ToolCall) -> diagnosis_answer.AnalyzeReply:
        """See services.log_analysis."""
        from slurm_agent_tools.services import log_analysis

        return await log_analysis.analyze_log(call.context, ask, call.caller)

    async def save_result(self, ask: result.SaveResult, call: ToolCall) -> result.SaveReply:
        """See services.results."""
        from slurm_agent_tools.services import results

        return await results.save_result(call.context, ask, call.caller)

    async def compare_results(self, ask: result.CompareResults, call: ToolCall) -> result.CompareReply:
        """See services.results."""
        from slurm_agent_tools.services import results

        return await results.compare_results(call.context, ask)

    async def cancel_job(self, ask: arguments.CancelJob, call: ToolCall) -> submission_answer.CancelReply:
        """See services.cancel."""
        from slurm_agent_tools.services import cancel

        return await cancel.cancel_job(call.context, ask, call.caller)

    async def sync_files(self, ask: toolset_arguments.SyncFiles, call: ToolCall) -> sync_answer.SyncReply:
        """See services.sync."""
        from slurm_agent_tools.services import sync

        return await sync.sync_files(call.context, ask, call.caller, call.progress, call.early)

    async def choose_backend(self, ask: toolset_arguments.ChooseBackend, call: ToolCall) -> backend_answer.ChooseReply:
        """See services.choose_backend."""
        from slurm_agent_tools.services import choose_backend

        return await choose_backend.choose_backend(self.registry, call.context, ask, call.caller)

    async def get_campaign(self, ask: toolset_arguments.GetCampaign, call: ToolCall) -> campaign_answer.CampaignReply:
        """See campaign_tools."""
        from slurm_agent_tools.api import campaign_tools

        return await campaign_tools.get_campaign(call.context, ask, call.caller)

    async def advance_campaign(
        self, ask: toolset_arguments.AdvanceCampaign, call: ToolCall
    ) -> campaign_answer.CampaignReply:
        """See campaign_tools."""
        from slurm_agent_tools.api import campaign_tools

        return await campaign_tools.advance_campaign(call.context, ask, call.caller, call.progress)

    async def plan_jobs(self, ask: toolset_arguments.PlanJobs, call: ToolCall) -> plan_answer.PlanReply:
        """See api.plan_tools."""
        from slurm_agent_tools.api import plan_tools

        return await plan_tools.plan_jobs(call.context, call.caller, ask)

    async def get_fleet(self, ask: toolset_arguments.GetFleet, call: ToolCall) -> fleet_answer.FleetReply:
        """See services.fleet_look."""
        from slurm_agent_tools.services import fleet_look

        return await fleet_look.get_fleet(call.context, ask)


_Box = TypeVar("_Box", bound=Toolbox)


@asynccontextmanager
async def closed_after(toolbox: _Box) -> AsyncIterator[_Box]:
    """Use a toolbox, and close it however that ends: by Ctrl-C too."""
    try:
        yield toolbox
    finally:
        with anyio.CancelScope(shield=True):
            await toolbox.close()
