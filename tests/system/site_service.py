"""The site's service as an administrator installs it, under an account of its own, on a cluster of its own."""

from __future__ import annotations

import os
import pwd
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import anyio
import pytest
from tests.system.faces import Place

from slurm_agent_tools.devcluster import lifecycle

ACCOUNT = f"sat-site-{os.getpid()}"
"""Of this run alone: an account is the machine's."""

PAGE = "https://approve.example.org"
"""Where people answer by passkey."""

AGENTS = "agents"
"""An account of Slurm in which every job needs a ticket; `labmate` is in it too."""

POLICY = """\
limits:
  memory_without_gpus: {free: 2G, justify: 4G}
  time_limit: {free: "30:00", justify: "60:00"}
  max_concurrent_jobs: 3
"""
SITE = """\
account = "{account}"
socket = "{folder}/run/site.sock"
state = "{folder}/state"
tickets = "{folder}/tickets"
policy = "{folder}/policy.yaml"
plugin = "{etc}/job_submit.lua"
units = "{folder}/units"
slurm_conf = "{etc}/slurm.conf"
agent_accounts = ["agents"]
page_origin = "{page}"
"""


@dataclass
class SiteOnCluster:
    """A cluster whose controller asks for tickets, and the service that gives them."""

    place: Place
    folder: Path
    account: str = ACCOUNT
    process: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> Path:
        return self.folder / "site.toml"

    @property
    def socket(self) -> Path:
        return self.folder / "run/site.sock"

    def site(self, *words: str) -> subprocess.CompletedProcess[str]:
        """`slurm-agent-tools site` as root."""
        argv = [sys.executable, "-m", "slurm_agent_tools", "site", *words, "--config", str(self.config)]
        return subprocess.run(argv, capture_output=True, text=True, cwd="/", timeout=120)

    def start(self) -> None:
        """The service, by the very line that `site install` prints."""
        shown = self.site("install").stdout.splitlines()
        line = next(line for line in shown if line.strip().startswith("setpriv "))
        with (self.folder / "service.log").open("ab") as log:
            self.process = subprocess.Popen(shlex.split(line), cwd="/", env={"PATH": os.defpath}, stderr=log)
        wait(lambda: self.socket.exists() or self.process is None or self.process.poll() is not None, "its socket")
        assert self.process.poll() is None, (self.folder / "service.log").read_text()

    def stop(self, how: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
        self.socket.unlink(missing_ok=True)
        self.process = None

    def administrator(self, *argv: str) -> str:
        """A command of Slurm's administrator, who is root."""
        env = {"PATH": os.environ["PATH"], **self.place.cluster.environment()}
        done = subprocess.run(argv, capture_output=True, text=True, env=env, cwd="/", timeout=60)
        assert done.returncode == 0, (argv, done.stderr)
        return done.stdout

    def as_user(
        self, code: str, *words: str, user: str | None = None, folder: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run Python code as a user of the cluster, in the project or another folder."""
        argv = self.place.cluster.as_user([sys.executable, "-c", code, *words], user or self.place.cluster.user)
        env = self.place.environment()
        return subprocess.run(
            argv, capture_output=True, text=True, env=env, cwd=folder or self.place.project, timeout=120
        )

    def another(self) -> Place:
        """A fresh project of the user in which the tools ask the service."""
        made = Place(self.place.cluster, Path(tempfile.mkdtemp(prefix="project-", dir=self.place.project.parent)))
        made.extra["SLURM_AGENT_SITE_SOCKET"] = str(self.socket)
        (made.project / "slurm-agent.toml").touch()
        made.own()
        return made

    def log(self) -> str:
        return (self.place.cluster.folder / "log/slurmctld.log").read_text(errors="replace")

    def clear(self) -> None:
        """No job is left in the queue."""
        for user in (self.place.cluster.user, "labmate"):
            self.administrator("scancel", f"--user={user}")


def wait(holds, what: str) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError(f"waited in vain for {what}")


def signer(site: SiteOnCluster) -> str:
    """The key of a person who may approve, which lies where no user reads."""
    (site.folder / "person").mkdir(mode=0o700)
    path = site.folder / "person/key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)
    return " ".join(path.with_suffix(".pub").read_text().split()[:2])


def configure(site: SiteOnCluster, more: str) -> None:
    """The steps of the page for administrators."""
    etc = site.place.cluster.conf.parent
    (site.folder / "policy.yaml").write_text(f'{POLICY}allowed_signers: ["ada@example.org {signer(site)}"]\n')
    said = SITE.format(account=site.account, folder=site.folder, etc=etc, page=PAGE)
    site.config.write_text(said + more.format(folder=site.folder))
    done = site.site("install", "--yes")
    assert done.returncode == 0, done.stderr
    for conf in (etc / "slurm.conf", etc / "daemons.conf"):
        if conf.exists():
            conf.write_text(conf.read_text() + "JobSubmitPlugins=lua\n")
    site.administrator("sacctmgr", "-i", "add", "account", AGENTS)
    for user in (site.place.cluster.user, "labmate"):
        site.administrator("sacctmgr", "-i", "add", "user", user, f"account={AGENTS}")
    site.administrator("scontrol", "reconfigure")
    wait(lambda: "slurm-agent-tools floor: policy" in site.log(), "the plugin")


@pytest.fixture(scope="session")
def site_service() -> Iterator[SiteOnCluster]:
    """Installed and running."""
    if os.geteuid() != 0:
        pytest.skip("a service under an account of its own is installed by root")
    with installed() as site:
        yield site


@contextmanager
def installed(more: str = "", account: str = ACCOUNT) -> Iterator[SiteOnCluster]:
    """The same for a while, on a cluster of its own. `more`: lines of site.toml."""
    folder = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    folder.chmod(0o755)
    site = None
    try:
        cluster = anyio.run(partial(lifecycle.up, folder, yes=True))
        site = SiteOnCluster(Place(cluster, cluster.project), folder / "site", account)
        site.folder.mkdir()
        configure(site, more)
        site.start()
        yield site
    finally:
        if site is not None:
            site.stop()
            remove(site)
        anyio.run(partial(lifecycle.down, folder, wipe=True))


def remove(site: SiteOnCluster) -> None:
    """Take it away, whatever the tests did to it."""
    etc = site.place.cluster.conf.parent
    for conf in (etc / "slurm.conf", etc / "daemons.conf"):
        if conf.exists():
            conf.write_text(conf.read_text().replace("JobSubmitPlugins=lua\n", ""))
    done = site.site("remove", "--yes")
    assert done.returncode == 0, done.stderr
    assert site.account not in {entry.pw_name for entry in pwd.getpwall()}
