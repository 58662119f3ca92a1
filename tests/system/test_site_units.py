"""The service as its units start it, where no systemd runs: its sockets, its command, and what it may not do.

The socket is opened by systemd's own program and handed over to the unit's command; the file system is read-only but for
the unit's folders, rights are taken away, and system calls are held by the filter that the unit names. What is left to a
real systemd is that it reads the unit in this way: `systemd-analyze verify` and `security` say so.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from tests.system.site_service import ACCOUNT, PAGE, SiteOnCluster, wait
from tests.system.syscall_filter import allowed
from tests.system.test_boundary import HUGE, ask, project
from tests.system.test_connect import scripted

pytestmark = pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="the package systemd is needed")

READ_ONLY = """
for place in $1; do mount --bind "$place" "$place" || exit 1; done
mount -o remount,bind,ro / || exit 1
shift
exec "$@"
"""


class Unit:
    """The lines of a unit's file."""

    def __init__(self, path: Path) -> None:
        self.lines = [line.partition("=")[::2] for line in path.read_text().splitlines() if "=" in line]

    def every(self, name: str) -> list[str]:
        return [value for one, value in self.lines if one == name]

    def one(self, name: str) -> str:
        (value,) = self.every(name)
        return value


@contextmanager
def started(site: SiteOnCluster) -> Iterator[subprocess.Popen[bytes]]:
    """The installed units' service behind their sockets, which waits for a first call. The usual one is back afterwards."""
    (opens,), (unit,) = (
        [Unit(path) for path in (site.folder / "units").glob(f"*.{kind}")] for kind in ("socket", "service")
    )
    calls = site.folder / "calls"
    calls.write_text("\n".join(sorted(allowed(unit.every("SystemCallFilter")))))
    listens = [f"--listen={path}" for path in opens.every("ListenStream")]
    environment = [f"--setenv={value}" for value in unit.every("Environment")]
    rooted = ["unshare", "--mount", "--propagation=private", "sh", "-c", READ_ONLY, "sh", unit.one("ReadWritePaths")]
    switch = ["setpriv", f"--reuid={unit.one('User')}", f"--regid={unit.one('Group')}", "--clear-groups",
              "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all"]  # fmt: skip
    filtered = [sys.executable, "-I", str(Path(__file__).with_name("syscall_filter.py")), str(calls)]
    words = [*rooted, *switch, *filtered, *shlex.split(unit.one("ExecStart"))]
    site.stop()
    with (site.folder / "service.log").open("ab") as log:
        argv = ["systemd-socket-activate", *listens, *environment, *words]
        process = subprocess.Popen(argv, cwd="/", stderr=log)
    try:
        wait(lambda: all(Path(path).is_socket() for path in opens.every("ListenStream")), "the sockets")
        for path in map(Path, opens.every("ListenStream")):
            path.chmod(int(opens.one("SocketMode"), 8))
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        for path in opens.every("ListenStream"):
            Path(path).unlink(missing_ok=True)
        site.start()


def test_the_units_service_gives_a_ticket_and_shows_its_page_with_nothing_but_what_the_units_allow(
    site_service: SiteOnCluster,
):
    site = site_service
    with started(site) as process:
        assert "slurm_agent_tools" not in Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0].decode()
        place = site.another()
        place.cli("get_status", "--no-cache")
        code, reply = place.cli("submit_job", f"--script={scripted(place, 'unit', 'true')}")
        assert (code, reply.get("status")) == (0, "submitted"), (
            reply,
            (site.folder / "service.log").read_text()[-2000:],
        )
        waits = project(site, HUGE)
        name = ask(site, waits)["question"]
        link = ask(site, waits, "question", id=name)["page"]
        with httpx2.Client(transport=httpx2.HTTPTransport(uds=str(site.folder / "run/site-page.sock"))) as browser:
            shown = browser.get(link.replace(PAGE, "http://page"))
        assert "All that would run" in shown.text
        status = Path(f"/proc/{process.pid}/status").read_text()
        told = {name: re.search(rf"^{name}:\s+(\S+)", status, re.MULTILINE)[1] for name in HELD}  # type: ignore[index]
        assert told == HELD
        owner = subprocess.run(["id", "-nu", told_uid(status)], capture_output=True, text=True, check=True).stdout
        assert owner.strip() == ACCOUNT
        assert process.poll() is None
    assert process.returncode == 0, "it ends by itself when it is told to"
    assert site.site("check").returncode == 0


HELD = {"NoNewPrivs": "1", "Seccomp": "2", "CapEff": "0" * 16, "CapBnd": "0" * 16}


def told_uid(status: str) -> str:
    """The number of the account of a process, by its status."""
    found = re.search(r"^Uid:\s+(\d+)", status, re.MULTILINE)
    assert found is not None
    return found[1]


def test_what_the_units_forbid_is_really_held_here(tmp_path: Path):
    """The filter lets through what is on its list, ends what calls another one, and has no other families of sockets."""
    calls = tmp_path / "calls"
    calls.write_text("\n".join(allowed(["@system-service", "~@privileged @resources"])))
    run = [sys.executable, "-I", str(Path(__file__).with_name("syscall_filter.py")), str(calls), sys.executable, "-Ic"]
    tries = {
        "import os; os.getpid()": 0,
        "import os; os.nice(1)": -signal.SIGSYS,
        "import os; os.chroot('/')": -signal.SIGSYS,
        "import socket; socket.socket(socket.AF_UNIX).close()": 0,
        "import errno, socket\ntry: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\nexcept OSError as error: raise SystemExit(error.errno != errno.EAFNOSUPPORT)\nelse: raise SystemExit(1)": 0,
    }
    ended = {code: subprocess.run(["setpriv", "--no-new-privs", *run, code], check=False).returncode for code in tries}
    assert ended == tries
