"""One connection and all of them, with a transport, a clock and an HTTP protocol of the test's own."""

from __future__ import annotations

import asyncio
import pwd
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from slurm_agent_tools.server.http import connections
from slurm_agent_tools.server.http.connections import HELD_BY, NO_ACCOUNT, Connection, Crowd
from slurm_agent_tools.server.http.request_limits import ADMITTED
from slurm_agent_tools.settings import HttpSettings

pytestmark = pytest.mark.proves("http-lets-nobody-in")
LIMITS = HttpSettings(max_connections=4, head_timeout=10, body_timeout=20)
WHOLE = {"type": "http.request", "body": b"", "more_body": False}


@dataclass
class Timer:
    at: float
    run: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class Time:
    """The loop and the clock, which go on when the test says so."""

    now: float = 0.0
    timers: list[Timer] = field(default_factory=list)

    def call_later(self, delay: float, call: Callable[..., None], *args: Any) -> Timer:
        self.timers.append(Timer(self.now + delay, lambda: call(*args)))
        return self.timers[-1]

    def monotonic(self) -> float:
        return self.now

    def get_running_loop(self) -> Time:
        return self

    def pass_by(self, seconds: float) -> None:
        self.now += seconds
        while due := [one for one in self.timers if one.at <= self.now and not one.cancelled]:
            due[0].cancelled = True
            due[0].run()


@dataclass
class UnixSocket:
    """What the kernel says of the other end of a Unix socket."""

    uid: int
    family: int = socket.AF_UNIX

    def getsockopt(self, *_: int) -> bytes:
        return struct.pack("3i", 1, self.uid, self.uid)


@dataclass
class Wire:
    """The transport: what was written, and how it ended."""

    said: bytes = b""
    ended: str = ""
    unread: int = 0
    uid: int | None = None

    def get_extra_info(self, _: str) -> UnixSocket | None:
        return None if self.uid is None else UnixSocket(self.uid)

    def write(self, data: bytes) -> None:
        self.said += data

    def is_closing(self) -> bool:
        return bool(self.ended)

    def close(self) -> None:
        self.ended = self.ended or "closed"

    def abort(self) -> None:
        self.ended = "aborted"

    def get_write_buffer_size(self) -> int:
        return self.unread


class Inner(asyncio.Protocol):
    """uvicorn's place: keeps what it was handed."""

    def __init__(self, app_state: dict[str, Any], **_: Any) -> None:
        self.state, self.got, self.out = app_state, b"", Wire()

    def connection_made(self, transport: Any) -> None:
        self.out = transport

    def data_received(self, data: bytes) -> None:
        self.got += data


@pytest.fixture(autouse=True)
def accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has the numbers 33 and 1000, and no others."""
    known = {uid: pwd.struct_passwd(("name", "x", uid, uid, "", "/", "/bin/sh")) for uid in (33, 1000)}
    monkeypatch.setattr(pwd, "getpwuid", known.__getitem__)


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(connections.asyncio, "get_running_loop", made.get_running_loop)
    monkeypatch.setattr(connections.time, "monotonic", made.monotonic)
    return made


@dataclass
class Made:
    held: Connection
    wire: Wire
    inner: Inner

    def scope(self, *, admitted: bool = False, length: bool = False) -> dict[str, Any]:
        headers = [(b"content-length", b"9")] if length else []
        return {"type": "http", "headers": headers, "state": {HELD_BY: self.held, ADMITTED: admitted}}


def made(crowd: Crowd, uid: int | None = None) -> Made:
    held, wire = Connection(Inner, crowd, app_state={"own": 1}), Wire(uid=uid)
    held.connection_made(wire)
    return Made(held, wire, held._inner)


def serving(one: Made, scope: dict[str, Any], *messages: dict[str, Any], then: Callable[[], None] = lambda: None):
    """Have the app send these for a request, and do `then` before it returns."""

    async def app(_: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)
        then()

    async def nothing() -> dict[str, Any]:
        return WHOLE

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            one.inner.out.write(b"HTTP/1.1 %d x\r\n\r\n" % message["status"])

    run = one.held.serve(app, scope, nothing, send)
    with pytest.raises(StopIteration):
        run.send(None)


START, END = {"type": "http.response.start", "status": 400}, {"type": "http.response.body", "body": b""}


def test_what_comes_is_handed_on_and_a_request_can_name_its_connection(time: Time):
    one = made(Crowd(LIMITS))
    one.held.data_received(b"GET")
    assert one.inner.got == b"GET"
    assert one.inner.state == {"own": 1, HELD_BY: one.held}


def test_the_longest_quiet_one_makes_room_for_a_new_one(time: Time):
    crowd = Crowd(LIMITS)
    old = []
    for _ in range(4):
        old.append(made(crowd))
        time.pass_by(1)
    old[0].held.data_received(b"x")
    new = made(crowd)
    assert [one.wire.ended for one in old] == ["", "aborted", "", ""]
    new.held.data_received(b"GET")
    assert new.inner.got == b"GET"


def test_a_users_crowd_makes_room_by_its_own_connections(time: Time):
    """On a Unix socket: the web server's, with fewer of them, are left alone, however old they are."""
    crowd = Crowd(LIMITS)
    server = made(crowd, uid=33)
    for _ in range(20):
        time.pass_by(0.1)
        made(crowd, uid=1000)
    assert (server.wire.ended, server.held.uid) == ("", 33)
    for ended in ("", "aborted"):
        time.pass_by(0.1)
        made(crowd, uid=33)
        assert server.wire.ended == ended
        assert sorted(one.uid or 0 for one in crowd.open) == [33, 33, 1000, 1000]


def test_a_crowd_under_numbers_that_no_account_has_makes_room_by_its_own_connections(time: Time):
    """A user has ten thousands of them (subuid(5)), each for one connection."""
    crowd = Crowd(LIMITS)
    server = [made(crowd, uid=33) for _ in range(2)]
    for uid in range(100_000, 100_020):
        time.pass_by(0.1)
        made(crowd, uid=uid)
    assert [one.wire.ended for one in server] == ["", ""]
    assert sorted(one.uid or 0 for one in crowd.open) == [NO_ACCOUNT, NO_ACCOUNT, 33, 33]


def test_who_was_admitted_is_not_closed_for_another_and_the_other_is_told(time: Time):
    crowd = Crowd(LIMITS)
    busy = [made(crowd) for _ in range(4)]
    late: list[Made] = []

    def come() -> None:
        late.append(made(crowd))

    def deeper(left: list[Made]) -> None:
        if not left:
            come()
            return
        serving(left[0], left[0].scope(admitted=True), then=lambda: deeper(left[1:]))

    deeper(busy)
    assert [one.wire.ended for one in busy] == [""] * 4
    assert late[0].wire.said == b""
    late[0].held.data_received(b"GET")
    assert late[0].inner.got == b""
    assert late[0].wire.said.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"busy" in late[0].wire.said
    late[0].held.connection_lost(None)
    assert len(crowd.open) == 4


@pytest.mark.parametrize("answered", [False, True])
def test_a_head_that_does_not_come_in_time_is_told_so(time: Time, answered: bool):
    one = made(Crowd(LIMITS))
    if answered:
        serving(one, one.scope(), START, END)
    time.pass_by(9)
    one.held.data_received(b"GET /")
    time.pass_by(11)
    assert one.wire.said.count(b"HTTP/1.1 408 Request Timeout") == 1
    assert one.wire.ended == "closed"


def test_who_says_nothing_is_closed_without_a_word(time: Time):
    one = made(Crowd(LIMITS))
    time.pass_by(10)
    assert (one.wire.said, one.wire.ended) == (b"", "closed")


def test_the_rest_of_what_was_refused_is_not_answered_again(time: Time):
    one = made(Crowd(LIMITS))
    serving(one, one.scope(length=True), START, END)
    one.held.data_received(b"rest")
    time.pass_by(10)
    assert (one.wire.said.count(b"HTTP/1.1"), one.wire.ended) == (1, "closed")


def test_a_request_that_is_being_answered_may_take_its_time(time: Time):
    one = made(Crowd(LIMITS))
    one.held.data_received(b"GET")

    def rest() -> None:
        one.held.data_received(b"body")
        time.pass_by(1000)

    serving(one, one.scope(), then=rest)
    assert one.wire.ended == ""


def test_the_end_of_one_request_is_not_the_end_of_the_next(time: Time):
    one = made(Crowd(LIMITS))
    following = one.scope(admitted=True)
    free: list[bool] = []

    def inside() -> None:
        serving(one, one.scope())  # ends while the other, which was sent behind it, goes on
        one.held._request = following
        free.append(one.held.free)

    serving(one, one.scope(), START, END, then=inside)
    assert free == [False]
    assert one.held.free is False


def test_an_answer_has_to_be_taken_time_after_time(time: Time):
    one = made(Crowd(LIMITS))
    serving(one, one.scope())
    one.wire.unread = 100
    one.held.pause_writing()
    time.pass_by(20)
    assert one.wire.ended == "aborted"


def test_who_takes_some_goes_on(time: Time):
    one = made(Crowd(LIMITS))
    serving(one, one.scope())
    one.wire.unread = 100
    one.held.pause_writing()
    for left in (90, 80):
        one.wire.unread = left
        time.pass_by(20)
        assert one.wire.ended == ""
    one.held.resume_writing()
    time.pass_by(100)
    assert one.wire.ended == ""


def test_uvicorns_own_refusal_is_said_in_our_words_and_once(time: Time):
    one = made(Crowd(LIMITS))
    for piece in (b"HTTP/1.1 400 Bad Request\r\n\r\n", b"Invalid HTTP request received.", b"0\r\n\r\n"):
        one.inner.out.write(piece)
    assert one.wire.said.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert one.wire.said.endswith(b"one valid length.\n")
    assert one.wire.said.count(b"Invalid") == 1
    assert one.wire.ended == "closed"


def test_the_apps_own_refusal_is_left_as_it_is(time: Time):
    one = made(Crowd(LIMITS))
    serving(one, one.scope(), START, END)
    assert one.wire.said == b"HTTP/1.1 400 x\r\n\r\n"
    assert one.wire.ended == ""
