"""A person at a pseudo-terminal, for tests of what asks one."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import threading
from types import SimpleNamespace

import pytest


class Person:
    """Somebody at a terminal of 60 lines, who types when asked; `name` is the terminal's."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._ours, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 100, 0, 0))
        self.name, self._seen = os.ttyname(self._theirs), bytearray()
        self._typing: list[threading.Thread] = []
        self._gone = threading.Event()

    def sits(self) -> None:
        """Be the terminal of this process."""
        self._patch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True, fileno=lambda: self._theirs))
        self._patch.setattr(sys.stdout, "isatty", lambda: True, raising=False)

    def types_ahead(self, line: str) -> None:
        """Type before anything is asked."""
        self.sits()
        os.write(self._ours, f"{line}\n".encode())

    def types(self, lines: str) -> None:
        """Type each line when it is asked for."""
        self.sits()
        self._typing.append(threading.Thread(target=self._answers, args=(lines.split("\n"),)))
        self._typing[-1].start()

    def _answers(self, lines: list[str]) -> None:
        asked = 0
        while not self._gone.wait(0.01):
            self._reads()
            now = len(re.findall(rb"ends this: |Type [\w ]+ to [^\r\n]*: ", bytes(self._seen)))
            if now > asked and lines:
                asked = now
                os.write(self._ours, f"{lines.pop(0)}\n".encode())

    def _reads(self) -> None:
        while select.select([self._ours], [], [], 0)[0]:
            self._seen.extend(os.read(self._ours, 65536))

    def sees(self) -> str:
        """All that was written to the terminal. Nothing is typed from now on."""
        self._gone.set()
        for one in self._typing:
            one.join()
        self._reads()
        return self._seen.decode()

    def leaves(self) -> None:
        self.sees()
        for handle in (self._ours, self._theirs):
            os.close(handle)
