import socket
import subprocess
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import definition, hostname
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.process import EndedProcess


def stands_for(monkeypatch, address: str) -> None:
    monkeypatch.setattr(socket, "gethostbyname", lambda _: address)


@pytest.fixture
def cluster(tmp_path):
    (tmp_path / "etc").mkdir()
    return Cluster(tmp_path, 21000, "ada")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.1.1"])
def test_the_daemons_listen_on_the_loopback_address_of_the_machines_name(monkeypatch, cluster, address):
    stands_for(monkeypatch, address)
    cluster.hosts.touch()  # of an earlier name

    hostname.prepare(cluster)
    assert hostname.loopback() == address
    assert hostname.seeing(cluster, "slurmctld", ["slurmctld", "-D"]) == ["slurmctld", "-D"]


def test_where_the_name_stands_for_another_address_only_slurms_daemons_see_it_as_loopback(monkeypatch, cluster):
    stands_for(monkeypatch, "192.0.2.7")

    hostname.prepare(cluster)
    words = hostname.seeing(cluster, "slurmd.gpu01", ["slurmd", "-D"])
    assert hostname.loopback() == "127.0.0.1"
    assert cluster.hosts.read_text().startswith(f"127.0.0.1 {socket.gethostname()}")
    assert [*words[:1], *words[2:]] == ["sh", str(cluster.hosts), "slurmd", "-D"]
    assert hostname.seeing(cluster, "mariadbd", ["mariadbd"]) == ["mariadbd"]


def test_a_name_that_stands_for_nothing_is_given_an_address_too(monkeypatch):
    def unknown(_: str) -> str:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "gethostbyname", unknown)
    assert (hostname.stands_for(), hostname.loopback()) == ("nothing", "127.0.0.1")


def test_the_own_hosts_file_keeps_all_other_names():
    text = "# ours\n127.0.0.1 localhost\n10.0.0.4 node.example node db  # the machine\n::1 node.example\n\n"

    assert hostname.own_hosts(text, "node.example") == (
        "127.0.0.1 node.example node\n127.0.0.1 localhost\n10.0.0.4 db\n"
    )


async def test_a_machine_that_allows_no_namespace_is_told_the_line_for_its_hosts_file(monkeypatch):
    stands_for(monkeypatch, "192.0.2.7")

    async def refused(argv, **_):
        return EndedProcess(1, b"", b"unshare: Operation not permitted", 0.1, truncated=False)

    monkeypatch.setattr(process, "run", refused)
    with pytest.raises(DevclusterError, match=r"192\.0\.2\.7") as caught:
        await hostname.check()
    assert f"127.0.0.1 {socket.gethostname()}" in caught.value.hint


def test_a_command_sees_the_hosts_file_that_it_is_given_and_nobody_else_does(tmp_path):
    """The real script; skipped where this machine allows no namespace."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 only-for-the-daemons\n")
    before = Path("/etc/hosts").read_bytes()
    argv = ["sh", str(hostname._SCRIPT), str(hosts), "cat", "/etc/hosts"]

    ended = subprocess.run(argv, env={"PATH": definition.SEARCH}, capture_output=True)
    if ended.returncode != 0:
        pytest.skip(f"no mount namespace here: {ended.stderr.decode()}")
    assert ended.stdout == hosts.read_bytes()
    assert Path("/etc/hosts").read_bytes() == before
