"""What systemd does of `SystemCallFilter=` and `RestrictAddressFamilies=`, by the same library, for a command.

`python -I syscall_filter.py FILE COMMAND...`: FILE names the system calls that are let through, one a line. Every other one
ends the process (SIGSYS), and a socket of another family is refused, as systemd.exec(5) says.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
EQUAL, GREATER = 4, 6
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6)


class _Compared(ctypes.Structure):
    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def allowed(lines: list[str]) -> set[str]:
    """The names that lines `SystemCallFilter=` of a unit let through; systemd's own list of defaults is always in."""
    found = _named("@default")
    for line in lines:
        for word in line.removeprefix("~").split():
            found = found - _named(word) if line.startswith("~") else found | _named(word)
    return found


def _named(word: str) -> set[str]:
    if not word.startswith("@"):
        return {word}
    told = subprocess.run(
        ["systemd-analyze", "syscall-filter", word], check=True, capture_output=True, text=True
    ).stdout
    words = [line.strip() for line in told.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return {name for one in words for name in (_named(one) if one.startswith("@") else {one})}


def load(names: list[str]) -> None:
    """From here on this process and what it starts are held. Needs no rights, but that no new ones can be got."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    held = ctypes.c_void_p(library.seccomp_init(KILL))
    number = library.seccomp_syscall_resolve_name(b"socket")
    others = [(EQUAL, family) for family in range(max(FAMILIES)) if family not in FAMILIES]
    rules = [(ALLOW, EQUAL, family) for family in FAMILIES]
    rules += [(ERRNO | errno.EAFNOSUPPORT, how, family) for how, family in [*others, (GREATER, max(FAMILIES))]]
    for action, how, family in rules:
        compared = _Compared(0, how, family, 0)
        _done(library.seccomp_rule_add_array(held, action, number, 1, ctypes.byref(compared)))
    for name in names:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if name != "socket" and number >= 0:
            _done(library.seccomp_rule_add_array(held, ALLOW, number, 0, None))
    _done(library.seccomp_load(held))


def _done(code: int) -> None:
    if code:
        raise OSError(-code, os.strerror(-code))


if __name__ == "__main__":
    load(Path(sys.argv[1]).read_text().split())
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606 - an argument vector
