"""The site's service on a machine that has never seen it, as the page for administrators walks through it.

It makes an account and files of the machine, so it runs only where a system may be taken apart.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/administrators.md").read_text(encoding="utf-8")
SECTION = GUIDE.partition("\n## As a service\n")[2].partition("\n## ")[0]
PLACES = ("/etc", "/run", "/srv", "/opt", "/var/lib", "/usr/local/bin", "/usr/local/sbin")
OTHERS = {"/var/lib/apt", "/var/lib/dpkg", "/var/lib/mysql"}
BACKUPS = re.compile(r"/etc/(passwd|group|shadow|gshadow|subuid|subgid)-")
"""What the tools that make accounts leave of the files before."""

pytestmark = pytest.mark.skipif(
    os.environ.get("SLURM_AGENT_TEST_TAKE_APART") != "yes" or os.geteuid() != 0,
    reason="makes accounts and files of the machine: runs in the bare system that .ci/run makes",
)


def everything() -> dict[str, tuple[object, ...]]:
    """Every file of the machine where the service could leave something: whose, with which rights, with what in it."""
    found: dict[str, tuple[object, ...]] = {}
    for place in PLACES:
        for folder, names, files in os.walk(place):
            names[:] = [name for name in names if f"{folder}/{name}" not in OTHERS]
            for path in (Path(folder) / name for name in [*names, *files]):
                if not BACKUPS.fullmatch(str(path)):
                    seen = path.lstat()
                    text = hashlib.sha256(path.read_bytes()).digest() if stat.S_ISREG(seen.st_mode) else b""
                    found[str(path)] = (seen.st_uid, seen.st_gid, seen.st_mode, text)
    return found


def site(*words: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "slurm_agent_tools", "site", *words]
    return subprocess.run(argv, capture_output=True, text=True, cwd="/", env={"PATH": os.defpath, "HOME": "/root"})


def blocks() -> list[str]:
    """The blocks of commands and what they print, in the order of the page; between fences stand parts of files."""
    text = re.sub(r"^```.*?^```$", "", SECTION, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", text, re.MULTILINE)


def steps() -> list[tuple[str, list[str]]]:
    """Each command of the page with what the page says that it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in (line.removeprefix("    ") for block in blocks() for line in block.splitlines()):
        if line.startswith("# "):
            found.append((line.removeprefix("# "), []))
        elif found:
            found[-1][1].append(line)
    return found


def same(printed: list[str], page: list[str]) -> bool:
    """Whether a command printed what the page says, where `...` stands for any text, or on a line of its own for any lines."""
    while page and not page[-1].strip():
        page = page[:-1]  # the page's own empty line before the next block
    pattern = "\n".join(".*" if line.strip() == "..." else re.escape(line).replace(r"\.\.\.", ".*") for line in page)
    return re.fullmatch(pattern, "\n".join(printed), re.DOTALL) is not None


def test_the_walk_through_of_the_guide_prints_what_it_says_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "slurm-agent-tools").symlink_to(Path(sys.executable).with_name("slurm-agent-tools"))
    env = {"PATH": f"{tmp_path}:{os.defpath}:/usr/sbin:/sbin", "HOME": "/root"}
    signer = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "key")]
    subprocess.run(signer, check=True)
    key = " ".join((tmp_path / "key.pub").read_text().split()[:2])
    (tmp_path / "policy.yaml").write_text(
        f"limits: {{max_concurrent_jobs: 8}}\nallowed_signers: ['ada@example.org {key}']\n"
    )
    before, service = everything(), None
    assert len(steps()) > 8
    try:
        for command, page in steps():
            if command.startswith("setpriv "):
                line = command.replace("/opt/slurm-agent-tools/bin/python", sys.executable)
                service = subprocess.Popen(shlex.split(line), env=env, cwd="/")
                wait_for(Path("/run/slurm-agent-tools/site.sock"))
                continue
            if command.startswith("kill "):
                assert service is not None
                service.send_signal(signal.SIGTERM)
                service.wait(60)
                continue
            done = subprocess.run(["sh", "-c", command], env=env, cwd=tmp_path, capture_output=True, text=True)
            printed = (done.stdout + done.stderr).replace(sys.executable, "/opt/slurm-agent-tools/bin/python")
            assert same(printed.splitlines(), page), (command, printed)
    finally:
        if service is not None and service.poll() is None:
            service.kill()
            service.wait()
    assert everything() == before


def wait_for(path: Path) -> None:
    for _ in range(600):
        if path.exists():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} did not come to be")


def test_each_of_the_three_is_the_same_twice():
    before = everything()
    shown = site("install")
    assert (shown.returncode, everything()) == (0, before), shown.stderr
    for _ in range(2):
        made = site("install", "--yes")
        assert made.returncode == 0, made.stderr
    once = everything()
    assert site("install", "--yes").returncode == 0
    assert everything() == once
    assert site("check").stdout == site("check").stdout
    assert everything() == once
    for _ in range(2):
        gone = site("remove", "--yes")
        assert gone.returncode == 0, gone.stderr
        assert everything() == before
