"""The policy as data: its fields, and the kinds of values in them, each with its JSON Schema for editors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationInfo,
    WithJsonSchema,
    field_validator,
    model_validator,
)

from slurm_agent_tools.models.shapes import Channel, Outcome
from slurm_agent_tools.units import UNLIMITED, parse_memory, parse_time_limit

Level = Literal["off", "warn", "justify", "approve", "deny"]

ORDER: tuple[Level, ...] = ("off", "warn", "justify", "approve", "deny")

VIOLATIONS: frozenset[Outcome] = frozenset({"justify", "approve", "deny"})

SETTABLE: dict[str, tuple[Level, ...]] = {
    "memory-per-gpu": ("justify", "approve", "deny"),
    "gpus": ("justify", "approve", "deny"),
    "time-limit": ("justify", "approve", "deny"),
    "concurrent-jobs": ("approve", "deny"),
    "budget": ("justify", "approve", "deny"),
    "cuda-visible-devices": ("warn", "justify", "approve", "deny"),
    "device-index": ORDER,
    "auto-retry": ("approve", "deny"),
    "duplicate": ORDER,
    "direct-submission": ("approve", "deny"),
    "interactive": ("approve", "deny"),
    "smoke-first": ORDER,
    "partition": ("deny",),
    "dependency": ("deny",),
    "script-exists": ("deny",),
    "status-first": ("off", "warn", "deny"),
    "path": ("deny",),
    "directives": ("approve", "deny"),
    "opaque-code": ("warn", "justify", "approve", "deny"),
}
"""What a policy may make of each rule. Where nothing softer stands, the guard itself rests on the refusal."""


def harsher(first: Level, second: Level) -> Level:
    """The more severe of two levels."""
    return max(first, second, key=ORDER.index)


# --- The kinds of values, and how each gets tighter -------------------------------------------------------------------


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


def _switch(value: object) -> object:
    """YAML 1.1 reads a bare on and off as true and false."""
    return {True: "on", False: "off"}.get(value, value) if isinstance(value, bool) else value


def _day(value: object) -> object:
    if isinstance(value, str | date):
        return value
    raise ValueError("write a date, for example 2027-01-31")


Memory = Annotated[
    int,
    BeforeValidator(_text(parse_memory, "16G")),
    Field(gt=0),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+[KMGT]$", "examples": ["16G"]}),
]

Seconds = Annotated[
    int,
    BeforeValidator(_text(_limit, "24:00:00")),
    Field(gt=0),
    WithJsonSchema({"type": "string", "examples": ["24:00:00", "3-00:00:00"]}),
]

Count = Annotated[int, Field(strict=True, ge=0)]

Some = Annotated[int, Field(strict=True, ge=1)]

Hours = Annotated[float, Field(strict=True, gt=0)]

Word = Annotated[str, Field(strict=True, min_length=1)]

Folder = Annotated[Word, AfterValidator(_inside)]

Absolute = Annotated[Word, AfterValidator(_absolute)]

Day = Annotated[date, BeforeValidator(_day), WithJsonSchema({"type": "string", "format": "date"})]

Switch = BeforeValidator(_switch)

Yes = WithJsonSchema({"anyOf": [{"enum": ["on", "off"]}, {"type": "boolean"}]})


class Part(BaseModel):
    """Base of the policy and its parts: frozen, an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Tighter(Enum):
    """How a field gets tighter that is not a limit, where less is tighter."""

    SHARED = "only what both name"
    INSIDE = "only folders inside the other's"
    UNITED = "what either names"
    HIGHER = "the larger number"
    BASE = "only what the base states"
    OFF = "off wins"
    HARSHER = "the more severe level"


# --- The policy as data: its fields -----------------------------------------------------------------------------------


class Bands(Part):
    """Up to `free` passes, up to `justify` needs a written reason, beyond needs a person."""

    free: int
    justify: int

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.justify < self.free:
            raise ValueError("`justify` must not be below `free`")
        return self


class MemoryBands(Bands):
    """Sizes: up to `free` passes, up to `justify` needs a written reason, beyond needs a person."""

    free: Memory
    justify: Memory


class CountBands(Bands):
    """Numbers: up to `free` passes, up to `justify` needs a written reason, beyond needs a person."""

    free: Count
    justify: Count


class TimeBands(Bands):
    """Durations: up to `free` passes, up to `justify` needs a written reason, beyond needs a person."""

    free: Seconds
    justify: Seconds


BANDS: dict[str, type[Bands]] = {
    "memory_per_gpu": MemoryBands, "memory_without_gpus": MemoryBands, "gpus": CountBands, "time_limit": TimeBands,
}  # fmt: skip
"""The limits that are bands, by their field's name."""


class Limits(Part):
    """What a job may take."""

    memory_per_gpu: MemoryBands = Field(description="Memory per GPU, in the worst placement that Slurm may choose")
    memory_without_gpus: MemoryBands = Field(description="Memory per node of a job without GPUs")
    gpus: CountBands = Field(description="GPUs of one job")
    time_limit: TimeBands = Field(description="Time limit of one job")
    max_concurrent_jobs: Some = Field(description="Running plus pending jobs of one user; arrays by tasks at once")
    max_pending_jobs: Some | None = Field(None, description="Pending jobs of one user, counted in the same way")
    max_daily_submissions: Some | None = Field(None, description="Submissions of one user in 24 hours")
    gpu_hours_per_job: Hours | None = Field(None, description="GPUs x hours x array tasks; beyond needs a person")
    cpu_hours_per_job: Hours | None = Field(None, description="CPUs x hours x array tasks; beyond needs a person")
    price_per_job: Hours | None = Field(None, description="US dollars for rented machines; beyond needs a person")
    gpu_hours_per_day: Hours | None = Field(None, description="GPU hours submitted in 24 hours; beyond needs a person")
    cpu_hours_per_day: Hours | None = Field(None, description="CPU hours submitted in 24 hours; beyond needs a person")


class SmokeFirst(Part):
    """From which size on a configuration is tried by a short run first, and how long that may take."""

    gpu_hours: Hours | None = Field(description="GPUs x hours x array tasks; more is tried by a smoke run first")
    cpu_hours: Hours | None = Field(description="CPUs x hours x array tasks; more is tried by a smoke run first")
    smoke_time_limit: Seconds = Field(description="Longest time limit of a smoke run")


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
    sync_bytes: Memory = Field(
        "5G", validate_default=True, description="All files that one sync_files brings over, together"
    )


class WriteRules(Part):
    """Where the writing tools may write."""

    generate_script: Target
    save_result: Target


RuleLevels = WithJsonSchema(
    {
        "type": "object",
        "additionalProperties": False,
        "properties": {rule: {"enum": list(levels)} for rule, levels in SETTABLE.items()},
    }
)


class SiteRule(Part):
    """A site's own rule. `when` is a CEL expression over the facts of a request: where it is true, the rule speaks."""

    id: Annotated[Word, Field(pattern=r"^[a-z][a-z0-9-]{1,60}$")] = Field(description="Its name in every answer")
    when: Word = Field(description="CEL expression; true is a violation, and so is an error in it")
    level: Literal["warn", "justify", "approve", "deny"] = Field("deny", description="What a violation means")
    message: Word = Field(description="What is wrong, for people")
    remedy: Word = Field(description="What to do instead, best as exact lines")

    @field_validator("id")
    @classmethod
    def _own(cls, value: str) -> str:
        if value in SETTABLE:
            raise ValueError("is the name of a rule that is built in")
        return value


class LowPriority(Part):
    """What `priority: low` means."""

    nice: Annotated[int, Field(strict=True, ge=1, le=2**31 - 3), Tighter.HIGHER] = Field(
        description="Of a job with priority low: by how much it stands below its like (--nice)"
    )


class HighPriority(Part):
    """What `priority: high` means."""

    qos: Annotated[tuple[Word, ...], Tighter.SHARED] = Field(
        (), description="Of a job with priority high: the first of these (--qos); with none, high is not offered"
    )


class Priorities(Part):
    """What the priorities of submit_job mean; normal means nothing at all."""

    low: LowPriority
    high: HighPriority


class Exemption(Part):
    """A rule that does not stop some requests until a date. What is left out is not asked for."""

    rule: Word = Field(description="Id of the rule")
    reason: Annotated[Word, Field(min_length=8)] = Field(description="Why, shown wherever it is used")
    until: Day = Field(description="The last day on which it counts")
    users: tuple[Word, ...] = Field((), description="Only for these users")
    projects: tuple[Word, ...] = Field((), description="Only for these project folders; * matches any text")
    scripts: tuple[Word, ...] = Field((), description="Only for these scripts, relative to the project; * matches")
    partitions: tuple[Word, ...] = Field((), description="Only for these partitions")


class Policy(Part):
    """Everything that a site decides. Bytes and seconds after reading."""

    name: Word = Field(description="Name of this policy, shown to people")
    version: Word = Field(description="Version, shown in every decision")
    submissions: Annotated[Literal["on", "off"], Switch, Yes, Tighter.OFF] = Field(
        "on", description="off: no tool submits anything until a person switches it on again"
    )
    limits: Limits
    nodes_for_people: Annotated[Level, Switch, Tighter.HARSHER] = Field(
        "justify", description="What a job needs that keeps a node for a person: a notebook, a tunnel, sleep infinity"
    )
    rules: Annotated[dict[str, Annotated[Level, Switch]], RuleLevels] = Field(
        default_factory=dict, description="What a violation of a rule means, instead of the rule's own answer"
    )
    exceptions: Annotated[tuple[Exemption, ...], Tighter.BASE] = Field(
        (), description="Requests that a rule does not stop until a date"
    )
    site_rules: Annotated[tuple[SiteRule, ...], Tighter.UNITED] = Field((), description="A site's own rules, in CEL")
    smoke_first: SmokeFirst = Field(description="Which jobs a smoke run has to pass before")
    defaults: Defaults
    priority: Priorities
    status_max_age_seconds: Some = Field(description="How old the caller's last get_status may be at submission")
    justification_min_characters: Annotated[int, Field(strict=True, ge=1), Tighter.HIGHER] = Field(
        description="Shortest written reason that counts"
    )
    approval_seconds: Some = Field(description="How long a person's yes holds")
    approval_channels: Annotated[tuple[Channel, ...], Tighter.SHARED] = Field(
        description="The ways in which a person's yes counts; in a site's file only signed and passkey do"
    )
    allowed_signers: Annotated[tuple[Word, ...], Tighter.SHARED] = Field(
        (), description="Who may approve by signature: lines as in ssh-keygen's allowed signers file"
    )
    allowed_passkeys: Annotated[tuple[Word, ...], Tighter.SHARED] = Field(
        (), description="Passkeys that may approve: lines as `slurm-agent-tools passkey add` writes them"
    )
    allowed_options: Annotated[tuple[Word, ...], Tighter.SHARED] = Field(
        description="sbatch options, by their long name, that an agent's script may use"
    )
    options_by_person: Annotated[tuple[Word, ...], Tighter.SHARED] = Field(
        ("exclusive",), description="Further options, which a person has to agree to; any other one is refused"
    )
    pass_environment: Annotated[tuple[Word, ...], Tighter.SHARED] = Field(
        description="Variables of the caller that reach the job"
    )
    files_differ: Annotated[Literal["warn", "deny"], Tighter.HARSHER] = Field(
        "deny", description="What a submission over SSH gets whose script or files are not the same here and there"
    )
    write: WriteRules
    protected: Annotated[tuple[Word, ...], Tighter.UNITED] = Field(
        description="Files that no tool and no job log may write, as patterns relative to the project"
    )
    sizes: Sizes
    log_folders: Annotated[tuple[Absolute, ...], Tighter.INSIDE] = Field(
        (), description="Folders outside the project, links resolved, where job logs may go, and are read"
    )

    @field_validator("rules")
    @classmethod
    def _settable(cls, value: dict[str, Level]) -> dict[str, Level]:
        for rule, level in value.items():
            if rule not in SETTABLE:
                raise ValueError(f"there is no rule {rule!r}; rules: {', '.join(SETTABLE)}")
            if level not in SETTABLE[rule]:
                raise ValueError(f"{rule} can be {', '.join(SETTABLE[rule])}, not {level}")
        return value

    @field_validator("allowed_signers", "allowed_passkeys")
    @classmethod
    def _read_alike(cls, value: tuple[str, ...], about: ValidationInfo) -> tuple[str, ...]:
        if value:
            from slurm_agent_tools.models import allowed_passkeys, allowed_signers  # noqa: PLC0415 - few list any

            kind = allowed_signers if about.field_name == "allowed_signers" else allowed_passkeys
            allowed_signers.check(value, kind.parse)
        return value

    @field_validator("exceptions")
    @classmethod
    def _known(cls, value: tuple[Exemption, ...]) -> tuple[Exemption, ...]:
        for item in value:
            if item.rule in SETTABLE and len(SETTABLE[item.rule]) == 1:
                raise ValueError(f"the guard itself rests on the rule {item.rule}: it has no exceptions")
        return value
