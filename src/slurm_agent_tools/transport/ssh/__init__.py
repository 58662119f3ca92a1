"""A cluster behind a login node, over one SSH connection. Nothing here needs a POSIX system on this side.

asyncssh is loaded by modules in here alone, so after this file. It asks at once for two libraries that it can do
without, and on Linux Python looks for what is not installed with `gcc` and `ld`, wherever PATH has them. A project may
be on PATH, and four compilers take longer than all else that is loaded: these libraries are asked for by their names.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import sys

_NAMES = {
    "nettle": ("libnettle.so.8", "libnettle.so.7", "libnettle.so.6"),
    "oqs": tuple(f"liboqs.so.{number}" for number in range(12, 3, -1)),
    "libnettle": (), "libnettle-6": (), "liboqs": (),
}  # fmt: skip

_usual = ctypes.util.find_library


def _found(name: str) -> str | None:
    """The library as the loader knows it; None where it is not installed. Starts no program for asyncssh's."""
    if name not in _NAMES:
        return _usual(name)
    for known in _NAMES[name]:
        try:
            ctypes.CDLL(known)
        except OSError:
            continue
        return known
    return None


if sys.platform == "linux":
    ctypes.util.find_library = _found
