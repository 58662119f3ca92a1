"""The core: one async method per tool, called by MCP and CLI alike.

A tool's room is loaded by its first call: the command line calls one tool and ends.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import anyio

from slurm_agent_tools import catalogue, replies
from slurm_agent_tools.config import Settings
from slurm_agent_tools.logs import begin_request, get_logger
from slurm_agent_tools.slurm.runner import AskPerson, asker
from slurm_agent_tools.toolbox.desk import Caller, Desk, Progress, load_policy_for
from slurm_agent_tools.toolbox.desks import Desks, Opened

if TYPE_CHECKING:
    from slurm_agent_tools.toolbox.approval import Consult
    from slurm_agent_tools.toolbox.remembering import Remembering
    from slurm_agent_tools.toolbox.views import Body

__all__ = ["Caller", "Desk", "Progress", "Toolbox", "load_policy_for"]
_log = get_logger()


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, with which policy, and where progress goes."""

    desk: Desk
    caller: Caller
    progress: Progress | None = None
    consult: Consult | None = None


class Toolbox:
    """The nine tools over the desks of the clusters. Refusals are replies; failures are AgentToolsError."""

    def __init__(self, desks: Desks, memory: Remembering | None = None) -> None:
        self.desks, self.memory = desks, memory

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """The tools for the clusters and the project that the settings name; each is opened by its first call.

        Raises ConfigError.
        """
        memory = None
        if settings.memory.on:
            from slurm_agent_tools.toolbox.remembering import Remembering

            memory = Remembering(settings.memory)
        return cls(Opened(settings), memory)

    async def close(self) -> None:
        """Close the ledger and every connection."""
        await self.desks.close()

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
        ask: catalogue.Ask,
        *,
        caller: Caller | None = None,
        progress: Progress | None = None,
        consult: Consult | None = None,
        asked: AskPerson | None = None,
    ) -> replies.Reply:
        """Run one tool by its name in the catalogue, under one request id.

        `consult` asks the person at the client for a yes, `asked` for what a login node wants to know.
        """
        begin_request(name)
        asker.set(asked)
        context = Call(await self.desks.at(ask.cluster), caller or Caller(), progress, consult)
        _log.info("request", client=context.caller.client, face=context.caller.face)
        method: Callable[[catalogue.Ask, Call], Awaitable[replies.Reply]] = getattr(self, name)
        reply = await method(ask, context)
        if self.memory is not None:
            self.memory.note(context.desk)
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
        """What one resource holds, by its name in toolbox.views; `cluster` among the arguments says of which."""
        from slurm_agent_tools.toolbox import views

        begin_request(name)
        asker.set(asked)
        given = dict(arguments)
        desk = await self.desks.at(given.pop("cluster", None))
        _log.info("view", client=(caller or Caller()).client)
        body = await views.VIEWS[name](desk, **given)
        if self.memory is not None:
            self.memory.note(desk)
        return body

    async def complete(self, kind: str, typed: str, *, cluster: str | None = None) -> tuple[list[str], int]:
        """What may stand for an argument of this kind, and how much there is; nothing where it cannot be told."""
        from slurm_agent_tools.toolbox import completing

        begin_request("complete")
        asker.set(None)
        return await completing.at(self.desks, cluster, kind, typed)

    async def get_status(self, ask: catalogue.GetStatus, call: Call) -> replies.StatusReply:
        """See toolbox.status."""
        from slurm_agent_tools.toolbox import status

        return await status.get_status(call.desk, ask, call.caller)

    async def validate_config(self, ask: catalogue.ValidateConfig, call: Call) -> replies.ValidateReply:
        """See toolbox.scripts."""
        from slurm_agent_tools.toolbox import scripts

        return await scripts.validate_config(call.desk, ask)

    async def generate_script(self, ask: catalogue.GenerateScript, call: Call) -> replies.GenerateReply:
        """See toolbox.scripts."""
        from slurm_agent_tools.toolbox import scripts

        return await scripts.generate_script(call.desk, ask, call.caller)

    async def submit_job(self, ask: catalogue.SubmitJob, call: Call) -> replies.SubmitReply:
        """See toolbox.submit."""
        from slurm_agent_tools.toolbox import submit

        return await submit.submit_job(call.desk, ask, call.caller, call.consult)

    async def wait_for_job(self, ask: catalogue.WaitForJob, call: Call) -> replies.WaitReply:
        """See toolbox.wait."""
        from slurm_agent_tools.toolbox import wait

        return await wait.wait_for_job(call.desk, ask, call.caller, call.progress)

    async def analyze_log(self, ask: catalogue.AnalyzeLog, call: Call) -> replies.AnalyzeReply:
        """See toolbox.analyze."""
        from slurm_agent_tools.toolbox import analyze

        return await analyze.analyze_log(call.desk, ask, call.caller)

    async def save_result(self, ask: catalogue.SaveResult, call: Call) -> replies.SaveReply:
        """See toolbox.records."""
        from slurm_agent_tools.toolbox import records

        return await records.save_result(call.desk, ask, call.caller)

    async def compare_results(self, ask: catalogue.CompareResults, call: Call) -> replies.CompareReply:
        """See toolbox.records."""
        from slurm_agent_tools.toolbox import records

        return await records.compare_results(call.desk, ask)

    async def cancel_job(self, ask: catalogue.CancelJob, call: Call) -> replies.CancelReply:
        """See toolbox.cancel."""
        from slurm_agent_tools.toolbox import cancel

        return await cancel.cancel_job(call.desk, ask, call.caller)
