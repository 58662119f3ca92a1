"""Whose host keys count: as ssh has it, and none by itself."""

import base64
import hmac

import asyncssh
import pytest
from tests.unit.transport.sshserver import Node, connects, running

from slurm_agent_tools.errors import AccessRefused
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.transport.ssh.connection import SshConnection


@pytest.mark.proves("host-keys-are-checked")
async def test_an_unknown_host_key_is_refused_with_fingerprint_and_command(node):
    known = node.folder / "nobody"
    known.write_text("")
    with pytest.raises(AccessRefused, match="not known") as caught:
        await SshConnection(node.settings(known_hosts=known)).connect()
    assert node.host_key.get_fingerprint() in caught.value.message
    assert f"ssh -F {node.folder / 'config'} -o UserKnownHostsFile={known}" in caught.value.hint
    assert (known.read_text(), node.logins) == ("", 0)


async def test_a_missing_known_hosts_file_trusts_nobody(node):
    with pytest.raises(AccessRefused, match="not known"):
        await SshConnection(node.settings(known_hosts=node.folder / "absent")).connect()


async def test_a_configuration_that_switches_the_check_off_does_not(node):
    settings = node.settings().model_copy(update={"known_hosts": None})
    with node.settings().ssh_config.open("a") as file:
        file.write("  UserKnownHostsFile none\n  StrictHostKeyChecking no\n")
    with pytest.raises(AccessRefused):
        await SshConnection(settings).connect()


@pytest.mark.proves("host-keys-are-checked")
async def test_a_changed_host_key_is_refused_in_stronger_words(node):
    settings = node.settings()
    node.known(asyncssh.generate_private_key("ssh-ed25519"))
    with pytest.raises(AccessRefused, match="has changed") as caught:
        await SshConnection(settings).connect()
    assert f"ssh-keygen -R '[127.0.0.1]:{node.port}'" in caught.value.hint


async def test_a_key_of_another_kind_than_the_known_one_is_refused(node):
    settings = node.settings()
    node.known(asyncssh.generate_private_key("ecdsa-sha2-nistp256"))
    with pytest.raises(AccessRefused):
        await SshConnection(settings).connect()


@pytest.mark.proves("host-keys-are-checked")
async def test_a_changed_key_is_told_with_the_line_that_it_is_not(node):
    settings = node.settings()
    path = node.known(asyncssh.generate_private_key("ssh-ed25519"))
    line = path.read_text()
    path.write_text(f"# mine\nother.host {line.partition(' ')[2]}|1|broken|hash ssh-ed25519 AAAA\n{line}")
    with pytest.raises(AccessRefused, match=rf"Known is the one in {path}:4\.") as caught:
        await SshConnection(settings).connect()
    assert f"`ssh-keygen -R '[127.0.0.1]:{node.port}' -f {path}`" in caught.value.hint


@pytest.mark.proves("host-keys-are-checked")
@pytest.mark.parametrize("label", ["[127.0.0.1]:{port}", "*", "127.0.0.1"])
async def test_a_revoked_key_is_refused_though_it_is_known(node, label):
    settings = node.settings()
    text = settings.known_hosts.read_text()
    revoked = f"@revoked {label.format(port=node.port)} {text.partition(' ')[2]}"
    settings.known_hosts.write_text(text + revoked)
    with pytest.raises(AccessRefused, match=rf"is revoked \({settings.known_hosts}:2\)") as caught:
        await SshConnection(settings).connect()
    assert "staff" in caught.value.hint


async def test_a_key_revoked_for_the_whole_machine_counts_beside_the_persons_own_file(node):
    text = node.settings().known_hosts.read_text()
    (node.folder / "all").write_text(f"@revoked * {text.partition(' ')[2]}")
    with node.settings().ssh_config.open("a") as file:
        file.write(f"  UserKnownHostsFile {node.known()}\n  GlobalKnownHostsFile {node.folder}/all\n")
    settings = ClusterSettings(host="node", ssh_config=node.folder / "config", remote_root="x")
    with pytest.raises(AccessRefused, match="revoked"):
        await SshConnection(settings).connect()


@pytest.mark.proves("host-keys-are-checked")
async def test_the_key_of_an_address_is_no_key_of_a_name(node):
    key = node.settings().known_hosts.read_text()  # of [127.0.0.1]:PORT
    config = node.folder / "config"
    config.write_text(config.read_text().replace("127.0.0.1", "localhost"))
    settings = node.settings().model_copy(update={"ssh_config": config})
    config.write_text(config.read_text().replace("127.0.0.1", "localhost"))
    with pytest.raises(AccessRefused, match=rf"\[localhost\]:{node.port} is not known"):
        await SshConnection(settings).connect()
    (node.folder / "known_hosts").write_text(key.replace("127.0.0.1", "localhost"))
    await connects(settings)


@pytest.mark.proves("host-keys-are-checked")
async def test_hosts_are_known_by_hash_pattern_alias_and_without_port(node):
    settings = node.settings()
    key = settings.known_hosts.read_text().partition(" ")[2]
    salt, name = b"s" * 20, f"[127.0.0.1]:{node.port}".encode()
    hashed = base64.b64encode(salt), base64.b64encode(hmac.new(salt, name, "sha1").digest())
    for label in (
        f"|1|{hashed[0].decode()}|{hashed[1].decode()}",
        "[127.*]:*",
        "127.0.0.1",
        f"x,[127.0.0.1]:{node.port}",
    ):
        settings.known_hosts.write_text(f"{label} {key}")
        await connects(settings)
    settings.known_hosts.write_text(f"farm {key}")
    with settings.ssh_config.open("a") as file:
        file.write("  HostKeyAlias Farm\n")
    await connects(settings)


@pytest.mark.proves("host-keys-are-checked")
async def test_a_certificate_counts_by_its_authority_alone(tmp_path):
    authority, other = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    node = Node(tmp_path)
    node.certificate = authority.generate_host_certificate(node.host_key, "host", principals=["127.0.0.1"])
    async with running(node):
        settings = node.settings()
        known, plain = settings.known_hosts, settings.known_hosts.read_text()
        for text in (f"@cert-authority [127.*]:* {_text(authority)}", plain):
            known.write_text(text)
            await connects(settings)
        for text, words in (
            (f"@cert-authority * {_text(other)}", "an authority that known_hosts does not name"),
            (f"* {_text(authority)}", "has changed"),
            ("", r"is not known \(ssh-ed25519 SHA256:"),
        ):
            known.write_text(text)
            with pytest.raises(AccessRefused, match=words):
                await SshConnection(settings).connect()


def _text(key: asyncssh.SSHKey) -> str:
    return key.export_public_key().decode()


async def test_an_unknown_host_shows_the_key_that_ssh_would_show(node):
    """A person compares fingerprints with ssh, which asks for ed25519 first."""
    known = node.folder / "nobody"
    known.write_text(f"127.0.0.1 {_text(asyncssh.generate_private_key('ecdsa-sha2-nistp256'))}")
    with pytest.raises(AccessRefused, match=r"has changed \(ssh-ed25519") as caught:
        await SshConnection(node.settings(known_hosts=known)).connect()
    assert node.host_key.get_fingerprint() in caught.value.message
