"""The person's SSH configuration means here what it means to ssh, which is asked."""

import getpass
import os
import pwd
import socket
from pathlib import Path

import pytest
from tests.watchdog import until

from slurm_agent_tools.errors import ConfigError, SlurmUnreachable
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.transport.ssh import target as target_module
from slurm_agent_tools.transport.ssh.target import SshHop, SshTarget

ME = getpass.getuser()
GLOBAL = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"]
MINE = ["~/.ssh/known_hosts", "~/.ssh/known_hosts2"]
# What a person may write -> USER@HOST:PORT that it means for `n`.
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
ODD = "sntrup761x25519-sha512@openssh.com"  # asyncssh has it with another library, which is not installed
INCLUDED = {"here": "Host n\n HostName from.here\n User good\n", "bare": "User good\n", "with space/a": "User good\n",
            "other": "Host other\n User bad\n"}  # fmt: skip


def settled(folder: Path) -> Path:
    """The files that are included."""
    for name, text in INCLUDED.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def resolves(name: str) -> bool:
    """Whether this machine knows a name."""
    try:
        return bool(socket.getaddrinfo(name, 22))
    except OSError:
        return False


def target(folder: Path, text: str | bytes, host: str = "n") -> SshTarget:
    config = folder / "config"
    config.write_bytes(text if isinstance(text, bytes) else text.encode())
    settings = ClusterSettings(host=host, remote_root="x", ssh_config=config)
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Host n\n Port many\n", "config line 2: "),
        ("Host n\n User\n", "config line 2: "),
        ('Host n\n User "me\n', "config line 2: "),
        ("Match\n", "config line 1: "),
        ("Match host\n", "config line 1: "),
        ("Match of-tomorrow x\n User bad\nHost n\n User good\n", "config line 1: "),
        ("Host n\n HostName %y\n", "%y"),
        ("Host n\n UserKnownHostsFile ${SURELY_NOT_SET}/x\n", "SURELY_NOT_SET"),
        ("Include {folder}/config\n", "Too many recursive configuration includes"),
        ("Host n\n ProxyJump gate:many\n", "gate:many"),
        ("Host *\n ProxyJump n\n", "jumphost loop via n"),
        ("Host n\n Ciphers not-known-here\n", "not-known-here"),
        ("Host n\n KexAlgorithms {odd}\n", "kexalgorithms names only what is not known here: {odd}"),
        ("Host n\n NoWordOfSsh yes\n", "line 2: Bad configuration option"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match="ssh_config") as caught:
        target(tmp_path, text.replace("{folder}", str(tmp_path)).replace("{odd}", ODD))
    assert words.replace("{odd}", ODD) in caught.value.message
    assert "terminating" not in caught.value.message
    assert caught.value.hint == "Mend it until `ssh n` works."


def test_a_file_that_is_named_and_is_not_there_is_no_empty_one(tmp_path: Path) -> None:
    settings = ClusterSettings(host="n", remote_root="x", ssh_config=tmp_path / "absent")
    with pytest.raises(ConfigError, match="absent"):
        target_module.found(SshHop("n"), settings)


def test_words_of_ssh_are_shown_as_one_line_without_controls(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        target(tmp_path, "Host n\n \x1b[31mPort 1\n")
    assert not {"\x1b", "\n", "\r"} & set(caught.value.message)


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("", [*MINE, *GLOBAL]),
        ("Host n\n UserKnownHostsFile ~/a ~/b\n", ["~/a", "~/b", *GLOBAL]),
        ("Host n\n GlobalKnownHostsFile /g\n", [*MINE, "/g"]),
        ("Host n\n UserKnownHostsFile none\n", GLOBAL),
        ("Host n\n HostName q.z\n UserKnownHostsFile ~/%h-%n-%k ${HOME}/x\n", ["~/q.z-n-n", "$/x", *GLOBAL]),
        ('Host n\n UserKnownHostsFile "/my  keys/of hosts" ~/b\n', ["/my  keys/of hosts", "~/b", *GLOBAL]),
        (
            'Host n\n UserKnownHostsFile "C:/Users/A B/known" C:\\\\x\n GlobalKnownHostsFile none\n',
            ["C:/Users/A B/known", "C:\\x"],
        ),
        ("Host n\n UserKnownHostsFile /100%%\n", ["/100%", *GLOBAL]),
    ],
)
def test_keys_of_hosts_are_looked_for_where_ssh_looks(tmp_path: Path, text: str, files: list[str]) -> None:
    """~ is the account's home folder, as it is to ssh; ${HOME} is the environment's."""
    own = {"~": pwd.getpwuid(os.getuid()).pw_dir, "$": os.environ["HOME"]}
    assert target(tmp_path, text).files == tuple(Path(own.get(path[0], "") + path.lstrip("~$")) for path in files)


@pytest.mark.parametrize(
    ("text", "jumps", "command"),
    [
        ("Host n\n ProxyJump a@g1:2222,g2\n", (SshHop("g1", "a", 2222), SshHop("g2")), False),
        ("Host n\n HostName q.z\n ProxyJump me@gate-%h\n", (SshHop("gate-q.z", "me"),), False),
        ("Host n\n ProxyJump none\nHost *\n ProxyJump gate\n", (), False),
        ("Host n\n ProxyCommand none\nHost *\n ProxyJump gate\n", (), False),
        ("Host n\n ProxyCommand nc %h %p\nHost *\n ProxyJump gate\n", (), True),
        ("Host n\n ProxyJump gate\nHost *\n ProxyCommand nc %h %p\n", (SshHop("gate"),), False),
        ("Host n\n ProxyJump [::1]:2222\n", (SshHop("::1", None, 2222),), False),
    ],
)
def test_the_way_that_stands_first_counts(tmp_path: Path, text: str, jumps: tuple[SshHop, ...], command: bool) -> None:
    found = target(tmp_path, text)
    assert (found.jumps, found.command) == (jumps, command)


def test_algorithms_that_only_ssh_has_are_passed_over(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(f"Host n\n KexAlgorithms {ODD},curve25519-sha256\n HostKeyAlgorithms +ssh-rsa\n")
    settings = ClusterSettings(host="n", remote_root="x", ssh_config=config)
    hop = target_module.first(settings)
    found = target_module.options(hop, settings, target_module.found(hop, settings))
    assert list(found.kex_algs) == [b"curve25519-sha256"]
    assert len(found.mac_algs) > 2


def test_a_host_is_known_under_its_alias_or_name_in_small_letters(tmp_path: Path) -> None:
    assert target(tmp_path, "Host n\n HostName Login.Uni.EDU\n").name == "login.uni.edu"
    assert target(tmp_path, "Host n\n HostName a.b\n HostKeyAlias Farm\n").name == "farm"


def test_a_name_gets_its_domain_only_where_the_configuration_wants_it(tmp_path: Path) -> None:
    """No name is below `invalid.`; whether one is below `localhost.` is the machine's matter (RFC 6761)."""
    wish = "CanonicalizeHostname yes\nCanonicalDomains invalid localhost\n"
    found = target(tmp_path, f"{wish}Host *.localhost\n User good\n Port 44\n")
    assert found.spelled == ("good@n.localhost:44" if resolves("n.localhost") else f"{ME}@n:22")
    config = tmp_path / "config"
    settings = ClusterSettings(host="n", remote_root="x", ssh_config=config)
    assert target_module.key(settings) == f"{ME}@n:22"  # records are found again without a network
    assert target(tmp_path, wish, host="n.a.b").host == "n.a.b"
    config.write_text("CanonicalizeHostname yes\nCanonicalDomains invalid\nCanonicalizeFallbackLocal no\n")
    with pytest.raises(SlurmUnreachable, match='n is not found: ssh: Could not resolve host "n"'):
        target_module.found(SshHop("n"), settings)


@pytest.mark.parametrize("path", [".", "", "{folder}"])
def test_a_line_of_the_persons_own_runs_no_program_that_lies_where_we_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "away").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "away").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{path.replace('{folder}', str(tmp_path))}:{os.environ['PATH']}")
    target(tmp_path, 'Match exec "away"\n User x\nHost n\n')

    assert not (tmp_path / "ran").exists()


# --- the program itself ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["{folder}/empty", ".", ""])
def test_without_ssh_the_error_names_it_and_what_lies_here_is_not_taken_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    (tmp_path / "ssh").write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", path.replace("{folder}", str(tmp_path)))
    with pytest.raises(ConfigError, match="ssh is in no folder of PATH") as caught:
        target(tmp_path, "Host n\n")
    assert "Install the OpenSSH client" in caught.value.hint
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "hop",
    [
        SshHop("-oProxyCommand=touch {folder}/ran"), SshHop("-F/etc/passwd"), SshHop("--"), SshHop("-"),
        SshHop("n", user="-oProxyCommand=touch {folder}/ran"), SshHop("x;touch {folder}/ran"), SshHop("$(touch {folder}/ran)"),
        SshHop("n\nproxycommand touch {folder}/ran"),
    ],
)  # fmt: skip
def test_a_name_is_never_an_option_nor_a_command(tmp_path: Path, hop: SshHop) -> None:
    """Settings take no such name (test_config of unit); neither does what asks ssh."""
    (tmp_path / "config").write_text('Match exec "true %n %h"\n Port 44\n')
    settings = ClusterSettings(host="n", remote_root="x", ssh_config=tmp_path / "config")
    plain = SshHop(
        hop.host.replace("{folder}", str(tmp_path)), hop.user and hop.user.replace("{folder}", str(tmp_path))
    )
    with pytest.raises(ConfigError, match="cannot be used"):
        target_module.found(plain, settings)
    assert not (tmp_path / "ran").exists()


def runs(pid: int) -> bool:
    """Whether it is there and more than a zombie, which goes as soon as its parent looks."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_command_that_hangs_is_ended_and_one_left_running_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(f'Match exec "echo $$ > {tmp_path}/pid; exec sleep 600"\n')
    settings = ClusterSettings(host="n", remote_root="x", ssh_config=tmp_path / "config", connect_timeout=0.5)
    with pytest.raises(SlurmUnreachable, match="`ssh -G` did not end within"):
        target_module.found(SshHop("n"), settings)
    until(lambda: not runs(int((tmp_path / "pid").read_text())), "the command that hangs goes on")
    (tmp_path / "config").write_text(f'Match exec "sleep 600 & echo $! > {tmp_path}/pid"\n Port 44\n')
    assert target_module.found(SshHop("n"), settings.model_copy(update={"connect_timeout": 60})).port == 44
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_what_is_no_answer_of_ssh_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ssh").write_text("#!/bin/sh\necho user me\n")
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ConfigError, match="names no host, user and port"):
        target(tmp_path, "Host n\n")
