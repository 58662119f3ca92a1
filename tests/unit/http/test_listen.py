"""Addresses: what is private, what is exposed, and what an exposed one needs."""

from __future__ import annotations

import os
import resource
import socket
import stat
from pathlib import Path

import pytest

from slurm_agent_tools.config import HttpSettings, Settings
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.http import listen, wire
from slurm_agent_tools.http.listen import Address
from slurm_agent_tools.http.tokens import Tokens

pytestmark = pytest.mark.proves("http-lets-nobody-in")


def at(folder: Path, where: str | None) -> Address:
    return listen.chosen(Settings(state_dir=folder, http=HttpSettings(listen=where)))


@pytest.mark.parametrize(("where", "exposed", "wildcard"), [
    ("127.0.0.1:0", False, False), ("127.5.6.7:80", False, False), ("[::1]:80", False, False),
    ("localhost:80", False, False), ("unix:/x/y", False, False), ("0.0.0.0:80", True, True), ("[::]:80", True, True),
    ("10.1.2.3:80", True, False),
])  # fmt: skip
def test_which_addresses_others_can_reach(tmp_path: Path, where: str, exposed: bool, wildcard: bool):
    address = at(tmp_path, where)
    assert (address.exposed, address.wildcard) == (exposed, wildcard)


@pytest.mark.parametrize("where", ["nonsense", "127.0.0.1", ":80", "127.0.0.1:99999", "unix:/" + "x" * 200, "a b:1"])
def test_what_is_no_address_is_said_with_the_field_and_the_mend(tmp_path: Path, where: str):
    with pytest.raises(ConfigError, match=r"^http\.listen: ") as error:
        at(tmp_path, where)
    assert error.value.hint


def test_the_usual_socket_is_in_the_users_runtime_folder_if_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    assert at(tmp_path, None).path == tmp_path / "http" / "mcp.sock"
    (tmp_path / "run").mkdir()
    assert at(tmp_path, None).path == tmp_path / "run" / "slurm-agent-tools" / "mcp.sock"


def test_beyond_loopback_it_takes_a_token_and_tls_or_a_proxy(tmp_path: Path):
    tokens, address = Tokens(tmp_path), Address(host="10.1.2.3", port=80, ip="10.1.2.3")
    proxied = HttpSettings(proxy=("hpc.example.org",))
    with pytest.raises(ConfigError, match="without TLS"):
        listen.check(address, HttpSettings(), tokens)
    with pytest.raises(ConfigError, match="there is no token"):
        listen.check(address, proxied, tokens)
    tokens.new("a", "read")
    listen.check(address, proxied, tokens)
    key = tmp_path / "key.pem"
    key.write_text("")
    with pytest.raises(ConfigError, match=r"http\.tls_key.* is needed"):
        listen.check(address, HttpSettings(tls_cert=key), tokens)
    both = HttpSettings(tls_cert=key, tls_key=key)
    listen.check(address, both, tokens)
    with pytest.raises(ConfigError, match=r"http\.hosts"):
        listen.check(Address(host="0.0.0.0", port=80, ip="0.0.0.0"), both, tokens)  # noqa: S104 - refused
    listen.check(Address(host="127.0.0.1", ip="127.0.0.1"), HttpSettings(), Tokens(tmp_path / "none"))


def test_a_socket_is_private_and_gone_afterwards(tmp_path: Path):
    path = tmp_path / "new" / "mcp.sock"
    old = os.umask(0)
    try:
        with listen.listening(Address(path=path)):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            with pytest.raises(ConfigError, match="in use by another server"), listen.listening(Address(path=path)):
                pass
    finally:
        os.umask(old)
    assert not path.exists()


def test_what_is_no_socket_is_never_removed(tmp_path: Path):
    (tmp_path / "s").mkdir(mode=0o700)
    path = tmp_path / "s" / "notes.txt"
    path.write_text("mine")
    link = tmp_path / "s" / "link"
    link.symlink_to(path)
    for one in (path, link):
        with pytest.raises(ConfigError, match="no socket"), listen.listening(Address(path=one)):
            pass
    assert path.read_text() == "mine"


def test_the_socket_of_a_newer_server_is_left_alone(tmp_path: Path):
    path = tmp_path / "s" / "mcp.sock"
    with listen.listening(Address(path=path)):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as newer:
            newer.bind(str(path) + "2")
            Path(str(path) + "2").rename(path)
    assert path.exists()


def test_more_connections_than_open_files_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    with pytest.raises(ConfigError, match=r"http\.max_connections") as error:
        wire.room(HttpSettings())
    assert "at most 724" in error.value.hint
    wire.room(HttpSettings(max_connections=700))
