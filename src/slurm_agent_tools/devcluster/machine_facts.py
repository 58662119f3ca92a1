"""What this machine really has for jobs: cores, memory, GPUs with their device files. What cannot be read is told.

Cores and memory are those of `slurmd -C`, which sees neither the affinity of this process nor the limits of its control
groups, less what those two take away, less what is kept for the person at the desk. A GPU counts when its device file
is there and its number was read; none is guessed.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

from slurm_agent_tools.errors import InputError

_MIB = 2**20

_LEAST_KEPT, _MOST_KEPT = 512, 8192  # MiB for the person, of which a tenth of all is taken

_DROPPED = re.compile(r"\b(nvidia|geforce|tesla|amd|radeon|instinct|graphics)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MachineGpu:
    """One GPU: the type that jobs ask for, its device file, and what its driver says of it; None is not known."""

    type: str
    file: str
    model: str
    memory_bytes: int | None = None
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept for the person at the desk: cores, and memory in MiB; None takes a small share by itself."""

    cores: int | None = None
    memory: int | None = None

    def over(self, before: Kept) -> Kept:
        """What was said now, and where nothing was, what was said before."""
        cores = before.cores if self.cores is None else self.cores
        return Kept(cores, before.memory if self.memory is None else self.memory)


@dataclass(frozen=True, slots=True)
class MachineNode:
    """This machine as a node of Slurm. `reserved`: CPUs, as Slurm counts them, that no job gets; memory in MiB.

    `unread` says what could not be read, a sentence each; `kept` what its person said to keep.
    """

    cpus: int
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    memory: int
    kept_memory: int = 0
    reserved: tuple[int, ...] = ()
    gpus: tuple[MachineGpu, ...] = ()
    unread: tuple[str, ...] = ()
    kept: Kept = Kept()

    @property
    def cores(self) -> int:
        """Cores for jobs."""
        return (self.cpus - len(self.reserved)) // self.threads_per_core

    @property
    def usable(self) -> int:
        """CPUs for jobs."""
        return self.cpus - len(self.reserved)

    @property
    def types(self) -> dict[str, int]:
        """How many GPUs there are of each type, in the order of their files."""
        found: dict[str, int] = {}
        for gpu in self.gpus:
            found[gpu.type] = found.get(gpu.type, 0) + 1
        return found


Ask = Callable[[Sequence[str]], Awaitable[str | None]]
"""Runs a program and returns what it printed; None where it is not there or fails."""


def _is_device(path: Path) -> bool:
    try:
        return stat.S_ISCHR(path.stat().st_mode)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Sight:
    """What is looked at: the file system below `root`, programs, the CPUs of this process, which files are devices."""

    ask: Ask
    root: Path = Path("/")
    affinity: frozenset[int] = field(default_factory=lambda: frozenset(os.sched_getaffinity(0)))
    is_device: Callable[[Path], bool] = _is_device

    def text(self, path: str) -> str:
        """What a file says; empty where there is none."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


async def read(sight: Sight, kept: Kept, gpus: Sequence[MachineGpu] | None = None) -> MachineNode:
    """This machine as a node; `gpus` in place of those that are found. Raises InputError where nothing is left."""
    hardware = _hardware(await sight.ask(["slurmd", "-C"]) or "")
    threads, unread = hardware["ThreadsPerCore"], []
    order = _order(sight, threads)
    if len(order) * threads != hardware["CPUs"]:
        order = []
    if not order:
        unread.append("the cores cannot be told apart in /sys/devices/system/cpu: they are only counted")
    free = [number for number, core in enumerate(order) if set(core) <= sight.affinity]
    if not order:
        free = list(range(min(hardware["CPUs"], len(sight.affinity)) // threads))
    quota = _cpu_quota(sight)
    if quota is not None:
        free = free[: max(1, int(quota // threads))]
    if not free:
        hint = "Let it run on both threads of a core at least, or without such a limit (taskset, a cpuset)."
        raise InputError(
            "what this process may use", sorted(sight.affinity), "holds no whole core of this machine", hint=hint
        )
    free = free[: len(free) - _kept_cores(kept, len(free))]
    limit = min([hardware["RealMemory"], *_memory_limits(sight)])
    held = _kept_memory(kept, limit)
    found = list(gpus) if gpus is not None else await _gpus(sight, unread)
    taken = set(range(hardware["CPUs"] // threads)) - set(free)
    return MachineNode(
        cpus=hardware["CPUs"], sockets=hardware["SocketsPerBoard"], cores_per_socket=hardware["CoresPerSocket"],
        threads_per_core=threads, memory=limit - held, kept_memory=held,
        reserved=tuple(sorted(core * threads + thread for core in taken for thread in range(threads))),
        gpus=tuple(found), unread=tuple(unread), kept=kept,
    )  # fmt: skip


def _hardware(text: str) -> dict[str, int]:
    """The numbers of the line of `slurmd -C`. InputError when it lacks one."""
    found = {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)(?=\s|$)", text.partition("\n")[0])}
    boards = found.pop("Boards", 1)
    for name in ("CPUs", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore", "RealMemory"):
        if found.get(name, 0) < 1:
            raise InputError("slurmd -C", text.strip()[:200], f"does not tell {name} of this machine")
    found["SocketsPerBoard"] *= boards
    return found


def _kept_cores(kept: Kept, free: int) -> int:
    if kept.cores is None:
        return 1 if free >= 4 else 0
    if not 0 <= kept.cores < free:
        raise InputError("keep_cores", kept.cores, f"must leave one of the {free} cores that are free here")
    return kept.cores


def _kept_memory(kept: Kept, limit: int) -> int:
    if kept.memory is None:
        return min(max(limit // 10, _LEAST_KEPT), _MOST_KEPT, limit // 2)
    if not 0 <= kept.memory < limit:
        raise InputError("keep_memory", f"{kept.memory}M", f"must leave some of the {limit} MiB that are here")
    return kept.memory


# --- cores and limits -------------------------------------------------------------------------------------------------


def _order(sight: Sight, threads: int) -> list[tuple[int, ...]]:
    """The kernel's CPUs of each core, in the order in which Slurm counts cores: by socket, then by core."""
    cores: dict[tuple[int, int], list[int]] = {}
    for folder in (sight.root / "sys/devices/system/cpu").glob("cpu[0-9]*"):
        place = f"sys/devices/system/cpu/{folder.name}/topology"
        socket, core = sight.text(f"{place}/physical_package_id"), sight.text(f"{place}/core_id")
        try:
            cores.setdefault((int(socket), int(core)), []).append(int(folder.name.removeprefix("cpu")))
        except ValueError:  # switched off: it has no topology
            continue
    found = [tuple(sorted(cores[key])) for key in sorted(cores)]
    return found if all(len(core) == threads for core in found) else []


def _groups(sight: Sight, controller: str) -> Iterator[str]:
    """The folders of this process's control group and of those above it, for a controller."""
    for line in sight.text("proc/self/cgroup").splitlines():
        _, names, path = ([*line.split(":", 2), "", ""])[:3]
        if names and controller not in names.split(","):
            continue
        top = Path("sys/fs/cgroup") / controller if names else Path("sys/fs/cgroup")
        inner = Path(path.lstrip("/"))
        for part in dict.fromkeys([inner, *inner.parents]):
            yield str(top / part)


def _memory_limits(sight: Sight) -> list[int]:
    """Limits of memory of this process's control groups, MiB."""
    names = ("memory.max", "memory.limit_in_bytes")
    texts = [sight.text(f"{group}/{name}").strip() for group in _groups(sight, "memory") for name in names]
    return [int(text) // _MIB for text in texts if text.isdigit()]


def _cpu_quota(sight: Sight) -> float | None:
    """How many CPUs' time this process may use at most; None where there is no limit."""
    found = []
    for group in _groups(sight, "cpu"):
        words = sight.text(f"{group}/cpu.max").split()
        if not words:
            words = [sight.text(f"{group}/cpu.cfs_{part}_us").strip() for part in ("quota", "period")]
        if len(words) == 2 and all(word.isdigit() for word in words) and int(words[1]):
            found.append(int(words[0]) / int(words[1]))
    return min(found, default=None)


# --- GPUs -------------------------------------------------------------------------------------------------------------


def gpu_type(model: str) -> str:
    """The type by which jobs ask for a model: `NVIDIA GeForce RTX 4090` is `rtx_4090`."""
    plain = re.sub(r"[^a-z0-9]+", "_", _DROPPED.sub(" ", model).lower()).strip("_")
    return plain if re.search("[a-z]", plain) else f"gpu_{plain}".strip("_")


async def _gpus(sight: Sight, unread: list[str]) -> list[MachineGpu]:
    return [*await _nvidia(sight, unread), *await _amd(sight, unread)]


async def _nvidia(sight: Sight, unread: list[str]) -> list[MachineGpu]:
    told = _smi(await sight.ask(["nvidia-smi", "-q", "-x"]))  # asked first: it makes the driver make its files
    seen = _driver(sight)
    if seen and not told:
        unread.append("nvidia-smi does not answer: the memory of the NVIDIA GPUs is not known")
    found = []
    for bus in sorted(seen.keys() | told.keys()):
        gpu = told.get(bus, {}) | seen.get(bus, {})
        name, minor = gpu.get("model", "NVIDIA GPU"), gpu.get("minor", "")
        if gpu.get("mig") == "Enabled":
            unread.append(
                f"{name} at {bus} is divided (MIG): it is not offered; `nvidia-smi -mig 0` makes it one again"
            )
        elif not minor.isdigit():
            unread.append(f"{name} at {bus}: the driver does not tell the number of its device file; it is not offered")
        elif (gpu_file := _offered(sight, f"dev/nvidia{minor}", f"{name} at {bus}", unread)) is not None:
            memory = int(gpu["memory"]) * _MIB if gpu.get("memory", "").isdigit() else None
            found.append((int(minor), MachineGpu(gpu_type(name), gpu_file, name, memory, gpu.get("id"))))
    return [gpu for _, gpu in sorted(found, key=lambda pair: pair[0])]


def _offered(sight: Sight, path: str, who: str, unread: list[str]) -> str | None:
    """The path of a device file; None, and a sentence, where it is not there: slurmd would end for it."""
    if sight.is_device(sight.root / path):
        return f"/{path}"
    unread.append(f"{who}: /{path} is no device file; it is not offered")
    return None


def _driver(sight: Sight) -> dict[str, dict[str, str]]:
    """What the driver says of each NVIDIA GPU, by its bus."""
    names = {"Model": "model", "GPU UUID": "id", "Device Minor": "minor"}
    found = {}
    for folder in sorted((sight.root / "proc/driver/nvidia/gpus").glob("*")):
        text = sight.text(f"proc/driver/nvidia/gpus/{folder.name}/information")
        rows = [line.partition(":") for line in text.splitlines()]
        found[_bus(folder.name)] = {names[key.strip()]: value.strip() for key, _, value in rows if key.strip() in names}
    return found


def _smi(text: str | None) -> dict[str, dict[str, str]]:
    """What `nvidia-smi -q -x` says of each GPU, by its bus; memory in MiB."""
    try:
        root = ET.fromstring(text or "<none/>")  # noqa: S314 - as above
    except ET.ParseError:
        return {}
    places = {"model": "product_name", "id": "uuid", "minor": "minor_number", "mig": "mig_mode/current_mig"}
    found = {}
    for gpu in root.iter("gpu"):
        facts = {name: (gpu.findtext(place) or "").strip() for name, place in places.items()}
        memory = re.fullmatch(r"(\d+) MiB", (gpu.findtext("fb_memory_usage/total") or "").strip())
        found[_bus(gpu.get("id", ""))] = facts | {"memory": memory[1] if memory else ""}
    return found


def _bus(text: str) -> str:
    """`00000000:07:00.0` and `0000:07:00.0` are one place."""
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]:0>4}:{rest}"


async def _amd(sight: Sight, unread: list[str]) -> list[MachineGpu]:
    nodes = _render_nodes(sight)
    if not nodes:
        return []
    words = ["rocm-smi", "--showproductname", "--showmeminfo", "vram", "--showbus", "--showuniqueid", "--json"]
    told = _rocm(await sight.ask(words))
    if not told:
        unread.append(f"rocm-smi does not answer: {len(nodes)} AMD GPUs are not offered")
    found = []
    for bus, facts in sorted(told.items()):
        name = facts.get("card series") or facts.get("card model") or "AMD GPU"
        if bus not in nodes:
            unread.append(f"{name} at {bus} has no device file; it is not offered")
        elif (gpu_file := _offered(sight, f"dev/dri/{nodes[bus]}", f"{name} at {bus}", unread)) is not None:
            total = facts.get("vram total memory (b)", "")
            memory = int(total) if total.isdigit() else None
            found.append(MachineGpu(gpu_type(name), gpu_file, name, memory, facts.get("unique id")))
    return found


def _render_nodes(sight: Sight) -> dict[str, str]:
    """The render node of each AMD GPU, by its bus."""
    found = {}
    for entry in sorted((sight.root / "sys/class/drm").glob("renderD*")):
        if sight.text(f"sys/class/drm/{entry.name}/device/vendor").strip() == "0x1002":
            found[_bus((entry / "device").resolve().name)] = entry.name
    return found


def _rocm(text: str | None) -> dict[str, dict[str, str]]:
    """What rocm-smi says of each card, by its bus; keys in small letters, which versions write differently."""
    try:
        body = json.loads(text or "{}")
    except ValueError:
        return {}
    cards = [card for name, card in body.items() if name.startswith("card")] if isinstance(body, Mapping) else []
    rows = [
        {str(key).lower(): str(value) for key, value in card.items()} for card in cards if isinstance(card, Mapping)
    ]
    return {_bus(row["pci bus"]): row for row in rows if "pci bus" in row}
