"""Addresses: what is private, what is exposed, and what an exposed one needs."""

from __future__ import annotations

import errno
import os
import resource
import socket
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.unit.server.http.test_tls import pair
from tests.unit.server.over_http import needs_ipv6

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.http import connections, listener
from slurm_agent_tools.server.http.listener import Address
from slurm_agent_tools.settings import HttpSettings, Settings
from slurm_agent_tools.store.tokens import Tokens
from slurm_agent_tools.transport.private_files import lock

pytestmark = pytest.mark.proves("http-lets-nobody-in")


def at(folder: Path, where: str | None) -> Address:
    return listener.chosen(Settings(state_dir=folder, http=HttpSettings(listen=where)))


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
        listener.check(address, HttpSettings(), tokens)
    with pytest.raises(ConfigError, match="there is no token"):
        listener.check(address, proxied, tokens)
    tokens.new("a", "read")
    listener.check(address, proxied, tokens)
    cert, key = pair(tmp_path, "key")
    with pytest.raises(ConfigError, match=r"http\.tls_key.* is needed"):
        listener.check(address, HttpSettings(tls_cert=cert), tokens)
    both = HttpSettings(tls_cert=cert, tls_key=key)
    listener.check(address, both, tokens)
    with pytest.raises(ConfigError, match=r"http\.hosts"):
        listener.check(Address(host="0.0.0.0", port=80, ip="0.0.0.0"), both, tokens)  # noqa: S104 - refused
    listener.check(Address(host="127.0.0.1", ip="127.0.0.1"), HttpSettings(), Tokens(tmp_path / "none"))


@pytest.mark.parametrize(("field", "value"), [
    ("hosts", "hpc.example.org:8443"), ("hosts", "https://hpc"), ("hosts", "*"), ("hosts", ""), ("proxy", "a b"),
    ("origins", "app.example"), ("origins", "https://app.example/page"), ("origins", "null"),
])  # fmt: skip
def test_a_name_that_no_request_can_have_is_told_at_the_start(tmp_path: Path, field: str, value: str):
    here = Address(host="127.0.0.1", ip="127.0.0.1")
    with pytest.raises(ConfigError, match=rf"^http\.{field}: ") as error:
        listener.check(here, HttpSettings(**{field: (value,)}), Tokens(tmp_path))
    assert error.value.hint
    good = HttpSettings(hosts=("Login1", "[::1]"), proxy=("hpc.example.org",), origins=("https://App.example:8/",))
    listener.check(here, good, Tokens(tmp_path))


def test_a_socket_where_others_could_put_theirs_is_refused(tmp_path: Path):
    (tmp_path / "all").mkdir()
    (tmp_path / "all").chmod(0o777)
    path = tmp_path / "all" / "mine" / "mcp.sock"
    with pytest.raises(ConfigError, match="can be replaced by others"), listener.listening(Address(path=path)):
        pass
    assert not path.exists()


def test_a_socket_is_private_and_gone_afterwards(tmp_path: Path):
    path = tmp_path / "new" / "mcp.sock"
    old = os.umask(0)
    try:
        with listener.listening(Address(path=path)):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
            with pytest.raises(ConfigError, match="in use by another server"), listener.listening(Address(path=path)):
                pass
    finally:
        os.umask(old)
    assert not path.exists()


def test_of_servers_that_start_at_once_over_an_old_socket_one_gets_it(tmp_path: Path):
    path = tmp_path / "s" / "mcp.sock"
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(path))
    first = lock(path.with_name("mcp.sock.lock"))  # one that has begun to look, and listens on nothing yet
    with pytest.raises(ConfigError, match="in use by another server"), listener.listening(Address(path=path)):
        pass
    os.close(first)
    with listener.listening(Address(path=path)):
        assert path.is_socket()


def test_what_is_no_socket_is_never_removed(tmp_path: Path):
    (tmp_path / "s").mkdir(mode=0o700)
    path = tmp_path / "s" / "notes.txt"
    path.write_text("mine")
    link = tmp_path / "s" / "link"
    link.symlink_to(path)
    for one in (path, link):
        with pytest.raises(ConfigError, match="no socket"), listener.listening(Address(path=one)):
            pass
    assert path.read_text() == "mine"


def test_the_socket_of_a_newer_server_is_left_alone(tmp_path: Path):
    path = tmp_path / "s" / "mcp.sock"
    with listener.listening(Address(path=path)):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as newer:
            newer.bind(str(path) + "2")
            Path(str(path) + "2").rename(path)
    assert path.exists()


@needs_ipv6
@pytest.mark.parametrize(("own", "other"), [("127.0.0.1", "::1"), ("::1", "127.0.0.1")])
def test_nobody_else_can_be_localhost_at_the_port_of_a_server(own: str, other: str):
    with listener.listening(Address(host="localhost", ip=own)) as made:
        assert [one.getsockname()[0] for one in made] == [own, other]
        port = made[0].getsockname()[1]
        assert made[1].getsockname()[1] == port
        with pytest.raises(OSError, match="in use"):
            server(other, port)
    mine, refused = Address(host="localhost", port=port, ip=own), pytest.raises(ConfigError, match="cannot be listened")
    with server(other, port), refused as error, listener.listening(mine):
        pass
    assert other in str(error.value)
    server(own, port).close()  # what was bound before it failed is free again


@needs_ipv6
def test_a_free_port_is_one_that_is_free_under_both_addresses(monkeypatch: pytest.MonkeyPatch):
    made, taken = socket.create_server, []

    def once(address: tuple[str, int], **more: Any) -> socket.socket:
        if address[0] == "::1" and len(taken) < 3:
            taken.append(address[1])
            raise OSError(errno.EADDRINUSE, "Address already in use")
        return made(address, **more)

    monkeypatch.setattr(socket, "create_server", once)
    with listener.listening(Address(host="127.0.0.1", ip="127.0.0.1")) as found:
        assert len(found) == 2
    assert len(taken) == 3


@pytest.mark.parametrize("why", [errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT])
def test_a_machine_without_the_other_address_has_one_socket(monkeypatch: pytest.MonkeyPatch, why: int):
    made = socket.create_server

    def alone(address: tuple[str, int], **more: Any) -> socket.socket:
        if address[0] == "::1":
            raise OSError(why, "not here")
        return made(address, **more)

    monkeypatch.setattr(socket, "create_server", alone)
    with listener.listening(Address(host="127.0.0.1", ip="127.0.0.1")) as found:
        assert len(found) == 1


def server(ip: str, port: int) -> socket.socket:
    return socket.create_server((ip, port), family=socket.AF_INET6 if ":" in ip else socket.AF_INET)


def test_more_connections_than_open_files_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 1024))
    with pytest.raises(ConfigError, match=r"http\.max_connections") as error:
        connections.open_connections(HttpSettings())
    assert "at most 724" in error.value.hint
    connections.open_connections(HttpSettings(max_connections=700))
