"""What every tool needs at hand: settings, policy, Slurm, files, ledger, and who is calling."""

from __future__ import annotations

import getpass
import os
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

import anyio.to_thread

from slurm_agent_tools.config import Settings
from slurm_agent_tools.ledger.anchor import anchor, register
from slurm_agent_tools.ledger.records import Owner
from slurm_agent_tools.ledger.store import Store
from slurm_agent_tools.policy import files
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.slurm.local import LocalFiles, LocalRunner, SystemClock
from slurm_agent_tools.slurm.runner import Clock, Files
from slurm_agent_tools.slurm.watcher import Watcher

Progress = Callable[[float, float | None, str], Awaitable[None]]
_P = ParamSpec("_P")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Caller:
    """Which client asks, as it names itself; for the decision log only, never for a permission."""

    client: str = "cli"
    version: str = ""
    face: Literal["mcp", "cli"] = "cli"


@dataclass(frozen=True, slots=True)
class Desk:
    """The tools' common ground. One per process."""

    settings: Settings
    policy: LoadedPolicy
    slurm: SlurmClient
    watcher: Watcher
    files: Files
    store: Store
    clock: Clock
    owner: Owner
    reload: Callable[[], LoadedPolicy] | None = None

    async def current(self) -> Desk:
        """The same with the policy as its files are now: a file that changed counts from this request on."""
        return self if self.reload is None else replace(self, policy=await self.db(self.reload))

    @property
    def project(self) -> str:
        """The project folder, absolute, links resolved."""
        return self.owner.project

    async def db(self, method: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Run a ledger method off the event loop, to its end even when the caller goes away."""
        return await anyio.to_thread.run_sync(partial(method, *args, **kwargs), abandon_on_cancel=False)


def open_desk(settings: Settings) -> Desk:
    """Everything for the local cluster. Raises ConfigError and StorageError."""
    clock = SystemClock()
    user = user_name()
    slurm = SlurmClient(LocalRunner(settings), clock, settings.slurm, user=user)
    owner = Owner(user, str(settings.project_root.resolve()), _cluster_key(settings))
    return Desk(
        settings=settings,
        policy=load_policy_for(settings),
        slurm=slurm,
        watcher=Watcher(slurm, clock),
        files=LocalFiles(),
        store=open_store(settings),
        clock=clock,
        owner=owner,
        reload=partial(load_policy_for, settings),
    )


def open_store(settings: Settings) -> Store:
    """The ledger in the settings' state folder, which knows what this user's other ledgers know."""
    place = anchor(settings.state_dir)
    return Store(settings.state_dir, place=place, others=register(place, settings.state_dir))


def user_name() -> str:
    """The process's own user, as Slurm names him; the environment's USER and LOGNAME are only words."""
    try:
        import pwd  # noqa: PLC0415 - not everywhere
    except ImportError:
        return getpass.getuser()
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def load_policy_for(settings: Settings) -> LoadedPolicy:
    """The policy in force in the settings' project. Raises ConfigError."""
    return files.load_for(settings.project_root, settings.policy)


def new_id() -> str:
    """A fresh id for a decision or a token: 16 hex digits."""
    return secrets.token_hex(8)


def _cluster_key(settings: Settings) -> str:
    """The cluster by its configuration file, which is known also while Slurm does not answer."""
    named = settings.slurm.conf or os.environ.get("SLURM_CONF")
    return str(Path(named).resolve()) if named else "default"
