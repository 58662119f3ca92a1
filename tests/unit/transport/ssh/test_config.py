"""The person's SSH configuration means here what it means to ssh."""

import getpass
import os
from pathlib import Path

import pytest

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.transport.ssh import target as target_module
from slurm_agent_tools.transport.ssh.target import SshHop, SshTarget

ME = getpass.getuser()
GLOBAL = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"]
MINE = ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"]
# What a person may write -> USER@HOST:PORT that ssh makes of `n`. ssh itself is asked in tests/system.
TARGETS = {
    "Host n\n HostName a.b # the login node\n Port 44 # not 22\n": f"{ME}@a.b:44",
    "Host n # big\n User good\n": "good@n:22",
    "# don't\nHost n\n User good # don't\n": "good@n:22",
    "Host n\n ConnectTimeout 30s\n ServerAliveInterval 1m\n User good\n": "good@n:22",
    "Host n\n PubkeyAuthentication unbound\n User good\n": "good@n:22",
    "Host=n\n\tHostName=a.b\n\tPort = 44\n": f"{ME}@a.b:44",
    "Host n\r\n HostName a.b\r\n Port 44\r\n": f"{ME}@a.b:44",
    'Host "n"\n User "good"\n': "good@n:22",
    "Host n\n User UNI\\me\n": "UNI\\me@n:22",
    "Host n\n User me@uni.edu\n": "me@uni.edu@n:22",
    "Host * !n\n User bad\nHost n\n User good\n": "good@n:22",
    "Host n? !n1\n User bad\nHost m n\n User good\n": "good@n:22",
    "Host n\n User good\nHost *\n User bad\n Port 44\n": "good@n:44",
    "Host n\n HostName %h.cluster.org\n": f"{ME}@n.cluster.org:22",
    "Host n\n HostName q.z\nMatch host q.z\n User good\n": "good@q.z:22",
    "Host n\n HostName q.z\nMatch originalhost N host *.Z\n User good\n": "good@q.z:22",
    "Host n\n User u\nMatch user u,v\n Port 44\n": "u@n:44",
    "Match host=n\n User good\n": "good@n:22",
    'Match host n exec "test 1 = 1"\n User good\n': "good@n:22",
    'Match host n exec "test %h = n"\n User good\n': "good@n:22",
    'Match host n exec "exit 3"\n User bad\nMatch !exec "false" host n\n User good\n': "good@n:22",
    "Match all\n User good\n": "good@n:22",
    "Host n\n HostName q.z\nMatch final host q.z\n User good\n": "good@q.z:22",
    "Match canonical all\n User bad\n": f"{ME}@n:22",
    f"Match localuser {ME}\n User good\n": "good@n:22",
    "Include {folder}/here\nHost n\n Port 44\n": "good@from.here:44",
    'Include "{folder}/with space/*"\n': "good@n:22",
    "Host n\n Include {folder}/bare\n Port 44\nHost *\n Port 55\n": "good@n:44",
    "Host m\n Include {folder}/bare\nHost *\n Port 55\n": f"{ME}@n:55",
    "Host n\n Include {folder}/other\n Port 44\n": f"{ME}@n:44",
    "Include {folder}/absent/*\nHost n\n User good\n": "good@n:22",
    "Host n\n IdentityFile /nowhere/key\n User good\n": "good@n:22",
}
INCLUDED = {"here": "Host n\n HostName from.here\n User good\n", "bare": "User good\n", "with space/a": "User good\n",
            "other": "Host other\n User bad\n"}  # fmt: skip


def settled(folder: Path) -> Path:
    """The files that are included."""
    for name, text in INCLUDED.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def target(folder: Path, text: str | bytes, host: str = "n", **more: object) -> SshTarget:
    config = folder / "config"
    config.write_bytes(text if isinstance(text, bytes) else text.encode())
    plain = {"host": host, "remote_root": "x", "ssh_config": config}
    settings = ClusterSettings.model_validate(plain | more)
    hop = target_module.first(settings)
    said = target_module.found(hop, settings)
    target_module.options(hop, settings, said)  # is taken by asyncssh, too
    return target_module.target(hop, settings, said)


@pytest.mark.proves("ssh-config-is-followed")
@pytest.mark.parametrize("text", TARGETS)
def test_what_ssh_takes_is_taken_and_means_the_same(tmp_path: Path, text: str) -> None:
    found = target(tmp_path, text.replace("{folder}", str(settled(tmp_path))))
    assert found.spelled == TARGETS[text]


def test_letters_that_are_not_utf8_disturb_nothing(tmp_path: Path) -> None:
    assert target(tmp_path, b"# M\xfcller\nHost n\n Port 44\n").port == 44
    assert target(tmp_path, b"\xef\xbb\xbfHost n\r\n Port 44\r\n").port == 44


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Host n\n Port many\n", "Port many"),
        ("Host n\n User\n", "line 2: user has no value"),
        ('Host n\n User "me\n', "line 2: a quote is not closed"),
        ("Match\n", "line 1: Match has no condition"),
        ("Match host\n", "line 1: Match host has no value"),
        ("Host n\n HostName %y\n", "%y stands for nothing"),
        ("Host n\n UserKnownHostsFile ${SURELY_NOT_SET}/x\n", "SURELY_NOT_SET is not set"),
        ("Include {folder}/config\n", "files include each other"),
        ("Host n\n ProxyJump gate:many\n", "gate:many"),
        ("Host n\n Ciphers not-known-here\n", "ciphers names only what is not known"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match="ssh_config") as caught:
        target(tmp_path, text.replace("{folder}", str(tmp_path)))
    assert words in caught.value.message


@pytest.mark.parametrize(
    "condition", ["localnetwork 10.0.0.0/8", "!localnetwork 10.0.0.0/8", "sessiontype shell", "version x"]
)
def test_a_condition_that_is_not_known_here_does_not_hold(tmp_path: Path, condition: str) -> None:
    assert target(tmp_path, f"Match {condition}\n User bad\nHost n\n User good\n").user == "good"


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("", [*MINE, *GLOBAL]),
        ("Host n\n UserKnownHostsFile ~/a ~/b\n", ["~/a", "~/b", *GLOBAL]),
        ("Host n\n GlobalKnownHostsFile /g\n", [*MINE, "/g"]),
        ("Host n\n UserKnownHostsFile none\n", GLOBAL),
        ("Host n\n HostName q.z\n UserKnownHostsFile ~/%h-%n-%k ${HOME}/x\n", ["~/q.z-n-n", "~/x", *GLOBAL]),
    ],
)
def test_keys_of_hosts_are_looked_for_where_ssh_looks(tmp_path: Path, text: str, files: list[str]) -> None:
    assert target(tmp_path, text).files == tuple(Path(os.path.expanduser(path)) for path in files)  # noqa: PTH111


@pytest.mark.parametrize(
    ("text", "jumps", "command"),
    [
        ("Host n\n ProxyJump a@g1:2222,g2\n", (SshHop("g1", "a", 2222), SshHop("g2")), False),
        ("Host n\n HostName q.z\n ProxyJump me@gate-%h\n", (SshHop("gate-q.z", "me"),), False),
        ("Host n\n ProxyJump none\nHost *\n ProxyJump gate\n", (), False),
        ("Host n\n ProxyCommand none\nHost *\n ProxyJump gate\n", (), False),
        ("Host n\n ProxyJump none\nHost *\n ProxyCommand nc %h %p\n", (), False),
        ("Host n\n ProxyCommand nc %h %p\nHost *\n ProxyJump gate\n", (), True),
        ("Host n\n ProxyJump gate\nHost *\n ProxyCommand nc %h %p\n", (SshHop("gate"),), False),
        ("Host *\n ProxyJump n\n", (), False),
    ],
)
def test_the_way_that_stands_first_counts(tmp_path: Path, text: str, jumps: tuple[SshHop, ...], command: bool) -> None:
    found = target(tmp_path, text)
    assert (found.jumps, found.command) == (jumps, command)


def test_algorithms_that_only_ssh_has_are_passed_over(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "Host n\n KexAlgorithms of-tomorrow,curve25519-sha256\n MACs ^of-tomorrow\n HostKeyAlgorithms +ssh-rsa\n"
    )
    settings = ClusterSettings(host="n", remote_root="x", ssh_config=config)
    hop = target_module.first(settings)
    found = target_module.options(hop, settings, target_module.found(hop, settings))
    assert list(found.kex_algs) == [b"curve25519-sha256"]
    assert len(found.mac_algs) > 2


def test_a_host_is_known_under_its_alias_or_name_in_small_letters(tmp_path: Path) -> None:
    assert target(tmp_path, "Host n\n HostName Login.Uni.EDU\n").name == "login.uni.edu"
    assert target(tmp_path, "Host n\n HostName a.b\n HostKeyAlias Farm\n").name == "farm"


def test_a_name_gets_its_domain_only_where_the_configuration_wants_it(tmp_path: Path) -> None:
    wish = "CanonicalizeHostname yes\nCanonicalDomains hpc.uni.edu uni.edu\n"
    names = {"n": ["n.hpc.uni.edu", "n.uni.edu"], "n.a.b": [], "10.0.0.1": []}
    for host, tried in names.items():
        found = target(tmp_path, wish, host=host)
        settings = ClusterSettings(host=host, remote_root="x", ssh_config=tmp_path / "config")
        assert target_module.domains(target_module.found(SshHop(host), settings)) == tried
        assert found.host == host
    (tmp_path / "config").write_text(wish + "Host *.hpc.uni.edu\n User good\nMatch canonical all\n Port 44\n")
    settings = ClusterSettings(host="n", remote_root="x", ssh_config=tmp_path / "config")
    assert target_module.target(SshHop("n", whole="n.hpc.uni.edu"), settings).spelled == "good@n.hpc.uni.edu:44"
    (tmp_path / "config").write_text(wish + "ProxyJump gate\n")
    assert target_module.domains(target_module.found(SshHop("n"), settings)) == []
