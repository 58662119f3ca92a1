"""Reads a SkyPilot task file as the policy has to see it: a Slurm script that asks for the same and runs the same.

Pure. What is not read here is refused: files from elsewhere, services, machines of a choice, tries again. The work
stands under `timeout`, since nothing else ends it, and the machine takes itself away.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.text import yaml_documents
from slurm_agent_tools.text.bounded_documents import DocumentError, decoded

LARGEST = 256 * 1024
"""Bytes of a task file."""

_KEYS = frozenset({"name", "workdir", "num_nodes", "resources", "envs", "run"})
_RESOURCES = frozenset(
    {"infra", "cloud", "region", "zone", "accelerators", "cpus", "memory", "use_spot", "max_hourly_cost", "image_id"}
    | {"disk_size", "autostop"}
)
_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_LIMITED = re.compile(r"timeout (?:--kill-after=\d+[smh]? )?(\d{1,9})([smhd]?) (\S.*)", re.DOTALL)
_LOOP = re.compile(
    r"failed=0\nfor SLURM_ARRAY_TASK_ID in (\$\(seq (\d+) (\d+) (\d+)\)|\d+(?: \d+)*); do\nexport SLURM_ARRAY_TASK_ID\n"
    r"(.*) \|\| failed=1\ndone\nexit \"\$failed\"",
    re.DOTALL,
)
_EXPORTS = re.compile(r"""(?:export [A-Z_]+=(?:"\$[A-Z_]+"|[^\n;&|`$()<>\\]*)\n)*""")
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_MOST_NODES = 1000


@dataclass(frozen=True, slots=True)
class SkyPilotTask:
    """A task as it would run. Seconds of one of its tasks; prices in US dollars; memory in GiB of one machine."""

    name: str
    where: str
    nodes: int
    gpus: int
    gpu_kind: str | None
    cpus: int | None
    memory: int | None
    spot: bool
    hourly_cost: float
    idle_minutes: int
    time_limit: int
    tasks: int
    body: str

    @property
    def price_per_hour(self) -> float:
        """Of all machines."""
        return self.hourly_cost * self.nodes

    @property
    def most(self) -> float:
        """What it costs when it uses all of its time, and the machine idles until it goes."""
        return self.price_per_hour * (self.time_limit * self.tasks / 3600 + self.idle_minutes / 60)

    @property
    def script(self) -> str:
        """What Slurm would be asked for the same work."""
        minutes = -(-self.time_limit // 60)
        options = [f"job-name={self.name}", f"nodes={self.nodes}", "ntasks-per-node=1", f"time={minutes}"]
        options += [f"gpus-per-node={self.gpus}"] if self.gpus else []
        options += [f"cpus-per-task={self.cpus}"] if self.cpus is not None else []
        options += [f"mem={self.memory}G"] if self.memory is not None else []
        options += [f"array=0-{self.tasks - 1}%1"] if self.tasks > 1 else []
        return "\n".join(["#!/bin/bash", *(f"#SBATCH --{option}" for option in options), "", self.body, ""])


def read_task(data: bytes) -> SkyPilotTask:
    """The task in a file. Raises InputError with the key and the mend."""
    document = _mapping("task", _loaded(data))
    _known("", document, _KEYS)
    if document.get("workdir", ".") != ".":
        hint = "Write `workdir: .`, or leave it out."
        raise InputError("workdir", str(document["workdir"]), "is not the project's folder", hint=hint)
    resources = _mapping("resources", document.get("resources"))
    _known("resources.", resources, _RESOURCES)
    exports = _environment(document.get("envs", {}))
    limit, tasks, run = _work(_text("run", document.get("run")))
    gpus, kind = _gpus(resources.get("accelerators"))
    name = _text("name", document.get("name"))
    if _NAME.fullmatch(name) is None:
        hint = "Small letters, digits and dashes, the first a letter."
        raise InputError("name", name, "cannot name a machine", hint=hint)
    return SkyPilotTask(
        name=name,
        where=_where(resources),
        nodes=_number("num_nodes", document.get("num_nodes", 1), _MOST_NODES),
        gpus=gpus,
        gpu_kind=kind,
        cpus=_at_least("resources.cpus", resources.get("cpus"), ""),
        memory=_at_least("resources.memory", resources.get("memory"), "(?:gi?b?)?"),
        spot=_flag("resources.use_spot", resources.get("use_spot", False)),
        hourly_cost=_price(resources.get("max_hourly_cost")),
        idle_minutes=_autostop(resources.get("autostop")),
        time_limit=limit,
        tasks=tasks,
        body="\n".join([*exports, run]),
    )


def _loaded(data: bytes) -> Any:
    hint = "Write one task as generate_script does with format skypilot."
    try:
        return yaml_documents.load(decoded(data))
    except (yaml.MarkedYAMLError, DocumentError) as error:
        raise InputError("task", None, f"cannot be read as YAML: {error}".split("\n")[0], hint=hint) from error


def _mapping(field: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise InputError(field, None, "is no mapping of names to values", hint="See docs/guides/other-schedulers.md.")
    return value


def _known(before: str, given: Mapping[str, Any], known: frozenset[str]) -> None:
    for key in given:
        if key not in known:
            hint = f"Leave it out, or let a person start it with sky. Known: {', '.join(sorted(known))}."
            raise InputError(f"{before}{key}", None, "is not something that the policy can judge", hint=hint)


def _text(field: str, value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(field, value, "is no text", hint=f"Give {field} some text.")
    return value


def _number(field: str, value: Any, most: int) -> int:
    if type(value) is not int or not 1 <= value <= most:
        raise InputError(field, value, "is no whole number above 0", hint=f"Write a number from 1 to {most}.")
    return value


def _flag(field: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(field, value, "is neither true nor false", hint="Write true or false.")
    return value


def _at_least(field: str, value: Any, unit: str) -> int | None:
    """4, `4+`, `16+`, `16GB`: the least that the machine has."""
    if value is None:
        return None
    found = re.fullmatch(rf"(\d{{1,6}})({unit})\+?", str(value).strip().lower())
    if found is None or isinstance(value, bool) or int(found[1]) < 1:
        raise InputError(field, value, "is no whole number of what a machine has", hint="Write it like `16+`.")
    return int(found[1])


def _gpus(value: Any) -> tuple[int, str | None]:
    """`A100:4` or {A100: 4}; a choice of several kinds has no one price."""
    if value is None:
        return 0, None
    pair = next(iter(value.items())) if isinstance(value, dict) and len(value) == 1 else None
    kind, _, count = value.partition(":") if isinstance(value, str) else (None, "", "")
    kind, count = pair if pair is not None else (kind, count or "1")
    if (
        not isinstance(kind, str)
        or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", kind)
        or not re.fullmatch(r"\d+", str(count))
    ):
        raise InputError("resources.accelerators", value, "is not one kind of GPU and its number", hint="Write A100:4.")
    return _number("resources.accelerators", int(str(count)), _MOST_NODES), kind


def _where(resources: Mapping[str, Any]) -> str:
    parts = [str(resources[key]) for key in ("infra", "cloud", "region", "zone") if resources.get(key) is not None]
    if any(part.lower().split("/")[0] == "slurm" for part in parts):
        hint = "Submit to a Slurm cluster with submit_job."
        raise InputError("resources.infra", parts[0], "is a Slurm cluster, past its guard", hint=hint)
    return "/".join(parts) or "any cloud that is set up"


def _price(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value < 1e6:
        hint = "Say what one machine may cost in an hour, in US dollars: SkyPilot takes none above it."
        raise InputError("resources.max_hourly_cost", value, "is no price of an hour", hint=hint)
    return float(value)


def _autostop(value: Any) -> int:
    """Minutes after which an idle machine is taken away; one that is only stopped goes on costing its disk."""
    hint = "Write autostop: {idle_minutes: 10, down: true}."
    if not isinstance(value, dict) or value.keys() - {"idle_minutes", "down", "wait_for"}:
        raise InputError("resources.autostop", value, "does not say when the machine is taken away", hint=hint)
    if value.get("down") is not True or value.get("wait_for", "jobs") == "jobs_and_ssh":
        raise InputError("resources.autostop", value, "leaves a machine that costs money", hint=hint)
    minutes = value.get("idle_minutes")
    if type(minutes) is not int or not 0 <= minutes <= 60:
        raise InputError("resources.autostop", minutes, "lets the machine idle for longer than an hour", hint=hint)
    return minutes


def _environment(value: Any) -> list[str]:
    lines = []
    for name, text in _mapping("envs", value).items():
        if _VARIABLE.fullmatch(name) is None or not isinstance(text, str | int | float):
            raise InputError(f"envs.{name}", None, "is no variable with a value", hint="Write NAME: text.")
        lines.append(f"export {name}={shlex.quote(str(text))}")
    return lines


# --- the work, and how long it may take -------------------------------------------------------------------------------

_HINT = "Write one command under `timeout 2h COMMAND`, or let generate_script write the task (format skypilot)."


def _work(run: str) -> tuple[int, int, str]:
    """Seconds of a task, how many there are, and what one of them runs. Raises InputError for work without an end."""
    exports = _EXPORTS.match(run)
    before = exports[0] if exports is not None else ""
    text, tasks = run[len(before) :].strip("\n"), 1
    loop = _LOOP.fullmatch(text)
    if loop is not None:
        text, tasks = loop[5], _count(loop)
    found = _LIMITED.fullmatch(text)
    if found is None or not _is_one_command(found[3]):
        raise InputError("run", text[:200], "has no time limit that holds all of it", hint=_HINT)
    seconds = int(found[1]) * _SECONDS[found[2]]
    if seconds < 1:
        raise InputError("run", text[:200], "has a time limit of 0, which is none", hint=_HINT)
    return seconds, tasks, f"{before}{text}"


def _count(loop: re.Match[str]) -> int:
    if loop[2] is None:
        return len(loop[1].split())
    first, step, last = int(loop[2]), int(loop[3]), int(loop[4])
    if step < 1 or last < first:
        raise InputError("run", loop[1], "counts no tasks", hint=_HINT)
    return (last - first) // step + 1


def _is_one_command(text: str) -> bool:
    """Whether nothing stands beside it: no second command, no other place for its output, nothing that runs before."""
    quoted = _QUOTED.findall(text)
    plain = _QUOTED.sub("", text)
    computed = any(one.startswith('"') and re.search(r"`|\$\(", one) for one in quoted)
    return not computed and not re.search(r"[\n;&|<>()`'\"\\]", plain)
