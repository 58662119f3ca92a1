"""A private cluster whose controller takes tickets, and the folder in which the site's service would leave them."""

from __future__ import annotations

import os
import pwd
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio
from tests.system.faces import Place
from tests.system.ticket_shapes import VERSION, Shape

from slurm_agent_tools.devcluster import lifecycle
from slurm_agent_tools.models import submission_ticket
from slurm_agent_tools.models.submission_ticket import Ceilings
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.store.ticket_folder import USED, TicketFolder

SCRIPT = b"#!/bin/bash\nsleep 60\n"
AGENTS = ("--agent-account", "agents", "--agent-user", "labmate")


@dataclass
class Site:
    """A cluster whose controller takes tickets, and the folder where the site's service would leave them."""

    place: Place
    tickets: Path

    @property
    def uid(self) -> int:
        return pwd.getpwnam(self.place.cluster.user).pw_uid

    @property
    def key(self) -> bytes:
        return (self.tickets / "key").read_bytes()

    def ceilings(self, words: tuple[str, ...], **other: object) -> Ceilings:
        taken = Shape("sbatch", words).takes(self.uid, int(time.time()) + 600)
        assert taken is not None, words
        return replace(taken, **other)

    def give(self, allowed: Ceilings, script: bytes | None = SCRIPT, *, kind: str = "files", key: bytes = b"") -> str:
        """A new ticket; returns its word in a comment."""
        ticket = tickets.new_ticket(allowed, script)
        if kind == "files":
            TicketFolder(self.tickets).add(ticket, script)
            return submission_ticket.comment_word(ticket.nonce)
        return submission_ticket.comment_word(submission_ticket.signed(ticket, key or self.key))

    def log(self) -> str:
        return (self.place.cluster.folder / "log/slurmctld.log").read_text(errors="replace")

    def install(self, *words: str) -> None:
        """Export the plugin and put it in place."""
        self.replace(self.exported(*words))

    def exported(self, *words: str) -> bytes:
        argv = [sys.executable, "-m", "slurm_agent_tools", "policy", "export", "job-submit-lua", *words]
        done = self.place.run(argv)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def replace(self, text: bytes) -> None:
        """Another plugin in place; the controller reads it when its time is later than before."""
        file = self.place.cluster.conf.parent / "job_submit.lua"
        when = file.stat().st_mtime + 5 if file.exists() else time.time() - 3600
        draft = file.with_suffix(".new")
        draft.write_bytes(text)
        os.utime(draft, (when, when))
        draft.rename(file)

    @property
    def files(self) -> str:
        return f"files:{self.tickets}"

    @property
    def hmac(self) -> str:
        return f"hmac:{self.tickets}/key,{self.tickets}/old"


@contextmanager
def private(extra_conf: str = "") -> Iterator[Site]:
    """A cluster of its own, up and with the plugin."""
    folder = Path(tempfile.mkdtemp(prefix="sat-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        cluster = anyio.run(partial(lifecycle.up, folder, slurm=VERSION, yes=True, extra_conf=extra_conf))
        made = Site(Place(cluster, cluster.project), folder / "tickets")
        prepare(made)
        yield made
    finally:
        anyio.run(partial(lifecycle.down, folder, wipe=True))


def prepare(site: Site) -> None:
    """An account of agents, a folder that the controller may rename in, and the plugin."""
    owner = owner_of_controller(site)
    for folder in (site.tickets, site.tickets / USED):
        folder.mkdir()
        os.chown(folder, -1, pwd.getpwnam(owner).pw_gid)
        folder.chmod(0o2770)
    for name, key in (("key", b"k" * 64), ("old", b"o" * 64)):
        (site.tickets / name).write_bytes(key)
        os.chown(site.tickets / name, pwd.getpwnam(owner).pw_uid, -1)
        (site.tickets / name).chmod(0o400)
    manage(site, "sacctmgr", "-i", "add", "account", "agents", "Description=agents", "Organization=lab")
    manage(site, "sacctmgr", "-i", "add", "user", site.place.cluster.user, "account=agents")
    site.install("--tokens", site.files, *AGENTS)
    folder = site.place.cluster.conf.parent
    for conf in (folder / "slurm.conf", folder / "daemons.conf"):
        if conf.exists():
            conf.write_text(conf.read_text() + "JobSubmitPlugins=lua\n")
    manage(site, "scontrol", "reconfigure")
    for _ in range(600):
        if "slurm-agent-tools floor: policy default" in site.log():
            return
        time.sleep(0.1)
    raise AssertionError(site.log()[-2000:])


def owner_of_controller(site: Site) -> str:
    text = (site.place.cluster.conf.parent / "slurm.conf").read_text()
    found = re.search(r"^SlurmUser=(\S+)", text, re.MULTILINE)
    assert found
    return found[1]


def manage(site: Site, *argv: str) -> None:
    done = asked_by_root(site, *argv)
    assert done.returncode == 0, (argv, done.stderr)


def asked_by_root(site: Site, *argv: str) -> subprocess.CompletedProcess[bytes]:
    env = {"PATH": os.environ["PATH"], **site.place.cluster.environment()}
    return subprocess.run(argv, capture_output=True, env=env, cwd="/", timeout=60, check=False)


def sbatch(site: Site, *words: str, script: bytes = SCRIPT, user: str | None = None) -> tuple[str | None, str]:
    """A bare sbatch, held: the job's id or None, and what Slurm said."""
    argv = ["sbatch", "--hold", "--output=/dev/null", *words]
    place = site.place
    done = subprocess.run(
        place.cluster.as_user(argv, user), input=script, capture_output=True, cwd="/", env=place.environment(),
        timeout=90, check=False,
    )  # fmt: skip
    found = re.search(rb"Submitted batch job (\d+)", done.stdout)
    return (found[1].decode() if found else None), done.stderr.decode()


def waiting(site: Site, tool: str, *words: str) -> tuple[str | None, str]:
    """A held srun or salloc, until Slurm has answered; it is ended then."""
    argv = site.place.as_user([tool, "--hold", *words, "true"])
    said: list[str] = []
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd="/",
        env=site.place.environment(), text=True, start_new_session=True,
    ) as process:  # fmt: skip
        job_id = None
        for line in process.stderr or ():
            said.append(line)
            found = re.search(r"(?:Pending job allocation|job) (\d+)", line)
            if found and "error" not in line:
                job_id = found[1]
                process.send_signal(signal.SIGINT)
                site.place.run(["scancel", job_id])
                break
        process.kill()
    return job_id, "".join(said)
