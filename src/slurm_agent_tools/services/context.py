"""What every tool needs at hand: settings, policy, Slurm, files, ledger, the decision log, and who is calling.

One context for each cluster, opened when a call first names it.
"""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, Protocol, TypeVar

import anyio.to_thread

from slurm_agent_tools.models.job import Job, token_in
from slurm_agent_tools.settings import LOCAL, ClusterSettings, Settings
from slurm_agent_tools.slurm.client import SlurmClient, Watcher
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import LATE, Owner, Submission
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport.base import Clock, Files, LoginEnvironment, Transport

if TYPE_CHECKING:
    from slurm_agent_tools.models.decision import Decision, RuleDecision
    from slurm_agent_tools.models.shapes import Verdict
    from slurm_agent_tools.policy.loading import LoadedPolicy


_QUIET = {"pass", "not_evaluated"}

Progress = Callable[[float, float | None, str], Awaitable[None]]

_P = ParamSpec("_P")

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Caller:
    """Which client asks, as it names itself; for the decision log only, never for a permission.

    `principal` is the name of the token by which it came over HTTP, else empty.
    """

    client: str = "cli"
    version: str = ""
    face: Literal["mcp", "cli"] = "cli"
    principal: str = ""


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """A project's files: `root` absolute, links resolved."""

    files: Files
    root: str


class SiteJudge(Protocol):
    """The site's service, which judges in place of this process. Raises SiteUnreachable, and what it tells."""

    @property
    def socket(self) -> str:
        """Where it listens."""
        ...

    async def ask(self, call: str, words: Mapping[str, Any], body: bytes = b"") -> Mapping[str, Any]:
        """Its answer."""
        ...

    async def tell(self, call: str, words: Mapping[str, Any]) -> None:
        """Without an answer."""
        ...


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """What the tools share for one cluster. `files` are the project's here, `transport.files` the cluster's.

    `notes`: what does not hold on it, for answers that depend on that. `refused`: what this user can do instead, where
    it refuses all of their jobs; else empty. `site`: who judges submissions, where a site's service does.
    """

    settings: Settings
    policy: LoadedPolicy
    slurm: SlurmClient
    watcher: Watcher
    files: Files
    store: Store
    clock: Clock
    owner: Owner
    transport: Transport
    environment: LoginEnvironment
    reload: Callable[[], LoadedPolicy] | None = None
    cluster: str = LOCAL
    notes: Callable[[], tuple[str, ...]] = tuple
    refused: Callable[[], str] = str
    site: SiteJudge | None = None

    async def current(self) -> ClusterContext:
        """The same with the policy as its files are now: a file that changed counts from this request on."""
        return self if self.reload is None else replace(self, policy=await self.db(self.reload))

    @property
    def project(self) -> str:
        """The project folder here, absolute, links resolved."""
        return self.owner.project

    @property
    def elsewhere(self) -> ClusterSettings | None:
        """How the cluster is reached, where it is behind an SSH host."""
        found = self.settings.clusters.get(self.cluster)
        return found if found is not None and found.host is not None else None

    @property
    def here(self) -> ProjectFiles:
        """The project as agents read and write it."""
        return ProjectFiles(self.files, self.owner.project)

    @property
    def there(self) -> ProjectFiles:
        """The project where its jobs run; the same as `here` unless the cluster is elsewhere."""
        return ProjectFiles(self.transport.files, self.environment.root)

    async def begun(self, *, keep: str | None = None) -> list[Submission]:
        """Submissions of which something is left to find out, but for that of the key `keep`."""
        items = await self.db(self.store.open_submissions, self.owner, lost_since=self.clock.now() - LATE)
        return [item for item in items if item.idempotency_key != keep]

    async def unsettled(self, mine: Sequence[Job]) -> tuple[Submission, ...]:
        """Open submissions that the queue does not show: they may still become jobs, so they keep their slots."""
        pending = await self.db(self.store.open_submissions, self.owner)
        if not pending:
            return ()
        shown = {job.job_id.base for job in mine}
        tokens = {token_in(job.comment) for job in mine}
        return tuple(item for item in pending if item.job_id not in shown and item.token not in tokens)

    def own_decision(self, verdict: Verdict, rules: Sequence[RuleDecision] = ()) -> Decision:
        """A decision that a tool takes by itself, in the policy's name."""
        from slurm_agent_tools.models.decision import Decision, PolicyUsed  # noqa: PLC0415 - get_status decides nothing

        used = PolicyUsed(self.policy.version, self.policy.sha256, tuple(self.policy.layers))
        return Decision(id=new_id(), verdict=verdict, policy=used, rules=tuple(rules))

    async def log_decision(self, caller: Caller, decision: Decision, tool: str, event: str, **facts: object) -> None:
        """One line in the decision log: who asked what, what was decided by which policy, and what came of it.

        On disk before this returns.
        """
        await self.db(self.store.log_decision, sanitize.document(self._entry(caller, decision, tool, event) | facts))

    async def log_decisions(
        self, caller: Caller, tool: str, event: str, decided: Sequence[tuple[Decision, Mapping[str, object]]]
    ) -> None:
        """A line for each of several decisions with its facts, written as one."""
        entries = [sanitize.document(self._entry(caller, one, tool, event) | dict(facts)) for one, facts in decided]
        await self.db(self.store.log_decision, *entries)

    def _entry(self, caller: Caller, decision: Decision, tool: str, event: str) -> dict[str, object]:
        approval = decision.approval
        return {
            "at": self.clock.now().isoformat(),
            "event": event,
            "decision": decision.id,
            "tool": tool,
            "verdict": decision.verdict,
            "policy": asdict(decision.policy),
            "rules": [
                {"id": rule.id, "outcome": rule.outcome, "message": rule.message}
                for rule in decision.rules
                if rule.outcome not in _QUIET
            ],
            "user": self.owner.user,
            "project": self.project,
            "cluster": self.owner.cluster,
            "host": platform.node(),
            "process": os.getpid(),
            "client": caller.client,
            "client_version": caller.version,
            "face": caller.face,
            "principal": caller.principal or None,
            "approval": None if approval is None else asdict(approval) | {"at": approval.at.isoformat()},
        }

    async def db(self, method: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run a ledger method off the event loop, to its end even when the caller goes away."""
        return await anyio.to_thread.run_sync(partial(method, *args, **kwargs), abandon_on_cancel=False)


def new_id() -> str:
    """A fresh id for a decision or a token: 16 hex digits."""
    return secrets.token_hex(8)


class ContextRegistry(Protocol):
    """Where a call finds its context."""

    async def at(self, cluster: str | None) -> ClusterContext:
        """The context of a cluster, None for the usual one, with the policy as it is now. Raises AgentToolsError."""
        ...

    async def home(self) -> ClusterContext:
        """The context of the usual cluster, or of the first where a call has to say which. Raises AgentToolsError."""
        ...

    async def close(self) -> None:
        """Let go of connections and files."""
        ...
