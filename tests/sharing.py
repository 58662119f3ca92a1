"""Shares tests out among processes: `pytest -p tests.sharing --processes 2`.

All are collected once; then the process is forked, and each takes the next file whenever it is done with one. The first
one prints as it goes, then what the others printed, and ends as the worst of them. POSIX alone.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO

import mcp.client.stdio  # noqa: F401 - before pytest captures: it keeps the standard error of the moment for its servers
import pytest

BEGUN_FIRST = (
    "tests/unit/test_cost.py", "tests/unit/policy/test_kept_work.py", "tests/unit/services/test_log_files.py",
    "tests/unit/diagnosis/test_hostile.py", "tests/unit/insights/test_intervals.py", "tests/unit/services/test_sync.py",
    "tests/unit/api/test_campaign_feed.py", "tests/unit/server/web/test_now_page.py", "tests/unit/cli/test_shadowing.py",
    "tests/unit/text/test_bounded_documents.py", "tests/unit/planning/test_lists.py",
    "tests/unit/devcluster/test_workstation.py", "tests/unit/devcluster/test_whole_way.py", "tests/fuzz/test_readers.py",
)  # fmt: skip
"""The files that take longest: at the end all are busy with short ones."""

_OTHERS = pytest.StashKey[list[tuple[int, BinaryIO]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, help="of how many processes each takes the next file")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    option = session.config.option
    if option.processes < 2 or option.collectonly or session.testsfailed:
        return None
    files = [list(items) for _, items in itertools.groupby(session.items, lambda item: item.path)]
    late = len(BEGUN_FIRST)
    order = {path: number for number, path in enumerate(BEGUN_FIRST)}
    files.sort(key=lambda items: order.get(items[0].nodeid.partition("::")[0], late))
    queue, fill = os.pipe()
    os.write(fill, b"".join(number.to_bytes(2) for number in range(len(files))))  # all at once: a pipe holds 64 KB
    os.close(fill)
    session.config.stash[_OTHERS] = _forked(session.config, option.processes - 1)
    _run(session, _taken(queue, files))
    return True


def _forked(config: pytest.Config, many: int) -> list[tuple[int, BinaryIO]]:
    """The other processes and what they print; none in one of them."""
    made: list[tuple[int, BinaryIO]] = []
    for _ in range(many):
        log = tempfile.TemporaryFile()  # noqa: SIM115 - read once the process has ended
        sys.stdout.flush()
        sys.stderr.flush()
        if (pid := os.fork()) == 0:
            _prints_into(log, config)
            for _, other in [*made, (pid, log)]:
                other.close()
            return []
        made.append((pid, log))
    return made


def _prints_into(log: BinaryIO, config: pytest.Config) -> None:
    """From here on this process prints into a file: what pytest kept of the terminal is that file too."""
    captures = config.pluginmanager.getplugin("capturemanager")
    captures.stop_global_capturing()
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    captures.start_global_capturing()
    captures.suspend_global_capture()


def _taken(queue: int, files: Sequence[list[pytest.Item]]) -> Iterator[pytest.Item]:
    while number := os.read(queue, 2):
        yield from files[int.from_bytes(number)]


def _run(session: pytest.Session, items: Iterator[pytest.Item]) -> None:
    """As pytest's own loop."""
    item = next(items, None)
    while item is not None:
        following = next(items, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    for pid, log in session.config.stash.get(_OTHERS, []):
        if session.exitstatus == pytest.ExitCode.INTERRUPTED:
            os.kill(pid, signal.SIGINT)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        session.exitstatus = max(session.exitstatus, abs(code))
        sys.stdout.flush()
        with log:
            log.seek(0)
            sys.stdout.buffer.write(b"\n" + log.read())
        sys.stdout.flush()
