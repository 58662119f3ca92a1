"""What every tool needs at hand: settings, policy, Slurm, files, ledger, and who is calling."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, ParamSpec, TypeVar

import anyio.to_thread

from slurm_agent_tools.settings import ClusterSettings, Settings
from slurm_agent_tools.slurm.client import SlurmClient, Watcher
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.transport.base import Clock, Files, LoginEnvironment, Transport

if TYPE_CHECKING:
    from slurm_agent_tools.policy.loading import LoadedPolicy


LOCAL = "local"

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


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """What the tools share for one cluster. `files` are the project's here, `transport.files` the cluster's."""

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

    async def db(self, method: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run a ledger method off the event loop, to its end even when the caller goes away."""
        return await anyio.to_thread.run_sync(partial(method, *args, **kwargs), abandon_on_cancel=False)


def load_policy_for(settings: Settings) -> LoadedPolicy:
    """The policy in force in the settings' project. Raises ConfigError."""
    from slurm_agent_tools.policy import policy_files  # noqa: PLC0415 - a server answers before it reads its policy

    return policy_files.load_for(settings.project_root, settings.policy)


def new_id() -> str:
    """A fresh id for a decision or a token: 16 hex digits."""
    return secrets.token_hex(8)
