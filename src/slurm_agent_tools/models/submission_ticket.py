"""A ticket: what a site's service gives for one judged request, and Slurm's controller lets in once.

It is bound to the user and to ceilings of what the job may take, in the controller's units: MiB and minutes. The text
forms are read by `assets/tickets.lua` as well. A text that cannot be read is a ValueError.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.request import JobRequest

COMMENT_WORD = "ticket="
"""Before a ticket, as one word of a job's comment. The controller takes the word out."""

LARGEST_SIGNED_SCRIPT = 6 * 2**10
"""Bytes of a script that a signed ticket may be for: the controller hashes it in Lua while other submissions wait."""

LONGEST_SIGNED_TICKET = 890
"""Letters of a signed ticket: longer ones are refused unread, since anybody can make the controller check one.

The comment that it stands in, behind a submission's token and a run's id, has at most 1024 at the controller.
"""

SHORTEST_KEY = 32
"""Bytes of the key of signed tickets, at least."""

_TITLE = "slurm-agent-tools ticket 1"

_NONCE = re.compile(r"[0-9a-f]{32}")

_SHA256 = re.compile(r"[0-9a-f]{64}")

_NUMBER = re.compile(r"0|[1-9][0-9]{0,14}")

_NONE = "-"
"""In the place of a number: without a limit; of a hash: without a script; of a name: not to be stated."""

_KEYS = (
    "uid", "expires", "time", "memory", "gpumemory", "gpus", "cpus", "nodes", "tasks", "once", "whole", "partition",
    "qos", "account", "dependency", "licenses", "reservation", "gres",
)  # fmt: skip

_OPEN = frozenset({"time", "memory", "gpumemory"})


@dataclass(frozen=True, slots=True)
class Ceilings:
    """The most that one job of one user may take until a time, in the worst placement that Slurm may choose.

    `expires` in seconds of the epoch, `time_limit` in minutes, memory in MiB; None is without a limit, as a person may
    allow it. `partitions`, `qos` (one, or several with commas) and `account`: what the job may name; with none it may
    name none. `dependency`: what it waits for, since one that waits for another counts as none beside it. `licenses`,
    `reservation`: as they were written. `gres`: types of GPUs as `gpu:a100`, all else with its number, `nvme:2`.
    """

    uid: int
    expires: int
    time_limit: int | None
    memory_per_node: int | None
    memory_per_gpu: int | None
    gpus: int = 0
    cpus: int = 1
    nodes: int = 1
    array_tasks: int = 1
    array_at_once: int = 1
    whole_nodes: bool = False
    partitions: tuple[str, ...] = ()
    qos: str | None = None
    account: str | None = None
    dependency: str | None = None
    licenses: str | None = None
    reservation: str | None = None
    gres: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """One word of `key=value`, in a fixed order: letters, digits and `=,-_:%` alone."""
        numbers = (
            self.uid, self.expires, self.time_limit, self.memory_per_node, self.memory_per_gpu, self.gpus, self.cpus,
            self.nodes, self.array_tasks, self.array_at_once, int(self.whole_nodes),
        )  # fmt: skip
        single = (self.account, self.dependency, self.licenses, self.reservation)
        several = (self.partitions, filter(None, (self.qos or "").split(",")))
        names = (*map(_list, several), *(_list([] if name is None else [name]) for name in single), _list(self.gres))
        values = [*(_NONE if number is None else str(number) for number in numbers), *names]
        return ",".join(f"{key}={value}" for key, value in zip(_KEYS, values, strict=True))

    def covering(self, counted: Resources) -> Ceilings:
        """The same with what was counted of it where MaxMemPerCPU is set: more CPUs, each with a whole MB of memory."""
        cpus = max(self.cpus, counted.cpus or 0)
        node = _raised(self.memory_per_node, counted.memory_per_node_bytes, cpus)
        gpu = _raised(self.memory_per_gpu, counted.memory_per_gpu_bytes, cpus)
        return replace(self, cpus=cpus, memory_per_node=node, memory_per_gpu=gpu)


def _raised(size: int | None, counted: int | None, cpus: int) -> int | None:
    """MiB, for each CPU less than one more."""
    return size if size is None or counted is None else max(size, min(-(-counted // 2**20), size + cpus - 1))


_GPUS = ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket")

_COUNT = re.compile(r":\d+[kmgt]?$")


def stated(request: JobRequest, option: str) -> str | None:
    """The value of an option, the last where it stands twice; None of an empty one."""
    found = request.find(option)
    return (found[-1].value or None) if found else None


def named_gres(request: JobRequest) -> tuple[str, ...]:
    """Types of GPUs, and what else stands beside GPUs and CPUs, in the words by which the plugin compares them."""
    items = [item for option in _GPUS for item in (f"gpu:{one}" for one in _items(request, option))]
    items += [
        re.sub(r"^gres[:/]", "", item) for option in ("gres", "tres-per-task") for item in _items(request, option)
    ]
    plain = [_COUNT.sub("", item) if item.startswith("gpu:") else item for item in items]
    return tuple(dict.fromkeys(item for item in plain if item != "gpu" and not re.fullmatch(r"cpu:\d+", item)))


def _items(request: JobRequest, option: str) -> list[str]:
    text = (stated(request, option) or "").lower().replace("=", ":")
    return [item for item in re.split(r"[,\s]+", text) if item]


def parse_ceilings(text: str) -> Ceilings:
    """The ceilings of a text, which is then theirs to the letter."""
    pairs = [item.partition("=") for item in text.split(",")]
    if tuple(key for key, _, _ in pairs) != _KEYS:
        raise ValueError(f"not the ceilings of a ticket: {text!r}")
    values = [value for _, _, value in pairs]
    numbers = [_number(key, value) for key, value in zip(_KEYS, values[:11], strict=False)]
    uid, expires, time_limit, node, gpu, *counts, whole = numbers
    gpus, cpus, nodes, tasks, once = (count or 0 for count in counts)
    partition, qos, *single, gres = values[11:]
    account, dependency, licenses, reservation = (None if one == _NONE else _decoded(one) for one in single)
    made = Ceilings(
        uid or 0, expires or 0, time_limit, node, gpu, gpus, cpus, nodes, tasks, once, bool(whole),
        _names(partition), ",".join(_names(qos)) or None, account, dependency, licenses, reservation, _names(gres),
    )  # fmt: skip
    if made.text != text:
        raise ValueError(f"not the ceilings of a ticket: {text!r}")
    return made


def _number(key: str, value: str) -> int | None:
    if value == _NONE and key in _OPEN:
        return None
    if not _NUMBER.fullmatch(value):
        raise ValueError(f"{key} of a ticket is no number: {value!r}")
    return int(value)


def _list(names: Iterable[str]) -> str:
    return ":".join(map(_encoded, names)) or _NONE


def _names(text: str) -> tuple[str, ...]:
    return () if text == _NONE else tuple(map(_decoded, text.split(":")))


def _encoded(name: str) -> str:
    """A name in which only letters, digits and `_` stand for themselves, other bytes as %2D."""
    if not name:
        raise ValueError("a name in a ticket is empty")
    data = name.encode("utf-8", "surrogateescape")
    return re.sub(rb"[^A-Za-z0-9_]", lambda found: b"%%%02X" % found[0][0], data).decode("ascii")


def _decoded(text: str) -> str:
    if not re.fullmatch(r"(?:[A-Za-z0-9_]|%[0-9A-F]{2})+", text):
        raise ValueError(f"not a name in a ticket: {text!r}")
    data = re.sub(rb"%([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), text.encode())
    return data.decode("utf-8", "surrogateescape")


@dataclass(frozen=True, slots=True)
class SubmissionTicket:
    """A ticket by its number, 32 hexadecimal digits. `script_sha256` None: for srun and salloc, without a script."""

    nonce: str
    ceilings: Ceilings
    script_sha256: str | None

    def __post_init__(self) -> None:
        """Raises ValueError for a number or a hash that is none."""
        if not _NONCE.fullmatch(self.nonce):
            raise ValueError(f"not the number of a ticket: {self.nonce!r}")
        if self.script_sha256 is not None and not _SHA256.fullmatch(self.script_sha256):
            raise ValueError(f"not a SHA-256: {self.script_sha256!r}")

    @property
    def admin_comment(self) -> str:
        """What the controller writes into the job's AdminComment, where its owner cannot change it."""
        return f"{self.nonce}:{self.ceilings.text}"

    @property
    def claim(self) -> str:
        """The ticket in one word, without a proof that anybody gave it."""
        return f"v1.{self.nonce}.{self.script_sha256 or _NONE}.{self.ceilings.text}"


def parse_claim(text: str) -> SubmissionTicket:
    """The ticket of a `claim`."""
    version, _, rest = text.partition(".")
    parts = rest.split(".")
    if version != "v1" or len(parts) != 3:
        raise ValueError("not a ticket")
    return SubmissionTicket(parts[0], parse_ceilings(parts[2]), None if parts[1] == _NONE else parts[1])


def parse_admin_comment(text: str | None) -> tuple[str, Ceilings] | None:
    """Number and ceilings of the ticket with which a job was let in; None of a job without one."""
    nonce, _, ceilings = (text or "").partition(":")
    if not _NONCE.fullmatch(nonce):
        return None
    try:
        return nonce, parse_ceilings(ceilings)
    except ValueError:
        return None


def is_nonce(text: str) -> bool:
    """Whether this can be the number of a ticket."""
    return _NONCE.fullmatch(text) is not None


def comment_word(text: str) -> str:
    """The word for a job's comment: of a ticket's number where its file lies with the controller, else of it signed."""
    return f"{COMMENT_WORD}{text}"


# --- A ticket as a file: a few lines, then the exact script ---------------------------------------------------------


def ticket_file(ticket: SubmissionTicket, script: bytes | None) -> bytes:
    """The bytes of a ticket's file; `script` None for one without a script."""
    found = None if script is None else hashlib.sha256(script).hexdigest()
    if found != ticket.script_sha256:
        raise ValueError("the script is not the one that the ticket names")
    return f"{_TITLE}\n{ticket.claim}\n".encode() + (script or b"")


def parse_ticket_file(data: bytes) -> SubmissionTicket:
    """The ticket of a file, whose script is the one that it names."""
    title, _, rest = data.partition(b"\n")
    claim, _, script = rest.partition(b"\n")
    if title != _TITLE.encode():
        raise ValueError("not the file of a ticket")
    ticket = parse_claim(claim.decode("ascii"))
    if ticket_file(ticket, None if ticket.script_sha256 is None else script) != data:
        raise ValueError("the script in the file is not the one that the ticket names")
    return ticket


# --- A ticket that proves itself, for a controller with which no folder is shared -------------------------------------


def check_signable(script: bytes) -> None:
    """Raises InputError for a script that is too long for a signed ticket."""
    if len(script) > LARGEST_SIGNED_SCRIPT:
        hint = "Move what it holds into a file of the project, and run that from the script."
        raise InputError("script", None, f"is longer than {LARGEST_SIGNED_SCRIPT} bytes", hint=hint)


def signed(ticket: SubmissionTicket, key: bytes) -> str:
    """The ticket with its HMAC-SHA-256 (RFC 2104), as one word. Raises InputError where its names are too long."""
    text = f"{ticket.claim}.{_proof(ticket.claim, _checked(key))}"
    if len(text) > LONGEST_SIGNED_TICKET:
        words = dict(word.split("=", 1) for word in ticket.ceilings.text.split(","))
        longest = max(_KEYS, key=lambda key: len(words[key]))
        problem, hint = f"makes a ticket of more than {LONGEST_SIGNED_TICKET} letters", "Name fewer, or shorter ones."
        raise InputError(longest, None, problem, hint=hint)
    return text


def verify(text: str, keys: Sequence[bytes]) -> SubmissionTicket:
    """The ticket of a signed word; any of the keys may have signed it. Raises ValueError."""
    claim, _, proof = text.rpartition(".")
    sound = [hmac.compare_digest(_proof(claim, _checked(key)).encode(), proof.encode()) for key in keys]
    if not any(sound):
        raise ValueError("the ticket is not signed by this site")
    return parse_claim(claim)


def _checked(key: bytes) -> bytes:
    if len(key) < SHORTEST_KEY:
        raise ValueError(f"the key of tickets is shorter than {SHORTEST_KEY} bytes")
    return key


def _proof(claim: str, key: bytes) -> str:
    return hmac.new(key, claim.encode(), hashlib.sha256).hexdigest()
