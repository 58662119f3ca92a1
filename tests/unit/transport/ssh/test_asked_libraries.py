"""Libraries that the SSH library can do without are asked for by name; all others as ever."""

from __future__ import annotations

import ctypes
import ctypes.util
import sys

import pytest

from slurm_agent_tools.transport import ssh

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Python asks a compiler on Linux alone")


class Library:
    """Loads what is installed, and keeps what was asked for."""

    def __init__(self, *installed: str) -> None:
        self.installed, self.asked = installed, list[str]()

    def __call__(self, name: str) -> object:
        self.asked.append(name)
        if name not in self.installed:
            raise OSError(f"{name}: cannot open shared object file")
        return object()


@pytest.mark.parametrize(
    ("name", "installed", "found"),
    [
        ("nettle", ("libnettle.so.8",), "libnettle.so.8"),
        ("nettle", ("libnettle.so.6", "libnettle.so.7"), "libnettle.so.7"),
        ("nettle", (), None),
        ("oqs", ("liboqs.so.4", "liboqs.so.9"), "liboqs.so.9"),
        ("oqs", ("liboqs.so.3",), None),
    ],
)
def test_the_newest_installed_version_is_found_by_its_name(
    name: str, installed: tuple[str, ...], found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = Library(*installed)
    monkeypatch.setattr(ctypes, "CDLL", loads)

    assert ctypes.util.find_library(name) == found
    assert loads.asked[-1] == found if found else len(loads.asked) > 2


@pytest.mark.parametrize("name", ["libnettle", "libnettle-6", "liboqs"])
def test_names_that_no_linux_has_are_looked_for_nowhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loads = Library()
    monkeypatch.setattr(ctypes, "CDLL", loads)

    assert ctypes.util.find_library(name) is None
    assert loads.asked == []


def test_any_other_library_is_looked_for_as_python_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "_usual", {"ssl": "libssl.so.3"}.get)

    assert ctypes.util.find_library("ssl") == "libssl.so.3"
