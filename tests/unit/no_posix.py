"""A user's machine without POSIX, as far as Python can be told so: run `python no_posix.py CODE`.

Modules and names of `os` and `signal` that Windows does not have are taken away before anything is imported.
"""

from __future__ import annotations

import importlib
import importlib.abc
import os
import pkgutil
import signal
import sys

MODULES = frozenset(
    {
        "pwd", "grp", "fcntl", "resource", "termios", "tty", "pty", "syslog", "crypt", "spwd", "nis", "posixshmem",
        "_posixshmem", "readline", "curses",
    }
)  # fmt: skip
OS = (
    "O_NONBLOCK", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_PATH", "O_NOCTTY", "O_SYNC", "O_DSYNC",
    "fork", "forkpty", "setsid", "killpg", "getpgid", "getuid", "geteuid", "getgid", "getegid", "getgroups",
    "getresuid", "chown", "fchown", "lchown", "fchmod", "mkfifo", "mknod", "statvfs", "fstatvfs", "sysconf", "uname",
    "getloadavg", "ttyname", "nice", "initgroups", "setuid", "setgid", "setgroups", "ctermid", "sched_getaffinity",
)  # fmt: skip
SIGNAL = ("SIGKILL", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGCHLD", "SIGCONT", "SIGSTOP", "SIGTSTP",
          "SIGPIPE", "SIGWINCH", "alarm", "setitimer", "pthread_sigmask", "sigwait")  # fmt: skip
LOADED = (
    "asyncio.subprocess", "getpass", "importlib.metadata", "logging.handlers", "multiprocessing", "pathlib", "shutil",
    "sqlite3", "ssl", "subprocess", "tarfile", "tempfile", "zipfile", "anyio._backends._asyncio", "asyncssh", "mcp.server",
    "mcp.server.elicitation", "mcp.client.stdio", "structlog", "uvicorn", "starlette.applications", "yaml",
)  # fmt: skip
PACKAGE = "slurm_agent_tools"
OURS = frozenset(
    f"{PACKAGE}.{name}"
    for name in (
        "devcluster",
        "assets",
        "cli.commands.demo_command",
        "cli.commands.demo_project",
        "cli.commands.devcluster_command",
        "cli.commands.site_check",
        "cli.commands.site_command",
        "cli.commands.site_install",
        "cli.commands.site_cluster",
        "server.site.site_layout",
        "cli.commands.site_trial",
        "cli.commands.workstation_command",
        "cli.commands.workstation_unit",
    )
)  # they bring up a Slurm of their own, or a service: Linux


class Absent(importlib.abc.MetaPathFinder):
    """Finds nothing where a POSIX module is asked for."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MODULES:
            raise ModuleNotFoundError(f"no module named {name!r} on this machine", name=name)


def take_away() -> None:
    """From here on this process is poorer.

    The standard library and the packages of others are loaded before: they look at sys.platform and have ways of their
    own there, which cannot be tried here. What is tried is our code.
    """
    for name in LOADED:
        importlib.import_module(name)
    for name in MODULES & set(sys.modules):
        del sys.modules[name]
    sys.meta_path.insert(0, Absent())
    os.supports_dir_fd.clear()
    os.supports_follow_symlinks.discard(os.link)
    for module, names in ((os, OS), (signal, SIGNAL)):
        for name in names:
            if hasattr(module, name):
                delattr(module, name)


def walk() -> list[str]:
    """Import every module of the package but the rooms that are for Linux; returns what failed."""
    package, failed = importlib.import_module(PACKAGE), []
    for found in pkgutil.walk_packages(package.__path__, f"{PACKAGE}.", onerror=lambda _: None):
        if found.name.endswith("__main__") or any(f"{found.name}.".startswith(f"{room}.") for room in OURS):
            continue
        try:
            importlib.import_module(found.name)
        except Exception as error:  # noqa: BLE001 - every reason is told
            failed.append(f"{found.name}: {type(error).__name__}: {error}")
    return failed


if __name__ == "__main__":
    take_away()
    code = sys.argv[1]
    sys.argv = ["no_posix", *sys.argv[2:]]
    exec(code)  # noqa: S102 - the test's own words
