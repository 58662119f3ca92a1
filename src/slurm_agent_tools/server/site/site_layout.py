"""What the site's service needs of a machine: an account, folders, units, the controller's plugin. Changes nothing."""

from __future__ import annotations

import grp
import pwd
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from slurm_agent_tools.policy.for_others import Site, TicketSource, job_submit_lua
from slurm_agent_tools.policy.loading import Base, LoadedPolicy, load, shipped
from slurm_agent_tools.policy.policy_files import LARGEST
from slurm_agent_tools.server.site import site_config
from slurm_agent_tools.server.site.site_config import SERVICE, SiteConfig
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.transport.site_files import PATH

UNITS: Path = SiteConfig.model_fields["units"].default

RUNS = Path("/run/systemd/system")

MARK = "Written by `slurm-agent-tools policy export job-submit-lua`"
"""What tells a plugin of ours from one that somebody wrote by hand."""

ROOT = "root"

_LARGEST = 4 * 2**20

_SHELLS = ("/usr/sbin/nologin", "/sbin/nologin", "/bin/false", "/usr/bin/false")


@dataclass(frozen=True, slots=True)
class Owned:
    """A folder, or with `text` a file, and whose it must be. `shared`: others may use it too, so it may stay."""

    path: Path
    user: str
    group: str
    mode: int
    text: str | None = None
    secret: bool = False
    shared: bool = False

    @property
    def rights(self) -> str:
        """As `stat` prints them."""
        return f"{self.user}:{self.group} {self.mode:04o}"


def text_of(path: Path) -> str:
    """The text of a file of the machine's. Raises OSError."""
    return safe_open.read(path, _LARGEST).decode(errors="replace")


class TargetSystem:
    """A machine by its root folder: `/` for this one, else an image or a system that is being made."""

    def __init__(self, root: Path = Path("/")) -> None:
        self.root = root

    @property
    def here(self) -> bool:
        """True for the machine that runs this."""
        return self.root == Path("/")

    def at(self, path: Path) -> Path:
        """Where a path of that machine lies on this one."""
        return path if self.here else self.root / path.relative_to("/")

    def user(self, name: str) -> pwd.struct_passwd | None:
        """An account of it."""
        if self.here:
            try:
                return pwd.getpwnam(name)
            except KeyError:
                return None
        row = self._row("passwd", name)
        return pwd.struct_passwd((*row[:2], int(row[2]), int(row[3]), *row[4:])) if row else None

    def group(self, name: str) -> int | None:
        """The number of a group."""
        if self.here:
            try:
                return grp.getgrnam(name).gr_gid
            except KeyError:
                return None
        row = self._row("group", name)
        return int(row[2]) if row else None

    def _row(self, file: str, name: str) -> list[str] | None:
        try:
            lines = text_of(self.root / "etc" / file).splitlines()
        except OSError:
            return None
        return next((line.split(":") for line in lines if line.startswith(f"{name}:")), None)


def controllers_group(config: SiteConfig, machine: TargetSystem) -> str:
    """The name of SlurmUser's own group: tickets are for it."""
    found = machine.user(config.slurm_user)
    if found is None:
        return config.slurm_user
    if machine.here:
        try:
            return grp.getgrgid(found.pw_gid).gr_name
        except KeyError:
            return str(found.pw_gid)
    return config.slurm_user if machine.group(config.slurm_user) == found.pw_gid else str(found.pw_gid)


def systemd_runs(config: SiteConfig, machine: TargetSystem) -> bool:
    """Whether units are started here: systemd is the first process (sd_booted(3))."""
    return machine.here and config.units == UNITS and RUNS.is_dir()


def systemd_there(machine: TargetSystem) -> bool:
    """Whether systemd is installed, so that the folder of units is its own."""
    return any(machine.at(path).exists() for path in (Path("/usr/lib/systemd/systemd"), Path("/lib/systemd/systemd")))


def no_login(found: pwd.struct_passwd) -> bool:
    """Whether nobody can log in to an account by its shell."""
    return found.pw_shell in _SHELLS


def account_line(config: SiteConfig, machine: TargetSystem) -> list[str]:
    """The command that makes the account."""
    where = [] if machine.here else ["--prefix", str(machine.root)]
    told = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", "--shell", _SHELLS[0]]
    return ["useradd", *where, *told, config.account]


def folders(config: SiteConfig, place: Path, machine: TargetSystem) -> list[Owned]:
    """Every folder, those that hold others first."""
    group = controllers_group(config, machine)
    shared = config.tickets if config.tokens == "files" else config.controller_key.parent
    above = dict.fromkeys([place.parent, config.state.parent, shared.parent, config.units])
    found = [Owned(path, ROOT, ROOT, 0o755, shared=True) for path in above]
    found.append(Owned(config.state, config.account, config.account, 0o700))
    if config.tokens == "files":
        found += [Owned(path, config.account, group, 0o2770) for path in (config.tickets, config.used)]
    else:
        found.append(Owned(config.controller_key.parent, config.slurm_user, group, 0o700, shared=True))
    opens = ROOT if systemd_runs(config, machine) else config.account
    found.append(Owned(config.socket.parent, opens, opens, 0o755))
    return found


def files(config: SiteConfig, place: Path, machine: TargetSystem) -> list[Owned]:
    """Every file but the plugin; the text of a key is made when it is written."""
    group = controllers_group(config, machine)
    found = [Owned(place, ROOT, ROOT, 0o644, site_toml())]
    if config.tokens == "hmac":
        found.append(Owned(config.key, config.account, config.account, 0o400, "", secret=True))
        found.append(Owned(config.controller_key, config.slurm_user, group, 0o400, "", secret=True))
    found.append(Owned(config.units / f"{SERVICE}.socket", ROOT, ROOT, 0o644, socket_unit(config)))
    found.append(Owned(config.units / f"{SERVICE}.service", ROOT, ROOT, 0o644, service_unit(config, place)))
    return found


def by_and_by(config: SiteConfig) -> list[Path]:
    """Files that come to be while it runs, in folders that are not its own."""
    keys = [key for key in (config.controller_key, config.controller_old_key) if key is not None]
    spent = [key.with_name(f"{key.name}.spent{more}") for key in keys for more in ("", ".new")]
    return [config.socket, config.page_socket, *spent]


def plugin(config: SiteConfig, loaded: LoadedPolicy) -> Owned:
    """The controller's plugin as the policy and site.toml make it."""
    return Owned(config.plugin, ROOT, ROOT, 0o644, job_submit_lua(loaded, _site(config)))


def is_ours(path: Path) -> bool:
    """Whether a plugin is one that we wrote."""
    return path.exists() and MARK in text_of(path)[:2000]


def _site(config: SiteConfig) -> Site:
    return Site(
        config.exempt_users, config.exempt_accounts, config.threads_per_core, config.most_gpus_per_node,
        config.default_cpus_per_gpu,
        TicketSource.parse(_tokens(config)), config.agent_users, config.agent_accounts,
    )  # fmt: skip


def _tokens(config: SiteConfig) -> str:
    if config.tokens == "files":
        return f"files:{config.tickets}"
    return f"hmac:{config.controller_key}" + (f",{config.controller_old_key}" if config.controller_old_key else "")


def policy(config: SiteConfig, machine: TargetSystem) -> LoadedPolicy:
    """The policy that the service judges by: the site's file over the shipped one. Raises ConfigError."""
    path = machine.at(config.policy)
    if not path.exists():
        return load(shipped())
    site_config.of_root_alone(path)
    return load(shipped(), base=Base("site", str(config.policy), safe_open.read(path, LARGEST)))


def export_line(config: SiteConfig) -> list[str]:
    """The command that prints the plugin, for whoever reads it before."""
    words = ["slurm-agent-tools", "policy", "export", "job-submit-lua", "--tokens", _tokens(config)]
    lists = {
        "agent-user": config.agent_users, "agent-account": config.agent_accounts,
        "exempt-user": config.exempt_users, "exempt-account": config.exempt_accounts,
    }  # fmt: skip
    words += [word for option, names in lists.items() for name in names for word in (f"--{option}", name)]
    words += ["--threads-per-core", str(config.threads_per_core)] if config.threads_per_core != 1 else []
    sizes = {"most-gpus-per-node": config.most_gpus_per_node, "default-cpus-per-gpu": config.default_cpus_per_gpu}
    return words + [word for option, size in sizes.items() if size for word in (f"--{option}", str(size))]


def by_hand(config: SiteConfig, place: Path) -> str:
    """The line that starts the service where no systemd runs."""
    closed = config.page_origin is not None and config.page_group is not None
    groups = f"--groups={config.page_group}" if closed else "--clear-groups"  # only its members may give a file to it
    switch = [f"--reuid={config.account}", f"--regid={config.account}", groups, "--no-new-privs"]
    bounds = ["--bounding-set=-all", "--inh-caps=-all"]
    env = ["env", "-i", f"PATH={PATH}", *_variables(config)]
    return shlex.join(["setpriv", *switch, *bounds, *env, *serve_line(place)])


def serve_line(place: Path) -> list[str]:
    """The service's own command, which no file of a working folder or of the environment has a part in."""
    return [sys.executable, "-I", "-m", "slurm_agent_tools", "site", "serve", "--config", str(place)]


def _variables(config: SiteConfig) -> list[str]:
    return [] if config.slurm_conf is None else [f"SLURM_CONF={config.slurm_conf}"]


def site_toml() -> str:
    """A site.toml in which every key stands with what it is for and its default, each as a comment."""
    lines = [
        "# The site's service of slurm-agent-tools. Every key with its default; after a change:",
        "#   slurm-agent-tools site install",
    ]
    for name, info in SiteConfig.model_fields.items():
        told = f"{name} is not set" if info.default is None else f"{name} = {_toml(info.default)}"
        lines += ["", f"# {info.description}", f"# {told}"]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    return "[]" if isinstance(value, tuple) else f'"{value}"'


# --- The units of systemd ---------------------------------------------------------------------------------------------


def socket_unit(config: SiteConfig) -> str:
    """Everybody may connect: who calls, the kernel tells, and what the page's visitor may, a passkey.

    Where the page is for the web server alone, so are both sockets until the first is opened: the rights of a unit
    are those of all its sockets.
    """
    page, rights = "", "SocketMode=0666"
    if config.page_origin is not None:
        page = f"ListenStream={_word(config.page_socket)}\n"
        if config.page_group is not None:
            opened = f"ExecStartPost=/bin/chmod 0666 {_word(config.socket).replace('$', '$$')}"
            rights = f"SocketMode=0660\nSocketGroup={config.page_group}\n{opened}"
    return f"""\
[Unit]
Description=Socket of the site's decisions on jobs of agents (slurm-agent-tools)

[Socket]
ListenStream={_word(config.socket)}
{page}{rights}
DirectoryMode=0755
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
"""


def service_unit(config: SiteConfig, place: Path) -> str:
    """Without root, without a capability, and writing in two folders alone."""
    told = "".join(f"Environment={_word(variable)}\n" for variable in [f"PATH={PATH}", *_variables(config)])
    written = " ".join(_word(path) for path in [config.state, *([config.tickets] if config.tokens == "files" else [])])
    command = " ".join(_word(word).replace("$", "$$") for word in serve_line(place))
    return f"""\
[Unit]
Description=The site's decisions on jobs of agents (slurm-agent-tools)
Requires={SERVICE}.socket
After={SERVICE}.socket network.target munge.service

[Service]
User={config.account}
Group={config.account}
{told}ExecStart={command}
Restart=on-failure
UMask=0077
LimitCORE=0
LimitNOFILE=4096
MemoryMax=3G
OOMPolicy=continue
TasksMax=256
NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ReadWritePaths={written}
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
PrivateMounts=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
RemoveIPC=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
"""


def _word(value: object) -> str:
    """One word as systemd reads it (systemd.syntax(7)): % is doubled."""
    plain = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{plain}"' if any(letter in plain for letter in " \t'\"\\") else plain
