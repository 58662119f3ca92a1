"""Talking to the server by hand, and its limits in these tests, in seconds."""

from __future__ import annotations

import socket

import httpx2
from tests.system.web import Web

HEAD, BODY = 1.5, 1.0


def hear(conn: socket.socket, seconds: float = 10) -> bytes:
    """All that the other side says until it closes."""
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
