"""Each package that set-up installs is taken away, and set-up puts it back, or names it to a user who is not root.

Packages of the machine are really removed, so this runs only where a system may be taken apart: in the bare one that
`.ci/run` makes and throws away.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import packages

ROOT = Path(__file__).parents[2]
NEWCOMER = "newcomer"
NEEDS = ("cluster", "accounting", "login", "traces", "pbs")  # those of `make test`
VENV = f"python{sysconfig.get_python_version()}-venv"
NAMED = list(dict.fromkeys(need.package for need in packages.needs() if need.kind in NEEDS))
# Beside those that set-up names: packages that come with them and hold what the cluster starts.
WITHIN = ["mariadb-client", "mariadb-server-core"]

pytestmark = pytest.mark.skipif(
    os.environ.get("SLURM_AGENT_TEST_TAKE_APART") != "yes" or os.geteuid() != 0,
    reason="removes packages of the machine: runs in the bare system that .ci/run makes",
)


def apt(*words: str) -> None:
    argv = ["apt-get", *words[:1], "-y", "-q", "-o", "DPkg::Lock::Timeout=300", *words[1:]]
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    subprocess.run(argv, check=True, capture_output=True, env=env)


def there(package: str) -> bool:
    argv = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(argv, capture_output=True, text=True).stdout == "installed"


def installed(pattern: str) -> str:
    """The name of an installed package; Debian puts a version into some of them."""
    argv = ["dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", f"{pattern}*"]
    rows = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    return next(row.split()[0] for row in rows if row.endswith(" installed"))


def set_up(user: str = "root") -> subprocess.CompletedProcess[str]:
    home = pwd.getpwnam(user).pw_dir
    folder = ROOT if user == "root" else Path(home) / "src"
    switch = [] if user == "root" else ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": home}
    argv = [*switch, "sh", "scripts/setup.sh", *NEEDS]
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True)


@pytest.fixture(scope="module", autouse=True)
def everything() -> None:
    ended = set_up()
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("package", [VENV, *NAMED, *WITHIN])
def test_set_up_puts_back_each_package_or_names_it_to_an_ordinary_user(package):
    taken = installed(package) if package in WITHIN else package
    if taken == VENV and Path(sys.base_prefix) != Path("/usr"):
        pytest.skip("this Python is not the distribution's")
    apt("remove", taken)
    assert not there(taken)

    told = set_up(NEWCOMER)
    line = re.fullmatch(r"set-up: please run: sudo apt-get install \S.*\n", told.stderr)
    assert told.returncode != 0
    assert line, told.stderr
    assert package in WITHIN or taken in line[0].split()

    ended = set_up()
    assert ended.returncode == 0, ended.stderr
    assert there(taken), ended.stdout
    assert not Path("/usr/sbin/policy-rc.d").exists()


def test_set_up_has_nothing_to_say_when_everything_is_there():
    ended = set_up()
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_cluster_comes_up_on_what_was_put_back(tmp_path):
    folder = Path("/var/tmp/taken-apart")
    words = [sys.executable, "-m", "slurm_agent_tools", "devcluster"]
    try:
        up = subprocess.run([*words, "up", "--sshd", "--folder", folder], capture_output=True, text=True)
        assert up.returncode == 0, up.stderr
    finally:
        subprocess.run([*words, "down", "--wipe", "--folder", folder], capture_output=True)
    assert shutil.which("ssh")
