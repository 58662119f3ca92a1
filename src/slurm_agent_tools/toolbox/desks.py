"""One desk per cluster, opened when a call first names it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.to_thread

from slurm_agent_tools import logs
from slurm_agent_tools.config import ClusterSettings, Settings, SlurmSettings
from slurm_agent_tools.errors import ConfigError, InputError, SlurmError, SlurmUnreachable
from slurm_agent_tools.ledger.anchor import anchor, register
from slurm_agent_tools.ledger.place import Chosen, choose
from slurm_agent_tools.ledger.records import Owner
from slurm_agent_tools.ledger.store import Store
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.slurm.local import LocalFiles, LocalPlace, SystemClock, user_name
from slurm_agent_tools.slurm.runner import Completed, Files, Place, Runner, Surroundings
from slurm_agent_tools.slurm.watcher import Watcher
from slurm_agent_tools.toolbox.desk import LOCAL, Desk

if TYPE_CHECKING:
    from slurm_agent_tools.policy.loading import LoadedPolicy

_SITE_SECONDS = 60.0
_log = logs.get_logger()


class Desks(Protocol):
    """Where a call finds its desk."""

    async def at(self, cluster: str | None) -> Desk:
        """The desk of a cluster, None for the usual one, with the policy as it is now. Raises AgentToolsError."""
        ...

    async def close(self) -> None:
        """Let go of connections and files."""
        ...


class Opened:
    """Desks of the clusters in the settings. Nothing is read or connected before a call needs it."""

    def __init__(self, settings: Settings) -> None:
        chosen(settings, None if settings.clusters else LOCAL)
        self.settings = settings
        self._clock = SystemClock()
        self._ledger = anyio.Lock()
        self._locks: dict[str, anyio.Lock] = {}
        self._store: Store | None = None
        self._places: dict[str, Place] = {}
        self._desks: dict[str, Desk] = {}
        self._site_read: dict[str, float] = {}

    async def at(self, cluster: str | None) -> Desk:
        """See Desks. A cluster that does not answer has a desk too: what needs no Slurm goes on."""
        name = chosen(self.settings, cluster)
        if name is None:
            raise InputError("cluster", cluster, "is needed: several are configured", hint=_named(self.settings))
        desk = self._desks.get(name)
        if desk is None:
            async with self._locks.setdefault(name, anyio.Lock()):  # a cluster that is away holds up no other
                desk = self._desks.get(name) or await self._open(name)
        return await (await self._with_site(name, desk)).current()

    async def close(self) -> None:
        """See Desks."""
        for name, desk in self._desks.items():
            _log.info("slurm calls", cluster=name, calls=dict(desk.slurm.calls))
        for place in self._places.values():
            await place.close()
        if self._store is not None:
            await anyio.to_thread.run_sync(self._store.close)

    def place(self, name: str) -> Place:
        """The place of a cluster; nothing is connected yet."""
        if name not in self._places:
            self._places[name] = make_place(self.settings, name)
        return self._places[name]

    async def _open(self, name: str) -> Desk:
        place = self.place(name)
        async with self._ledger:
            if self._store is None:
                self._store = await anyio.to_thread.run_sync(open_store, self.settings)
        project = str(self.settings.project_root.resolve())
        try:
            around = await place.surroundings()
            site = None
            if _elsewhere(self.settings, name):
                site, self._site_read[name] = await _site(place), time.monotonic()
        except SlurmError as error:
            away = Away(place.key, error, project)
            return await self._desk(name, away, await away.surroundings(), project, None)
        desk = await self._desk(name, place, around, project, site)
        self._desks[name] = desk
        return desk

    async def _desk(
        self, name: str, place: Place, around: Surroundings, project: str, site: tuple[str, bytes] | None
    ) -> Desk:
        if self._store is None:
            raise RuntimeError("the ledger is opened first")
        slurm = SlurmClient(place.runner, self._clock, _slurm(self.settings, name), user=around.user)
        reload = self._reload(site)
        return Desk(
            settings=self.settings,
            policy=await anyio.to_thread.run_sync(reload),
            slurm=slurm,
            watcher=Watcher(slurm, self._clock),
            files=LocalFiles(),
            store=self._store,
            clock=self._clock,
            owner=Owner(user_name(), project, place.key),
            place=place,
            around=around,
            reload=reload,
            cluster=name,
        )

    def _reload(self, site: tuple[str, bytes] | None) -> Callable[[], LoadedPolicy]:
        from slurm_agent_tools.policy import files  # noqa: PLC0415 - a server answers before it reads its policy

        return partial(files.load_for, self.settings.project_root, self.settings.policy, site=site)

    async def _with_site(self, name: str, desk: Desk) -> Desk:
        """The same with the site policy of a cluster elsewhere as it is there now, or was a minute ago."""
        read = self._site_read.get(name)
        if name not in self._desks or read is None or time.monotonic() - read < _SITE_SECONDS:
            return desk
        try:
            site = await _site(desk.place)
        except SlurmUnreachable:  # then nothing can be sent either
            return desk
        self._site_read[name] = time.monotonic()
        self._desks[name] = replace(desk, reload=self._reload(site))
        return self._desks[name]


@dataclass(frozen=True, slots=True)
class Away:
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
    ) -> Completed:
        """Raises SlurmUnreachable: surely nothing was sent."""
        raise SlurmUnreachable(f"{argv[0]} was not run: {self.error.message}", hint=self.error.hint)

    async def surroundings(self) -> Surroundings:
        """Nobody, as long as it is not known who."""
        return Surroundings("", self.project, {})

    async def close(self) -> None:
        """Nothing is held."""


def chosen(settings: Settings, cluster: str | None) -> str | None:
    """The name that a call means; None where it has to say which. Raises InputError and ConfigError."""
    wanted = cluster or settings.cluster
    if wanted is None:
        names = list(settings.clusters) or [LOCAL]
        return names[0] if len(names) == 1 else None
    if wanted in settings.clusters or wanted == LOCAL:
        return wanted
    kind = InputError if cluster else ConfigError
    raise kind("cluster", wanted, "is no cluster of the settings", hint=_named(settings))


def _named(settings: Settings) -> str:
    names = ", ".join(sorted({*settings.clusters, LOCAL}))
    return f"Known clusters: {names}. More are written as [clusters.NAME] in slurm-agent.toml."


def make_place(settings: Settings, name: str) -> Place:
    """This machine, or a login node over SSH; the SSH library is only loaded for that."""
    cluster = settings.clusters.get(name, ClusterSettings(slurm=settings.slurm))
    if cluster.host is None:
        return LocalPlace(settings, cluster.slurm)
    from slurm_agent_tools.slurm.ssh.place import SshPlace  # noqa: PLC0415 - takes 290 ms to load

    return SshPlace(name, cluster)


def _slurm(settings: Settings, name: str) -> SlurmSettings:
    found = settings.clusters.get(name)
    return settings.slurm if found is None else found.slurm


def _elsewhere(settings: Settings, name: str) -> bool:
    return name in settings.clusters and settings.clusters[name].host is not None


async def _site(place: Place) -> tuple[str, bytes] | None:
    """The site policy of a cluster elsewhere. Raises StorageError and ConfigError for one that cannot be used."""
    from slurm_agent_tools.policy import files  # noqa: PLC0415

    path = files.SITE.as_posix()
    if (found := await place.files.stat(path)) is None:
        return None
    shown = f"{place.key}:{path}"
    places = (found, await place.files.stat(files.SITE.parent.as_posix()))
    files.of_root_alone([(None, None) if one is None else (one.uid, one.mode) for one in places], shown)
    content = await place.files.read(path)
    return None if content is None else (shown, content)


def open_store(settings: Settings) -> Store:
    """The ledger in the settings' state folder, which knows what this user's other ledgers know."""
    lies = ledger_place(settings)
    common = anchor(lies.folder)
    return Store(lies.folder, place=common, others=register(common, lies.folder), note=lies.note)


def ledger_place(settings: Settings) -> Chosen:
    """The state folder, or the local one that stands for it. Raises ConfigError."""
    return choose(settings.state_dir, given="state_dir" in settings.model_fields_set)
