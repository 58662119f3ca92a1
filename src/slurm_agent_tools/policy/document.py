"""The policy as data: its fields, reading it, and laying stricter files over the shipped one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.policy import source as yaml_source
from slurm_agent_tools.policy.layers import Tighter, tighten
from slurm_agent_tools.units import UNLIMITED, format_duration, human_memory, parse_memory, parse_time_limit


def _text(parse: Callable[[str], int], example: str) -> Callable[[object], object]:
    """YAML reads 24:00:00 as the number 86400 and 16 as nobody knows what: only text with a unit is taken."""

    def check(value: object) -> object:
        if not isinstance(value, str):
            raise ValueError(f'write it in quotes and with its unit, for example "{example}"')  # noqa: TRY004
        return parse(value)

    return check


def _limit(text: str) -> int:
    seconds = parse_time_limit(text)
    if seconds == UNLIMITED:
        raise ValueError("a limit cannot be UNLIMITED")
    return seconds


def _inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise ValueError("name a folder inside the project, without a leading / and without ..")
    return path


def _absolute(path: str) -> str:
    if not path.startswith("/") or ".." in path.split("/"):
        raise ValueError("name an absolute folder, without ..")
    return path


Memory = Annotated[int, BeforeValidator(_text(parse_memory, "16G")), Field(gt=0)]
Seconds = Annotated[int, BeforeValidator(_text(_limit, "24:00:00")), Field(gt=0)]
Count = Annotated[int, Field(strict=True, ge=0)]
Hours = Annotated[float, Field(strict=True, gt=0)]
Word = Annotated[str, Field(strict=True, min_length=1)]
Folder = Annotated[Word, AfterValidator(_inside)]
_Bands = TypeVar("_Bands")
Absolute = Annotated[Word, AfterValidator(_absolute)]


class Part(BaseModel):
    """Base of the policy and its parts: frozen, an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MemoryBands(Part):
    """Sizes: up to `free` passes, up to `justify` needs a written reason, beyond needs a person."""

    free: Memory
    justify: Memory

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _in_order(self, self.free, self.justify)


class CountBands(Part):
    """Numbers: up to `free` passes, up to `justify` needs a written reason, beyond needs a person."""

    free: Count
    justify: Count

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _in_order(self, self.free, self.justify)


class TimeBands(Part):
    """Durations: up to `free` passes, up to `justify` needs a written reason, beyond needs a person."""

    free: Seconds
    justify: Seconds

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _in_order(self, self.free, self.justify)


def _in_order(part: _Bands, free: int, justify: int) -> _Bands:
    if justify < free:
        raise ValueError("`justify` must not be below `free`")
    return part


class Limits(Part):
    """What a job may take. `brief` says it for people."""

    memory_per_gpu: MemoryBands = Field(description="Memory per GPU, in the worst placement that Slurm may choose")
    memory_without_gpus: MemoryBands = Field(description="Memory per node of a job without GPUs")
    gpus: CountBands = Field(description="GPUs of one job")
    time_limit: TimeBands = Field(description="Time limit of one job")
    max_concurrent_jobs: Annotated[int, Field(strict=True, ge=1)] = Field(
        description="Running plus pending jobs of one user; an array counts by the tasks that may run at once"
    )
    gpu_hours_per_job: Hours | None = Field(None, description="GPUs x hours x array tasks; beyond needs a person")
    cpu_hours_per_job: Hours | None = Field(None, description="CPUs x hours x array tasks; beyond needs a person")

    def brief(self) -> dict[str, str | int]:
        """Every limit in a few words, for people; those that are off are left out."""
        shown: dict[str, str | int] = {
            "memory_per_gpu": _bands(self.memory_per_gpu, human_memory),
            "memory_without_gpus": _bands(self.memory_without_gpus, human_memory),
            "gpus": _bands(self.gpus, str),
            "time_limit": _bands(self.time_limit, format_duration),
            "max_concurrent_jobs": self.max_concurrent_jobs,
        }
        hours = {"gpu_hours_per_job": self.gpu_hours_per_job, "cpu_hours_per_job": self.cpu_hours_per_job}
        return shown | {name: f"{value:g}" for name, value in hours.items() if value is not None}


def _bands(bands: MemoryBands | CountBands | TimeBands, show: Callable[[int], str]) -> str:
    return f"{show(bands.free)} free, {show(bands.justify)} with a written reason, more by a person"


class Defaults(Part):
    """What a job gets where its script is silent."""

    memory: Memory = Field(description="Per GPU; per node for a job without GPUs")
    gpus: Count = Field(description="On a partition whose nodes have GPUs")
    time_limit: Seconds = Field(description="Never more than the partition allows")


class Target(Part):
    """Where one tool may write, inside the project."""

    folders: Annotated[tuple[Folder, ...], Tighter.INSIDE] = Field(description="Relative to the project")


class Sizes(Part):
    """Largest files, in bytes after reading."""

    script_bytes: Memory = Field(description="A batch script, read or written")
    result_bytes: Memory = Field(description="A saved result")


class WriteRules(Part):
    """Where the writing tools may write."""

    generate_script: Target
    save_result: Target


class Policy(Part):
    """Everything that a site decides. Bytes and seconds after reading."""

    name: Word = Field(description="Name of this policy, shown to people")
    version: Word = Field(description="Version, shown in every decision")
    limits: Limits
    defaults: Defaults
    status_max_age_seconds: Annotated[int, Field(strict=True, ge=1)] = Field(
        description="How old the caller's last get_status may be at submission"
    )
    justification_min_characters: Annotated[int, Field(strict=True, ge=1), Tighter.HIGHER] = Field(
        description="Shortest written reason that counts"
    )
    approval_seconds: Annotated[int, Field(strict=True, ge=1)] = Field(description="How long a person's yes holds")
    allowed_options: Annotated[tuple[Word, ...], Tighter.SHARED] = Field(
        description="sbatch options, by their long name, that an agent's script may use"
    )
    pass_environment: Annotated[tuple[Word, ...], Tighter.SHARED] = Field(
        description="Variables of the caller that reach the job"
    )
    write: WriteRules
    protected: Annotated[tuple[Word, ...], Tighter.UNITED] = Field(
        description="Files that no tool and no job log may write, as patterns relative to the project"
    )
    sizes: Sizes
    log_folders: Annotated[tuple[Absolute, ...], Tighter.INSIDE] = Field(
        (), description="Folders outside the project where job logs may go"
    )


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """The policy in force. `notes`: attempts of a layer to loosen it, which were ignored."""

    policy: Policy
    sha256: str
    version: str
    name: str
    source: str
    notes: tuple[str, ...] = ()


def load(shipped: bytes, layers: Sequence[tuple[str, bytes]] = ()) -> LoadedPolicy:
    """The shipped policy, tightened by each (source, content) in turn. Raises ConfigError.

    The hash is the shipped file's own; with layers, the hash of the list of all files' hashes.
    """
    base_data = yaml_source.read("the shipped policy", shipped)
    base = _validate("the shipped policy", base_data.data, base_data.lines)
    layers = [(name, content) for name, content in layers if content != shipped]
    current, notes = base, []
    for name, content in layers:
        layer = yaml_source.read(name, content)
        wanted = _validate(name, _merged(base_data.data, layer.data), layer.lines)
        _, refused = tighten(base, wanted)
        current, _ = tighten(current, wanted)
        notes += [f"{name}: {note}" for note in refused]
    source = " + ".join(["shipped", *(name for name, _ in layers)])
    digest = _digest([shipped, *(content for _, content in layers)])
    return LoadedPolicy(current, digest, base.version, base.name, source, tuple(notes))


def shipped() -> bytes:
    """The shipped policy's bytes: from the wheel, or from the repository in an editable install."""
    asset = resources.files("slurm_agent_tools") / "assets" / "default.yaml"
    if asset.is_file():
        return asset.read_bytes()
    try:
        return (Path(__file__).parents[3] / "policies" / "default.yaml").read_bytes()
    except OSError as error:
        raise ConfigError("policy", str(asset), "is missing", hint="Install slurm-agent-tools again.") from error


def _merged(base: Mapping[str, object], layer: Mapping[str, object]) -> dict[str, object]:
    """What the layer states, with the base's value wherever it is silent."""
    result = dict(base)
    for key, value in layer.items():
        below = result.get(key)
        both = isinstance(value, dict) and isinstance(below, dict)
        result[key] = _merged(below, value) if both else value  # type: ignore[arg-type]
    return result


def _validate(name: str, data: Mapping[str, object], lines: Mapping[yaml_source.Path, int]) -> Policy:
    try:
        return Policy.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = first["loc"]
        field = ".".join(str(part) for part in place) or "policy"
        line = next((lines[place[:end]] for end in range(len(place), 0, -1) if place[:end] in lines), None)
        where = name if line is None else f"{name}, line {line}"
        unknown = first["type"] == "extra_forbidden"
        problem = "is not a field of a policy" if unknown else first["msg"].removeprefix("Value error, ")
        hint = f"Correct `{field}` in {where}."
        raise ConfigError(field, first.get("input"), f"{problem} ({where})", hint=hint) from error


def _digest(contents: Sequence[bytes]) -> str:
    digests = [hashlib.sha256(content).hexdigest() for content in contents]
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()
