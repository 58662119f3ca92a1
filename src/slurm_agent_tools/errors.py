"""The error tree. A refusal by policy is a reply, not one of these.

AgentToolsError
├── InputError              the caller must change what it sent (exit 2)
│   ├── ConfigError         a settings or policy file must be mended (exit 2)
│   └── UnknownJob          Slurm itself says that there is no such job (exit 2)
├── SlurmError              Slurm could not do or tell it (exit 1)
│   ├── SlurmMissing        no Slurm commands on this machine
│   ├── SlurmUnreachable    the controller does not answer; nothing was changed
│   │   ├── AccountingUnreachable   slurmdbd does not answer; the controller may
│   │   └── SlurmUnconfigured   Slurm's commands find no configuration
│   ├── AccessRefused       a login node's host key is not trusted, or it lets us not in; nothing was changed
│   ├── SlurmUncertain      the command may have been carried out; look before repeating it
│   ├── SiteUnreachable     the site's service, which judges here, does not answer; nothing was sent
│   ├── SlurmGarbled        Slurm's answer does not have the columns that were asked for
│   └── SlurmRefused        Slurm understood and said no
├── StorageError            a file or the ledger could not be read or written (exit 1)
├── MemoryUnreachable       the memory server takes no records; no tool's answer depends on it (exit 1)
└── AccessError             this server does not do it for this caller (exit 1)
    ├── ScopeMissing        the caller's token may only read
    └── ServerStopping      the server is stopping; what was under way is said in the message
"""

from __future__ import annotations

from typing import ClassVar

_VERBS = frozenset({
    "is", "are", "was", "has", "does", "must", "cannot", "could", "needs", "contains", "holds", "names", "means",
    "mixes", "lies", "leads", "leaves", "disappeared",
})  # fmt: skip
"""A problem that begins with one of these is said of the value."""


class AgentToolsError(Exception):
    """Base of all errors: `code` is stable, `hint` says what to do next."""

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class InputError(AgentToolsError):
    """Bad input: names the field, the value and the mend."""

    code = "invalid_input"
    exit_code = 2

    def __init__(self, field: str, value: object, problem: str, *, hint: str = "") -> None:
        super().__init__(_sentence(_cut(field, 200), value, _cut(problem)), hint=_cut(hint))
        self.field = field
        self.value = value


def _cut(text: str, most: int = 1500) -> str:
    """What a file of others holds may be quoted in it, and be of any length."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _sentence(field: str, value: object, problem: str) -> str:
    """`job_id is required`, `script: 'x.sh' does not exist`, `limit: Input should be ... (got 'x')`."""
    verb = problem.partition(" ")[0] in _VERBS
    if value is None:
        return f"{field} {problem}" if verb else f"{field}: {problem}"
    shown = repr(value)
    if len(shown) > 120:
        shown = shown[:117] + "..."
    return f"{field}: {shown} {problem}" if verb else f"{field}: {problem} (got {shown})"


class ConfigError(InputError):
    """A settings or policy file that cannot be used."""

    code = "invalid_config"


class UnknownJob(InputError):
    """Slurm knows no such job, neither in the queue nor in the accounting."""

    code = "unknown_job"


class SlurmError(AgentToolsError):
    """Slurm could not do or tell it. `lasting`: waiting does not mend it, a person has to."""

    code = "slurm_failed"
    lasting: ClassVar[bool] = False


class SlurmMissing(SlurmError):
    """A Slurm command is not installed or not on PATH."""

    code = "tool_unavailable"
    lasting = True


class SlurmUnreachable(SlurmError):
    """Slurm did not answer and nothing was changed."""

    code = "cluster_unreachable"


class AccountingUnreachable(SlurmUnreachable):
    """slurmdbd, Slurm's accounting, does not answer. The controller may, and nothing was changed."""

    code = "accounting_unreachable"


class SlurmUnconfigured(SlurmUnreachable):
    """Slurm's commands find no configuration here, so that none of them asked anything."""

    lasting = True


class AccessRefused(SlurmError):
    """A login node whose host key is not trusted, or that does not let us in; nothing was changed."""

    code = "access_refused"


class SlurmUncertain(SlurmError):
    """The command may have been carried out; look before repeating it."""

    code = "unconfirmed"


class SiteUnreachable(SlurmError):
    """The site's service does not answer, or broke off; without its ticket nothing was sent."""

    code = "site_unreachable"


class SlurmGarbled(SlurmError):
    """An answer that does not have the columns that were asked for; the row is in the message."""

    code = "slurm_garbled"


class SlurmRefused(SlurmError):
    """Slurm understood the request and said no."""

    code = "slurm_refused"


class StorageError(AgentToolsError):
    """A file or the ledger could not be read or written."""

    code = "storage_failed"


class MemoryUnreachable(AgentToolsError):
    """The memory server does not answer, or has no tool that stores."""

    code = "memory_unreachable"


class AccessError(AgentToolsError):
    """This server does not do it for this caller."""

    code = "refused"


class ScopeMissing(AccessError):
    """The caller's token may only read."""

    code = "insufficient_scope"


class ServerStopping(AccessError):
    """The server is stopping; what was under way is said in the message."""

    code = "server_stopping"
