"""One context for each cluster of the settings, opened when a call first names it; and where the ledger lies."""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread

from slurm_agent_tools.errors import ConfigError, InputError, SlurmError, SlurmUnreachable
from slurm_agent_tools.services.context import ClusterContext, ContextRegistry, SiteJudge
from slurm_agent_tools.settings import LOCAL, ClusterSettings, Settings, SlurmSettings, with_workstation
from slurm_agent_tools.settings.workstation_place import NAME as WORKSTATION
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, KeptBackdrop, ask_all
from slurm_agent_tools.slurm.client import SlurmClient, Watcher
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.store.ledger_location import LedgerFolder, anchor, choose, register
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.text import log_events
from slurm_agent_tools.transport.base import Clock, Completed, Files, LoginEnvironment, OnOutput, Runner, Transport
from slurm_agent_tools.transport.local import LocalFiles, LocalTransport, SystemClock, user_name

if TYPE_CHECKING:
    from slurm_agent_tools.policy.loading import LoadedPolicy

_SITE_SECONDS = 60.0

_log = log_events.get_logger()


class OpenedContexts:
    """ContextRegistry of the clusters in the settings. Nothing is read or connected before a call needs it."""

    def __init__(self, settings: Settings, places: Mapping[str, Transport] | None = None) -> None:
        chosen_cluster(settings, None if settings.clusters else LOCAL)
        self.settings = settings
        self._clock = SystemClock()
        self._ledger = anyio.Lock()
        self._locks: dict[str, anyio.Lock] = {}
        self._store: Store | None = None
        self._places: dict[str, Transport] = {**(places or {})}
        self._contexts: dict[str, ClusterContext] = {}
        self._site_read: dict[str, float] = {}

    async def at(self, cluster: str | None) -> ClusterContext:
        """See ContextRegistry. A cluster that does not answer has a context too: what needs no Slurm goes on."""
        self.settings = with_workstation(self.settings)  # one may have been brought up since
        name = chosen_cluster(self.settings, cluster)
        if name is None:
            raise InputError("cluster", cluster, "is needed: several are configured", hint=_named(self.settings))
        context = self._contexts.get(name)
        if context is None:
            async with self._locks.setdefault(name, anyio.Lock()):  # a cluster that is away holds up no other
                context = self._contexts.get(name) or await self._open(name)
        return await (await self._with_site(name, context)).current()

    async def home(self) -> ClusterContext:
        """See ContextRegistry."""
        self.settings = with_workstation(self.settings)
        return await self.at(chosen_cluster(self.settings, None) or next(iter(self.settings.clusters)))

    async def close(self) -> None:
        """See ContextRegistry."""
        for name, context in self._contexts.items():
            _log.info("slurm calls", cluster=name, calls=dict(context.slurm.calls))
        for place in self._places.values():
            await place.close()
        if self._store is not None:
            await anyio.to_thread.run_sync(self._store.close)

    def place(self, name: str) -> Transport:
        """The place of a cluster; nothing is connected yet."""
        if name not in self._places:
            self._places[name] = open_transport(self.settings, name)
        return self._places[name]

    async def _open(self, name: str) -> ClusterContext:
        """What needs no answer from elsewhere is made ready while one is waited for."""
        place, project = self.place(name), str(self.settings.project_root.resolve())
        ledger = ConcurrentQuestion(self._opened_ledger)
        reached = ConcurrentQuestion(partial(self._reached, name, place))
        if _elsewhere(self.settings, name):
            await ask_all(reached, ledger, ConcurrentQuestion(partial(self._made_ready, place)))
        else:
            await ledger.run()
            await reached.run()
        ledger.value()
        try:
            environment, site = reached.value()
        except SlurmError as error:
            away = UnreachableTransport(place.key, error, project)
            return await self._context(name, away, await away.login_environment(), project, None)
        context = await self._context(name, place, environment, project, site)
        self._contexts[name] = context
        return context

    async def _opened_ledger(self) -> None:
        async with self._ledger:
            if self._store is None:
                self._store = await anyio.to_thread.run_sync(open_store, self.settings, self._clock)

    async def _reached(self, name: str, place: Transport) -> tuple[LoginEnvironment, tuple[str, bytes] | None]:
        """What the cluster says of itself, and the site policy of one elsewhere."""
        environment = await place.login_environment()
        if not _elsewhere(self.settings, name):
            return environment, None
        site, self._site_read[name] = await _site(place), time.monotonic()
        return environment, site

    async def _made_ready(self, place: Transport) -> None:
        """Find out under which name a cluster is known, and read the policy's files here: both are kept."""

        def both() -> None:
            _ = place.key
            self._reload(None)()

        await anyio.to_thread.run_sync(both)

    async def _context(
        self, name: str, place: Transport, environment: LoginEnvironment, project: str, site: tuple[str, bytes] | None
    ) -> ClusterContext:
        if self._store is None:
            raise RuntimeError("the ledger is opened first")
        slurm = SlurmClient(
            place.runner,
            self._clock,
            _slurm(self.settings, name),
            user=environment.user,
            backdrop=KeptBackdrop(_backdrop_file(self._store.folder, place.key)),
        )
        reload = self._reload(site)
        return ClusterContext(
            settings=self.settings,
            policy=await anyio.to_thread.run_sync(reload),
            slurm=slurm,
            watcher=Watcher(slurm, self._clock),
            files=LocalFiles(),
            store=self._store,
            clock=self._clock,
            owner=Owner(user_name(), project, place.key),
            transport=place,
            environment=environment,
            reload=reload,
            cluster=name,
            notes=place.notes if isinstance(place, LocalTransport) else tuple,
            refused=place.refused if isinstance(place, LocalTransport) else str,
            site=self._judge(name, project),
        )

    def _judge(self, name: str, project: str) -> SiteJudge | None:
        """The site's service judges for its own cluster alone, which is this machine's."""
        socket = self.settings.site_socket
        if socket is None or name in self.settings.clusters:
            return None
        from slurm_agent_tools.transport.site_socket import SiteClient  # noqa: PLC0415 - where a site has a service

        return SiteClient(str(socket), project, LocalFiles())

    def _reload(self, site: tuple[str, bytes] | None) -> Callable[[], LoadedPolicy]:
        from slurm_agent_tools.policy import policy_files  # noqa: PLC0415 - a server answers before it reads its policy

        return partial(policy_files.load_for, self.settings.project_root, self.settings.policy, site=site)

    async def _with_site(self, name: str, context: ClusterContext) -> ClusterContext:
        """The same with the site policy of a cluster elsewhere as it is there now, or was a minute ago."""
        read = self._site_read.get(name)
        if name not in self._contexts or read is None or time.monotonic() - read < _SITE_SECONDS:
            return context
        try:
            site = await _site(context.transport)
        except SlurmUnreachable:  # then nothing can be sent either
            return context
        self._site_read[name] = time.monotonic()
        self._contexts[name] = replace(context, reload=self._reload(site))
        return self._contexts[name]


@asynccontextmanager
async def one_cluster(registry: ContextRegistry, cluster: str | None) -> AsyncIterator[ClusterContext]:
    """The context of the one cluster that a command is about; at the end all is closed. Raises AgentToolsError."""
    try:
        yield await registry.at(cluster)
    finally:
        await registry.close()


@dataclass(frozen=True, slots=True)
class UnreachableTransport:
    """The place of a cluster that cannot be reached: every command says why; for its files stand those here."""

    key: str
    error: SlurmError
    project: str

    @property
    def runner(self) -> Runner:
        """Runs nothing."""
        return self

    @property
    def files(self) -> Files:
        """The project as it is here, the best that is known of it."""
        return LocalFiles()

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",  # noqa: ARG002 - the seam's signature
        env: Mapping[str, str] | None = None,  # noqa: ARG002
        cwd: str | None = None,  # noqa: ARG002
        timeout: float = 10.0,  # noqa: ARG002, ASYNC109
        max_output: int = 0,  # noqa: ARG002
        on_output: OnOutput | None = None,  # noqa: ARG002
    ) -> Completed:
        """Raises SlurmUnreachable: surely nothing was sent."""
        raise SlurmUnreachable(f"{argv[0]} was not run: {self.error.message}", hint=self.error.hint)

    async def login_environment(self) -> LoginEnvironment:
        """Nobody, as long as it is not known who."""
        return LoginEnvironment("", self.project, {})

    async def close(self) -> None:
        """Nothing is held."""


def chosen_cluster(settings: Settings, cluster: str | None) -> str | None:
    """The name that a call means; None where it has to say which. Raises InputError and ConfigError."""
    wanted = cluster or settings.cluster
    if wanted is None:
        names = list(settings.clusters) or [LOCAL]
        return names[0] if len(names) == 1 else None
    if wanted in settings.clusters or wanted == LOCAL:
        return wanted
    kind = InputError if cluster else ConfigError
    if wanted == WORKSTATION:
        hint = "Bring this machine up as one: slurm-agent-tools workstation up"
        raise kind("cluster", wanted, "is not there: this machine was never brought up as a cluster", hint=hint)
    raise kind("cluster", wanted, "is no cluster of the settings", hint=_named(settings))


def _named(settings: Settings) -> str:
    names = ", ".join(sorted({*settings.clusters, LOCAL}))
    known = f"Known clusters: {names}. `{LOCAL}` is this machine's Slurm, whatever it calls itself."
    return f"{known} More are [clusters.NAME] in ~/.config/slurm-agent-tools/settings.toml."


def open_transport(settings: Settings, name: str) -> Transport:
    """This machine, or a login node over SSH; the SSH library is only loaded for that."""
    cluster = settings.clusters.get(name, ClusterSettings(slurm=settings.slurm))
    if cluster.host is None and name == WORKSTATION:
        from slurm_agent_tools.devcluster import workstation  # noqa: PLC0415 - most machines are none

        return workstation.WorkstationTransport(settings, cluster.slurm)
    if cluster.host is None:
        return LocalTransport(settings, cluster.slurm)
    from slurm_agent_tools.transport.ssh.remote import SshTransport  # noqa: PLC0415 - takes 290 ms to load

    return SshTransport(name, cluster)


def _slurm(settings: Settings, name: str) -> SlurmSettings:
    found = settings.clusters.get(name)
    return settings.slurm if found is None else found.slurm


def _backdrop_file(folder: Path, key: str) -> Path:
    return folder / f"seen-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _elsewhere(settings: Settings, name: str) -> bool:
    return name in settings.clusters and settings.clusters[name].host is not None


async def _site(place: Transport) -> tuple[str, bytes] | None:
    """The site policy of a cluster elsewhere. Raises StorageError and ConfigError for one that cannot be used."""
    from slurm_agent_tools.policy import policy_files  # noqa: PLC0415

    path = policy_files.SITE.as_posix()
    if (found := await place.files.stat(path)) is None:
        return None
    shown = f"{place.key}:{path}"
    places = (found, await place.files.stat(policy_files.SITE.parent.as_posix()))
    policy_files.of_root_alone([(None, None) if one is None else (one.uid, one.mode) for one in places], shown)
    content = await place.files.read(path, size=policy_files.LARGEST + 1)
    return None if content is None else (shown, content)


def open_store(settings: Settings, clock: Clock | None = None) -> Store:
    """The ledger in the settings' state folder, which knows what this user's other ledgers know."""
    lies = ledger_folder(settings)
    common = anchor(lies.folder)
    return Store(lies.folder, place=common, others=register(common, lies.folder), note=lies.note, clock=clock)


def ledger_folder(settings: Settings) -> LedgerFolder:
    """The state folder, or the local one that stands for it. Raises ConfigError."""
    return choose(settings.state_dir, given="state_dir" in settings.model_fields_set)


def load_policy_for(settings: Settings) -> LoadedPolicy:
    """The policy in force in the settings' project. Raises ConfigError."""
    from slurm_agent_tools.policy import policy_files  # noqa: PLC0415 - a server answers before it reads its policy

    return policy_files.load_for(settings.project_root, settings.policy)
