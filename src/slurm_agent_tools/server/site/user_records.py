"""What the service has of one user: ledger and decision log, a view of Slurm, and one lock.

Each user's records lie in a folder of their own, so that no question can be answered with another's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import anyio

from slurm_agent_tools.errors import ConfigError, StorageError
from slurm_agent_tools.policy.loading import Base, LoadedPolicy, load, shipped
from slurm_agent_tools.policy.policy_files import LARGEST
from slurm_agent_tools.server.site import site_config
from slurm_agent_tools.server.site.remote_files import RemoteFiles
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.settings import Settings, SlurmSettings
from slurm_agent_tools.slurm.answer_cache import KeptBackdrop
from slurm_agent_tools.slurm.client import SlurmClient, Watcher
from slurm_agent_tools.slurm.hidden_jobs import SlurmForUser
from slurm_agent_tools.slurm.questions import OfAll
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.transport.base import Clock, Files, LoginEnvironment, Runner
from slurm_agent_tools.transport.local import LocalRunner, LocalTransport, SystemClock
from slurm_agent_tools.transport.unix_peer import UnixUser

USERS = "users"
"""The folder of users below the service's state, each by number."""


@dataclass(frozen=True, slots=True)
class CallersTransport:
    """Slurm as the service asks it, and the caller's files as the caller's own program reads them."""

    key: str
    runner: Runner
    files: Files
    environment: LoginEnvironment

    async def login_environment(self) -> LoginEnvironment:
        """Who the caller is."""
        return self.environment

    async def close(self) -> None:
        """Nothing is held."""


@dataclass(frozen=True, slots=True)
class UserRecords:
    """One user's records and locks. `spent`: since when a ticket without a job is known to be spent.

    `tickets`: bytes that each user's tickets take, by number. `reading` is for what needs no look at the jobs: one
    user's scripts are read one after the other there too.
    """

    user: UnixUser
    store: Store
    slurm: SlurmClient
    folder: Path
    tickets: Mapping[int, int]
    spent: dict[str, datetime]
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    reading: anyio.Lock = field(default_factory=anyio.Lock)

    def check_room(self, mebibytes: int) -> None:
        """Raises StorageError where ledger, log and tickets of this user are larger than the site lets them be."""
        size = self.tickets.get(self.user.uid, 0)
        for path in self.folder.iterdir():
            with suppress(FileNotFoundError):  # a journal of the ledger comes and goes
                size += path.lstat().st_size
        if size > mebibytes * 2**20:
            problem = f"the service keeps {size // 2**20} MiB of you, more than {mebibytes} (state_mebibytes)"
            hint = f"An administrator stops the service and moves {self.folder} away, or raises the limit in site.toml."
            if self.tickets.get(self.user.uid, 0) > size // 2:
                hint = "Most of it are spent tickets with their scripts, which are kept for a day."
            raise StorageError(problem, hint=hint)


class RecordsByUser:
    """The records of all users, each opened by the first call."""

    def __init__(
        self,
        config: SiteConfig,
        *,
        runner: Runner | None = None,
        clock: Clock | None = None,
        policy: Callable[[], LoadedPolicy] | None = None,
    ) -> None:
        slurm = SlurmSettings(conf=config.slurm_conf, bin_dir=config.bin_dir)
        self._config, self.clock = config, clock or SystemClock()
        self._settings = Settings(project_root=config.state, state_dir=config.state, slurm=slurm)
        self._runner = runner or LocalRunner(self._settings)
        self._key = LocalTransport(self._settings, slurm).key
        self._users: dict[int, UserRecords] = {}  # the one that was used last is the last
        self._calls = Counter[int]()
        self._of_all: OfAll | None = None
        self._spent: dict[int, dict[str, datetime]] = {}
        self.tickets: dict[int, int] = {}
        self.policy = policy or self._policy
        self.policy()

    def _policy(self) -> LoadedPolicy:
        """The site's policy as its file is now. Raises ConfigError."""
        path = self._config.policy
        site_config.of_root_alone(path)
        try:
            return _understood(str(path), safe_open.read(path, LARGEST))
        except OSError as error:
            hint = "Write the site's policy: `slurm-agent-tools site check` says what is missing."
            raise ConfigError("policy", str(path), f"cannot be read: {error.strerror}", hint=hint) from error

    @contextmanager
    def of(self, user: UnixUser) -> Iterator[UserRecords]:
        """Those of one user, open as long as a call needs them; of the others the last few stay open too."""
        records = self._users.pop(user.uid, None) or self._opened(user)
        self._users[user.uid] = records
        self._calls[user.uid] += 1
        try:
            yield records
        finally:
            self._calls[user.uid] -= 1
            idle = [uid for uid in self._users if not self._calls[uid]]
            for uid in idle[: max(0, len(self._users) - _OPEN)]:
                del self._calls[uid]
                with suppress(StorageError):
                    self._users.pop(uid).store.close()

    def _opened(self, user: UnixUser) -> UserRecords:
        folder = self._config.state / USERS / str(user.uid)
        safe_open.make_private(str(folder))
        backdrop = KeptBackdrop(folder / "seen.json")
        slurm = SlurmForUser(
            self._runner, self.clock, self._settings.slurm, user=user.name, backdrop=backdrop, of_all=self._of_all
        )
        self._of_all = slurm.of_all
        spent = self._spent.setdefault(user.uid, {})
        return UserRecords(user, Store(folder, clock=self.clock), slurm, folder, self.tickets, spent)

    def context(self, records: UserRecords, project: str, files: RemoteFiles) -> ClusterContext:
        """What judging a request from one of the user's projects needs. The service's own folders hold no project."""
        environment = LoginEnvironment(records.user.name, project, _NO_ENVIRONMENT)
        return ClusterContext(
            settings=self._settings,
            policy=for_callers(self.policy()),
            slurm=records.slurm,
            watcher=Watcher(records.slurm, self.clock),
            files=files,
            store=records.store,
            clock=self.clock,
            owner=Owner(records.user.name, project, self._key),
            transport=CallersTransport(self._key, self._runner, files, environment),
            environment=environment,
        )

    def close(self) -> None:
        """Close all ledgers."""
        for records in self._users.values():
            records.store.close()


_NO_ENVIRONMENT: Mapping[str, str] = {}

_OPEN = 200
"""Users whose ledgers stay open: each takes three of the handles that a service may have."""


@lru_cache(maxsize=4)
def _understood(path: str, content: bytes) -> LoadedPolicy:
    """Read for every request, and understood again only when a byte of it changed."""
    return load(shipped(), base=Base("site", path, content))


def for_callers(loaded: LoadedPolicy) -> LoadedPolicy:
    """The policy without exceptions that name no user: which project and script it is, the caller says by itself."""
    named = tuple(item for item in loaded.policy.exceptions if item.users)
    if len(named) == len(loaded.policy.exceptions):
        return loaded
    return replace(loaded, policy=loaded.policy.model_copy(update={"exceptions": named}))


def state_of(config: SiteConfig) -> Path:
    """The service's own folder, made where it is not there."""
    safe_open.make_private(str(config.state))
    return config.state
