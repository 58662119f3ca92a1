"""What every tool needs at hand: settings, policy, Slurm, files, ledger, and who is calling."""

from __future__ import annotations

import getpass
import os
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, ParamSpec, TypeVar

import anyio.to_thread

from slurm_agent_tools.config import Settings
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.ledger.records import Owner
from slurm_agent_tools.ledger.store import Store
from slurm_agent_tools.policy.document import LoadedPolicy, load, shipped
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
    user = getpass.getuser()
    slurm = SlurmClient(LocalRunner(settings), clock, settings.slurm, user=user)
    owner = Owner(user, str(settings.project_root.resolve()), _cluster_key(settings))
    return Desk(
        settings=settings,
        policy=load_policy_for(settings),
        slurm=slurm,
        watcher=Watcher(slurm, clock),
        files=LocalFiles(),
        store=Store(settings.state_dir),
        clock=clock,
        owner=owner,
    )


def load_policy_for(settings: Settings) -> LoadedPolicy:
    """The shipped policy, tightened by the project's policies/*.yaml and the file that the settings name."""
    paths = sorted((settings.project_root / "policies").glob("*.yaml"))
    if settings.policy is not None:
        paths.append(settings.policy)
    return load(shipped(), [(str(path), _read(path)) for path in paths])


def new_id() -> str:
    """A fresh id for a decision or a token: 16 hex digits."""
    return secrets.token_hex(8)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            "policy", str(path), f"cannot be read: {error.strerror}", hint="Mend or remove it."
        ) from error


def _cluster_key(settings: Settings) -> str:
    """The cluster by its configuration file, which is known also while Slurm does not answer."""
    named = settings.slurm.conf or os.environ.get("SLURM_CONF")
    return str(Path(named).resolve()) if named else "default"
