"""The core: one async method per tool, called by MCP and CLI alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from slurm_agent_tools import catalogue, logs, replies
from slurm_agent_tools.config import Settings
from slurm_agent_tools.toolbox import analyze, cancel, records, scripts, status, submit, wait
from slurm_agent_tools.toolbox.approval import Consult
from slurm_agent_tools.toolbox.desk import Caller, Desk, Progress, load_policy_for, open_desk

__all__ = ["Caller", "Desk", "Progress", "Toolbox", "load_policy_for"]
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, with which policy, and where progress goes."""

    desk: Desk
    caller: Caller
    progress: Progress | None = None
    consult: Consult | None = None


class Toolbox:
    """The nine tools over one desk. Refusals are replies; failures are AgentToolsError."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    @classmethod
    def open(cls, settings: Settings) -> Toolbox:
        """The tools for the cluster and project that the settings name. Raises ConfigError and StorageError."""
        return cls(open_desk(settings))

    async def close(self) -> None:
        """Close the ledger."""
        await self.desk.db(self.desk.store.close)

    async def call(
        self,
        name: str,
        ask: catalogue.Ask,
        *,
        caller: Caller | None = None,
        progress: Progress | None = None,
        consult: Consult | None = None,
    ) -> replies.Reply:
        """Run one tool by its name in the catalogue, under one request id. `consult` asks the person at the client."""
        logs.begin_request(name)
        context = Call(await self.desk.current(), caller or Caller(), progress, consult)
        _log.info("request", client=context.caller.client, face=context.caller.face)
        method: Callable[[catalogue.Ask, Call], Awaitable[replies.Reply]] = getattr(self, name)
        reply = await method(ask, context)
        _log.info("answer", status=reply.status)
        return reply

    async def get_status(self, ask: catalogue.GetStatus, call: Call) -> replies.StatusReply:
        """See toolbox.status."""
        return await status.get_status(call.desk, ask, call.caller)

    async def validate_config(self, ask: catalogue.ValidateConfig, call: Call) -> replies.ValidateReply:
        """See toolbox.scripts."""
        return await scripts.validate_config(call.desk, ask)

    async def generate_script(self, ask: catalogue.GenerateScript, call: Call) -> replies.GenerateReply:
        """See toolbox.scripts."""
        return await scripts.generate_script(call.desk, ask, call.caller)

    async def submit_job(self, ask: catalogue.SubmitJob, call: Call) -> replies.SubmitReply:
        """See toolbox.submit."""
        return await submit.submit_job(call.desk, ask, call.caller, call.consult)

    async def wait_for_job(self, ask: catalogue.WaitForJob, call: Call) -> replies.WaitReply:
        """See toolbox.wait."""
        return await wait.wait_for_job(call.desk, ask, call.caller, call.progress)

    async def analyze_log(self, ask: catalogue.AnalyzeLog, call: Call) -> replies.AnalyzeReply:
        """See toolbox.analyze."""
        return await analyze.analyze_log(call.desk, ask, call.caller)

    async def save_result(self, ask: catalogue.SaveResult, call: Call) -> replies.SaveReply:
        """See toolbox.records."""
        return await records.save_result(call.desk, ask, call.caller)

    async def compare_results(self, ask: catalogue.CompareResults, call: Call) -> replies.CompareReply:
        """See toolbox.records."""
        return await records.compare_results(call.desk, ask)

    async def cancel_job(self, ask: catalogue.CancelJob, call: Call) -> replies.CancelReply:
        """See toolbox.cancel."""
        return await cancel.cancel_job(call.desk, ask, call.caller)
