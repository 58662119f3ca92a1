"""`site install` and `site remove`: shown first, done with --yes as root, and done twice the same as once."""

from __future__ import annotations

import os
import secrets
import shlex
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import anyio

from slurm_agent_tools.errors import AgentToolsError, ConfigError, StorageError
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.server.site import site_layout
from slurm_agent_tools.server.site.site_config import SERVICE, SiteConfig
from slurm_agent_tools.server.site.site_layout import ROOT, Owned, TargetSystem
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.transport import lua_check, site_files

_ENDING = 5.0
"""Seconds for what a service that was just stopped had asked of Slurm."""

_LOG = "decisions"
"""How the names of the files of the decision log begin."""


class Installation:
    """The service on one machine: what is there of it, and how it gets there and away."""

    def __init__(self, config: SiteConfig, place: Path, machine: TargetSystem) -> None:
        self.config, self.place, self.machine = config, place, machine

    def things(self) -> list[Owned]:
        """Every folder and file but the plugin, in the order in which they are made."""
        folders = site_layout.folders(self.config, self.place, self.machine)
        return folders + site_layout.files(self.config, self.place, self.machine)

    # --- what it would do ---------------------------------------------------------------------------------------------

    def plan(self, loaded: LoadedPolicy) -> Iterator[str]:
        """What `--yes` does, line by line. Raises ConfigError for what is in its way."""
        self.check_ways()
        there = self.machine.user(self.config.account) is not None
        yield "account"
        yield f"  {_word(there)} {self.config.account}: no login, no home, no group but its own"
        if not there:
            yield f"         {shlex.join(site_layout.account_line(self.config, self.machine))}"
        things = self.things()
        yield "folders"
        yield from (self._line(one) for one in things if one.text is None)
        yield "files"
        for one in things:
            if one.text is not None:
                yield self._line(one)
                if not one.secret and not self._same(one) and not (one.path == self.place and self.at(one).exists()):
                    yield from (f"         | {line}".rstrip() for line in one.text.splitlines())
        yield "the controller's plugin"
        plugin = site_layout.plugin(self.config, loaded)
        yield self._line(plugin)
        yield f"         policy {loaded.name}, version {loaded.version}, from {loaded.source}"
        yield f"         read it before: {shlex.join(site_layout.export_line(self.config))}"
        yield "systemd"
        yield from (f"  {line}" for line in self._started())

    def check_ways(self) -> None:
        """Raises ConfigError for what an administrator must decide before anything is made."""
        config, machine = self.config, self.machine
        found = machine.user(config.slurm_user)
        if found is None:
            hint = "Name SlurmUser of slurm.conf as slurm_user in site.toml."
            raise ConfigError("slurm_user", config.slurm_user, "is no account of this machine", hint=hint)
        account = machine.user(config.account)
        if account is not None and (account.pw_uid in {0, found.pw_uid} or not site_layout.no_login(account)):
            problem = f"is an account with number {account.pw_uid} and shell {account.pw_shell}"
            hint = "Name one as account in site.toml that does not exist yet: it is made without login."
            raise ConfigError("account", config.account, problem, hint=hint)
        if config.page_group is not None and machine.group(config.page_group) is None:
            hint = "Name the web server's group as page_group in site.toml, such as www-data."
            raise ConfigError("page_group", config.page_group, "is no group of this machine", hint=hint)
        self._check_folders()
        plugin = machine.at(config.plugin)
        if not plugin.parent.is_dir():
            hint = "Name the file beside the controller's slurm.conf as plugin in site.toml."
            raise ConfigError("plugin", str(config.plugin), "lies in no folder", hint=hint)
        if plugin.exists() and not site_layout.is_ours(plugin):
            hint = "Join the two by hand (the page for administrators says how), or move it away."
            raise ConfigError("plugin", str(config.plugin), "is a plugin that somebody else wrote", hint=hint)

    def _check_folders(self) -> None:
        """Raises ConfigError for a folder that others use: it would get another owner, and go away at the end."""
        for one in site_layout.folders(self.config, self.place, self.machine):
            path = self.at(one)
            if one.shared or not os.path.lexists(path) or self.right(one):
                continue
            found = path.lstat()
            account = self._uid(self.config.account)
            if not stat.S_ISDIR(found.st_mode) or (found.st_uid != account and any(path.iterdir())):
                hint = "Name a folder in site.toml that is there for nothing else."
                raise ConfigError(path.name, str(one.path), "is used by somebody else", hint=hint)

    def _started(self) -> list[str]:
        if site_layout.systemd_runs(self.config, self.machine):
            return [shlex.join(["systemctl", *words]) for words in _STARTS]
        return [
            "it does not run here: the units lie ready, and this line starts the service by hand",
            f"  {site_layout.by_hand(self.config, self.place)}",
        ]

    def at(self, one: Owned) -> Path:
        """Where a thing of that machine lies on this one."""
        return self.machine.at(one.path)

    def _line(self, one: Owned) -> str:
        return f"  {_word(self.right(one))} {one.path}  {one.rights}"

    def right(self, one: Owned) -> bool:
        """Whether it is there as it should be: whose, with which rights, with what in it."""
        try:
            found = self.at(one).lstat()
        except OSError:
            return False
        if one.shared:
            return stat.S_ISDIR(found.st_mode)
        kind = stat.S_ISDIR if one.text is None else stat.S_ISREG
        owner = (self._uid(one.user), self._gid(one.group))
        right = kind(found.st_mode) and (found.st_uid, found.st_gid) == owner
        return right and stat.S_IMODE(found.st_mode) == one.mode and self._same(one)

    def _same(self, one: Owned) -> bool:
        """Whether a file says what it should; site.toml is the administrator's, and a key is whatever it is."""
        if one.text is None or one.secret or one.path == self.place:
            return True
        try:
            return safe_open.read(self.at(one), site_files.LARGEST) == one.text.encode()
        except OSError:
            return False

    def _uid(self, name: str) -> int | None:
        found = self.machine.user(name)
        return 0 if name == ROOT else None if found is None else found.pw_uid

    def _gid(self, name: str) -> int | None:
        if name == ROOT or name.isdigit():
            return 0 if name == ROOT else int(name)
        return self.machine.group(name)

    # --- doing it -----------------------------------------------------------------------------------------------------

    def install(self, loaded: LoadedPolicy) -> Iterator[str]:
        """Make what is missing and mend what differs; a line for each change. Raises AgentToolsError."""
        self.check_ways()
        _as_root()
        if self.machine.user(self.config.account) is None:
            site_files.command(site_layout.account_line(self.config, self.machine))
            yield f"made    account {self.config.account}"
        changed = False
        for one in self.things():
            if not self.right(one):
                self._put(one)
                changed = True
                yield f"made    {one.path}  {one.rights}"
        self._check_keys()
        plugin = site_layout.plugin(self.config, loaded)
        if not self.right(plugin):
            tried = self._tried(plugin)
            self._put(plugin)
            changed = True
            yield f"made    {plugin.path}  {plugin.rights}, {tried}"
        if site_layout.systemd_runs(self.config, self.machine):
            for words in _STARTS if changed else _STARTS[1:]:
                site_files.command(["systemctl", *words])
        if not changed:
            yield "everything was there already"

    def _tried(self, plugin: Owned) -> str:
        """A plugin that does not load keeps the controller from starting, so a Lua of this machine loads it before."""
        if not self.machine.here and self.config.tokens == "hmac":
            return "not tried: its key lies on another machine"
        with tempfile.TemporaryDirectory() as folder:
            draft = Path(folder) / plugin.path.name
            draft.write_text(plugin.text or "", encoding="utf-8")
            by = anyio.run(lua_check.check, draft)
        return "not tried before, since no Lua is installed here" if by is None else f"{by} before"

    def _put(self, one: Owned) -> None:
        path = self.at(one)
        uid, gid = self._uid(one.user), self._gid(one.group)
        if uid is None or gid is None:
            raise StorageError(f"{one.path} must be of {one.user}:{one.group}, which this machine does not have")
        try:
            if one.text is None:
                site_files.put_folder(path, uid, gid, one.mode)
            elif (one.secret or one.path == self.place) and path.exists():
                site_files.put_folder(path, uid, gid, one.mode, os.O_RDONLY | os.O_NOFOLLOW)
            else:
                site_files.put_file(path, uid, gid, one.mode, (one.text or self._key()).encode())
        except OSError as error:
            raise StorageError(
                f"{one.path} could not be made: {error.strerror}", hint="Look at that folder."
            ) from error

    def _key(self) -> str:
        """The key that both sides share: that of the one that is there, else a new one."""
        for path in (self.machine.at(self.config.key), self.machine.at(self.config.controller_key)):
            with suppress(FileNotFoundError):
                return safe_open.read(path, site_files.LARGEST).decode()
        return secrets.token_hex(32) + "\n"

    def _check_keys(self) -> None:
        if self.config.tokens != "hmac":
            return
        first, second = (self.machine.at(path) for path in (self.config.key, self.config.controller_key))
        if safe_open.read(first, site_files.LARGEST) != safe_open.read(second, site_files.LARGEST):
            hint = f"Remove {self.config.controller_key} and run `site install --yes` again."
            raise ConfigError("controller_key", str(self.config.controller_key), "differs from key", hint=hint)

    # --- taking it away -----------------------------------------------------------------------------------------------

    def leftovers(self, *, keep_log: bool) -> list[Path]:
        """What `remove --yes` takes away, in its order; of folders those that are the account's."""
        both = [Installation(self.config.model_copy(update={"tokens": kind}), self.place, self.machine)
                for kind in ("files", "hmac")]  # fmt: skip
        made = [one for site in both for one in reversed(site.things())]
        paths = [one.path for one in made if not one.shared and (one.text is not None or self._is_its_own(one.path))]
        plugin = [self.config.plugin] if site_layout.is_ours(self.machine.at(self.config.plugin)) else []
        found = dict.fromkeys([*plugin, *site_layout.by_and_by(self.config), *paths])
        gone = [path for path in found if os.path.lexists(self.machine.at(path)) and path != self.place]
        if keep_log and self.config.state in gone and not self._others():
            gone.remove(self.config.state)
        return gone + ([self.place] if os.path.lexists(self.machine.at(self.place)) else [])

    def _is_its_own(self, path: Path) -> bool:
        """A folder of records that belongs to the account; the one of the socket goes where it is empty."""
        account = self._uid(self.config.account)
        with suppress(OSError):
            owner = self.machine.at(path).lstat().st_uid
            return owner == account and path in {self.config.state, self.config.tickets}
        return False

    def _logs(self) -> list[Path]:
        state = self.machine.at(self.config.state)
        return sorted(path for path in state.rglob(f"{_LOG}*") if path.is_file() and not path.is_symlink())

    def _others(self) -> bool:
        logs = self._logs()
        return any(path not in logs and not path.is_dir() for path in self.machine.at(self.config.state).rglob("*"))

    def remove(self, *, keep_log: bool) -> Iterator[str]:
        """Take it away; a line for each thing. Raises AgentToolsError where something still needs it."""
        _as_root()
        self.check_unused()
        if site_layout.systemd_runs(self.config, self.machine):
            for words in (["disable", "--now", f"{SERVICE}.socket", f"{SERVICE}.service"], ["daemon-reload"]):
                with suppress(AgentToolsError):  # units that were never enabled
                    site_files.command(["systemctl", *words])
        end = time.monotonic() + _ENDING
        while (running := self.processes()) and time.monotonic() < end:
            time.sleep(0.2)
        if running:
            hint = f"Stop it: kill {' '.join(map(str, running))}"
            raise StorageError(f"the service still runs as {self.config.account}", hint=hint)
        for path in self.leftovers(keep_log=keep_log):
            if path == self.place:
                continue
            if path == self.config.state and keep_log:
                yield from self._keep_log()
            else:
                site_files.take_away(self.machine.at(path))
                yield f"removed {path}"
        yield from self._no_account()
        if os.path.lexists(self.machine.at(self.place)):  # the last: with it, a removal that was cut off goes on
            site_files.take_away(self.machine.at(self.place))
            yield f"removed {self.place}"
        for path in self._emptied():
            with suppress(OSError):
                self.machine.at(path).rmdir()
                yield f"removed {path}"

    def _no_account(self) -> Iterator[str]:
        name, where = self.config.account, [] if self.machine.here else ["--prefix", str(self.machine.root)]
        if self.machine.user(name) is not None:
            site_files.command(["userdel", *where, name])
            yield f"removed account {name}"
        if self.machine.group(name) is not None:  # userdel takes it along where login.defs says so
            site_files.command(["groupdel", *where, name])

    def _emptied(self) -> list[Path]:
        """Folders that may be taken away where nothing is left in them; those of systemd where there is none."""
        found = [one.path for one in self.things() if one.shared and one.path != self.config.units]
        found += [self.config.tickets.parent, self.config.controller_key.parent, self.config.socket.parent]
        kept = {Path("/etc"), Path("/var/lib"), Path("/run"), Path("/srv"), Path("/opt")}
        there = site_layout.systemd_there(self.machine) and self.config.units == site_layout.UNITS
        units = [] if there else [self.config.units, self.config.units.parent]
        return [path for path in dict.fromkeys(reversed(found)) if path not in kept] + units

    def check_unused(self) -> None:
        """Raises ConfigError while the controller loads the plugin: without the file it would not start again."""
        conf = self.machine.at(self.config.slurm_conf or self.config.plugin.parent / "slurm.conf")
        plugin = self.machine.at(self.config.plugin)
        if plugin.exists() and plugin.parent == conf.parent and (line := site_files.plugin_line(conf)):
            hint = f"Take lua out of that line of {conf}, run `scontrol reconfigure`, and then this again."
            raise ConfigError("JobSubmitPlugins", line, "still names the plugin", hint=hint)

    def processes(self) -> list[int]:
        """The processes of the account, but for those of containers: nobody but the service runs as it."""
        uid, ours = self._uid(self.config.account), Path("/proc/self/ns/pid")
        found = []
        if uid is not None and self.machine.here:
            for entry in Path("/proc").iterdir():
                with suppress(OSError):
                    if entry.name.isdigit() and entry.stat().st_uid == uid and (entry / "ns/pid").samefile(ours):
                        found.append(int(entry.name))
        return sorted(found)

    def _keep_log(self) -> Iterator[str]:
        """The log stays, as root's: the number of an account that is gone may be given to another."""
        state, logs = self.machine.at(self.config.state), self._logs()
        for path in sorted(state.rglob("*"), reverse=True):
            if path.is_dir() and not path.is_symlink():
                with suppress(OSError):
                    path.rmdir()
            elif path not in logs:
                path.unlink()
        for path in [state, *state.rglob("*")]:
            os.chown(path, 0, 0, follow_symlinks=False)
        yield from (f"kept    {path}  root:root" for path in logs)


_STARTS = (["daemon-reload"], ["enable", "--now", f"{SERVICE}.socket"])


def _as_root() -> None:
    """Raises ConfigError for anybody else."""
    if os.geteuid() != 0:
        hint = "Read what it would do without --yes, then run it as root."
        raise ConfigError("--yes", None, "needs root", hint=hint)


def _word(there: bool) -> str:
    return "there " if there else "make  "
