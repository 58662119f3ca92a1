"""Talking to the server by hand, and its limits in these tests, in seconds."""

from __future__ import annotations

import socket

import httpx2
from tests.system.web import Web
from tests.watchdog import SECONDS

HEAD, BODY = 1.5, 1.0
LARGEST = 100_000  # bytes of a body
PER_MINUTE = 60
MOST = 50 * PER_MINUTE  # calls, of which no machine makes so many before it is told to wait


def hear(conn: socket.socket, seconds: float = SECONDS) -> bytes:
    """All that the other side says until it closes. TimeoutError where it does not."""
    conn.settimeout(seconds)
    said = b""
    try:
        while piece := conn.recv(65536):
            said += piece
    except ConnectionResetError:
        pass
    return said


def knock(web: Web, text: str = "") -> socket.socket:
    conn = socket.create_connection(("127.0.0.1", web.port), 10)
    conn.sendall(text.encode())
    return conn


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["data"]["code"]
