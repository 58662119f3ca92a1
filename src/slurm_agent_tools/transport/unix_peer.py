"""Who is at the other end of a Unix socket, by the kernel's word alone."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

from slurm_agent_tools.errors import AccessError

_CREDENTIALS = struct.Struct("3i")


@dataclass(frozen=True, slots=True)
class UnixUser:
    """A user of this machine, as the kernel knows it."""

    uid: int
    name: str


def peer(connection: socket.socket) -> UnixUser:
    """The user whose process connected. Raises AccessError for one whose jobs no ticket can bind."""
    return user(_uid(connection))


def peer_uid(connection: socket.socket | None) -> int | None:
    """The number of that user, whoever it is; None over TCP, and on a system whose kernel does not tell it."""
    if connection is None or connection.family != getattr(socket, "AF_UNIX", None):
        return None
    try:
        return _uid(connection)
    except (AttributeError, OSError):
        return None


def _uid(connection: socket.socket) -> int:
    """Of the moment of connecting: a program that hands its connection on, hands on its name."""
    told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(told)
    return int(uid)


def user(uid: int) -> UnixUser:
    """The user of a number. Raises AccessError for root, whom the controller asks for no ticket, and for a stranger."""
    if uid == 0:
        hint = "Run it as the user whose job it is; what root submits is root's to answer for."
        raise AccessError("root's requests are not judged here", hint=hint)
    import pwd  # noqa: PLC0415 - not everywhere

    try:
        return UnixUser(uid, pwd.getpwuid(uid).pw_name)
    except KeyError as error:
        raise AccessError(f"this machine knows no user with the number {uid}", hint="Ask an administrator.") from error
