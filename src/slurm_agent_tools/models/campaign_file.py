"""What a campaign's file says: objective, stages, rounds, limits, and what may be done about a failure."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from slurm_agent_tools.models.document_fields import Amount, Bytes, Count, Line, Seconds, Text

Value = (
    Annotated[int, Field(strict=True)]
    | Annotated[float, Field(strict=True)]
    | Annotated[bool, Field(strict=True)]
    | Line
)
"""One value of a parameter."""

Name = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,40}$")]

RESOURCES = ("cpus", "memory", "gpus", "nodes")
"""Resources that a round may vary as it varies a parameter; memory as text with its unit."""


class FilePart(BaseModel):
    """A part of the file: a name that it does not have is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, defer_build=True, validate_by_alias=True, validate_by_name=True
    )


class Objective(FilePart):
    """What counts: a metric and its direction, or the total time (queue, run, retries) to an amount of work."""

    metric: Line | None = None
    """The metric's name, as the run tells it."""
    direction: Literal["minimize", "maximize"] | None = None
    wall_clock: Line | None = None
    """The amount of work, in words: the time to it is minimized."""
    target: Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    """The campaign ends when this value is reached; seconds where wall_clock counts."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Objective:
        if (self.metric is None) == (self.wall_clock is None):
            raise ValueError("state either metric, with its direction, or wall_clock")
        if (self.metric is None) != (self.direction is None):
            raise ValueError("direction is needed beside metric, and only there")
        return self

    @property
    def maximize(self) -> bool:
        """Whether more is better."""
        return self.direction == "maximize"


class Parameter(FilePart):
    """How a stage takes one parameter: as `--name VALUE`, an environment variable, or a key of its config file."""

    default: Value
    """The baseline's value."""
    argument: Annotated[str, Field(strict=True, pattern=r"^(--?)?[A-Za-z][\w.-]{0,60}=?$")] | None = None
    """The option; with `=` at its end `NAME=VALUE` is one word."""
    environment: Annotated[str, Field(strict=True, pattern=r"^[A-Z][A-Z0-9_]{0,60}$")] | None = None
    """The variable's name."""
    config: Annotated[str, Field(strict=True, pattern=r"^[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*){0,9}$")] | None = None
    """The key in the stage's `config_file`, with dots between levels."""
    length: bool = Field(False, strict=True)
    """Whether it only says how much is done (epochs, steps): what a smoke run changes."""

    @model_validator(mode="after")
    def _one_way(self) -> Parameter:
        if sum(way is not None for way in (self.argument, self.environment, self.config)) != 1:
            raise ValueError("state exactly one of argument, environment and config")
        return self


class StageResources(FilePart):
    """What one run asks for, over all its nodes; the time limit in seconds, memory in bytes for each node."""

    cpus: Count | None = None
    """Over all nodes."""
    memory: Bytes | None = None
    """For each node, with its unit: 8G."""
    gpus: Annotated[int, Field(strict=True, ge=0)] = 0
    """Over all nodes."""
    nodes: Count | None = None
    time_limit: Seconds
    """With its unit: 90min, 4h."""
    partition: Line | None = None
    gpu_memory: Bytes | None = None
    """What each GPU has to have, with its unit: `campaign run --all` picks the smallest GPUs by it."""


class SmokeRun(FilePart):
    """What a smoke run changes: values of parameters that are lengths, and its time limit."""

    change: dict[Name, Value] = {}
    """Lengths and their values in a smoke run."""
    time_limit: Seconds | None = None


class MustHold(FilePart):
    """What must be true for a run to have passed, beside its exit code 0."""

    finite: tuple[Line, ...] = ()
    """Metrics that must be there and finite; the objective's always must."""
    files: tuple[Line, ...] = ()
    """Files that the run writes; {trial} stands for the trial, as r1-t3."""
    at_least: dict[Line, Annotated[float, Field(strict=True, allow_inf_nan=False)]] = {}
    """Metrics, such as a throughput, and their smallest good value; not asked of a smoke run where it is a length."""


class MetricSource(FilePart):
    """Where the metrics are: a JSON or CSV file, or a pattern of the log for each; else what analyze_log finds."""

    file: Line | None = None
    """Holds {trial}, as r1-t3: each run has its own. JSON: one object; CSV: the last line under its header."""
    pattern: dict[Name, Line] | None = None
    """A regular expression with one group, for each metric; the last line that fits counts."""

    @model_validator(mode="after")
    def _one_source(self) -> MetricSource:
        if (self.file is None) == (self.pattern is None):
            raise ValueError("state either file or pattern")
        return self


class CampaignStage(FilePart):
    """One kind of job of the campaign, and what it takes."""

    name: Name
    """data_fetching, preprocessing, caching, training, eval, or a name of your own."""
    kind: Literal["cpu", "gpu"]
    """Both kinds are judged apart."""
    script: Line | None = None
    """A script of yours; it gets the parameters as its arguments and environment."""
    command: tuple[Line, ...] | None = None
    """The command as a list of words; no shell reads it. {trial}, {repeat} and {config} are filled in."""
    setup: tuple[Line, ...] = ()
    """Lines of shell before the command, such as `module load`."""
    parameters: dict[Name, Parameter] = {}
    """What it can be told, by name."""
    config_file: Line | None = None
    """What each trial's own config file is made from; the command gets its path as {config}."""
    reads: tuple[Line, ...] = ()
    """Files of code and data that the run reads, beside those that its script names: they are part of what it is."""
    resources: StageResources
    smoke: SmokeRun = SmokeRun()
    passes: MustHold = MustHold()
    metrics: MetricSource | None = None

    @model_validator(mode="after")
    def _runs_something(self) -> CampaignStage:
        if (self.script is None) == (self.command is None):
            raise ValueError("state either script or command")
        return self


class Range(FilePart):
    """Numbers from low to high, both included. `log`: by their magnitude; `step`: only low, low + step, ..."""

    low: Annotated[float, Field(strict=True, allow_inf_nan=False)]
    high: Annotated[float, Field(strict=True, allow_inf_nan=False)]
    log: bool = Field(False, strict=True)
    step: Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)] | None = None
    whole: bool = Field(False, strict=True)
    """Whether only whole numbers count."""

    @model_validator(mode="after")
    def _ordered(self) -> Range:
        if self.low >= self.high:
            raise ValueError(f"low ({self.low:g}) has to be below high ({self.high:g})")
        if self.log and self.low <= 0:
            raise ValueError("low has to be above 0 where log is true")
        return self


Choices = Annotated[tuple[Value, ...], Field(min_length=1, max_length=1000)]

Varied = dict[Name, Choices | Range]
"""A parameter, or a resource (cpus, memory, gpus, nodes), and the values that it may have."""


class _Round(FilePart):
    hypothesis: Text
    """What is varied, what is expected, and why."""
    stages: tuple[Name, ...] | None = None
    """The stages that take part; None: all."""
    repeats: Annotated[int, Field(strict=True, ge=1, le=50)] = 1
    """Runs of each configuration: only several, each with its own seed ({repeat}), tell what differs by chance."""


class SmokeRound(_Round):
    """One short run of each stage with the default of every parameter."""

    kind: Literal["smoke"]
    hypothesis: Text = "Each stage runs, and tells its metrics."


class GridRound(_Round):
    """Every combination of the values."""

    kind: Literal["grid"]
    vary: Annotated[dict[Name, Choices], Field(min_length=1)]
    """A parameter or a resource, and its values; at most two in one round."""


class ListRound(_Round):
    """Exactly these configurations."""

    kind: Literal["list"]
    trials: Annotated[tuple[dict[Name, Value], ...], Field(min_length=1, max_length=5000)]
    """Each configuration: parameters or resources, and their values; at most two of them in one round."""


class RandomRound(_Round):
    """As many configurations as stated, by chance."""

    kind: Literal["random"]
    vary: Annotated[Varied, Field(min_length=1)]
    trials: Count


class HalvingRound(_Round):
    """Successive halving: many short runs, and the best of them again, longer (Jamieson and Talwalkar 2016)."""

    kind: Literal["halving"]
    vary: Annotated[Varied, Field(min_length=1)]
    trials: Annotated[int, Field(strict=True, ge=2)]
    length: Name
    """The parameter that is a length."""
    from_: Annotated[float, Field(strict=True, gt=0, alias="from")]
    """The length of the first runs."""
    to: Annotated[float, Field(strict=True, gt=0)]
    """The length of the last ones."""
    keep_one_of: Annotated[int, Field(strict=True, ge=2, le=10)] = 3
    """The best of so many go on, with so many times the length."""


class SearchRound(_Round):
    """A search over many parameters at once, each run chosen by what the runs before it showed."""

    kind: Literal["search"]
    vary: Annotated[Varied, Field(min_length=1)]
    trials: Count
    by: Literal["model", "optuna"] = "model"
    """model: a small Gaussian process of our own; optuna: the extra `search`."""
    sampler: Literal["tpe", "gp", "cmaes", "random"] | None = None
    """Optuna's."""


class ScaleUpRound(_Round):
    """The best configurations of all rounds before, with other lengths."""

    kind: Literal["scale_up"]
    best: Count = 1
    """How many of the best."""
    change: dict[Name, Value] = {}
    """Lengths and their new values."""


Round = Annotated[
    SmokeRound | GridRound | ListRound | RandomRound | HalvingRound | SearchRound | ScaleUpRound,
    Field(discriminator="kind"),
]

ComparingRound = GridRound | ListRound | RandomRound | HalvingRound | SearchRound | ScaleUpRound


class CampaignLimits(FilePart):
    """What may be spent. Hours are those that were asked for until a run has ended, and then those that it took."""

    gpu_hours: Amount | None = None
    cpu_hours: Amount | None = None
    """Always needed; gpu_hours where a stage has GPUs."""
    rounds: Annotated[int, Field(strict=True, ge=1, le=100)] = 10
    trials: Annotated[int, Field(strict=True, ge=1, le=5000)] = 200
    at_once: Count = 4
    """Jobs or tasks that wait or run together; the policy's cap counts besides."""
    same_failure: Annotated[int, Field(strict=True, ge=2, le=10)] = 2
    """After so many failures of one cause what shares it is stopped."""


class Plateau(FilePart):
    """The campaign ends when so many rounds in a row each gained less than this share."""

    rounds: Count = 2
    gain_below: Annotated[float, Field(strict=True, gt=0, lt=1)] = 0.01


class StopWhen(FilePart):
    """When to stop before the rounds are over; the target of the objective and the limits always do."""

    plateau: Plateau | None = None


class Fix(FilePart):
    """What may be done about a failure of a category as analyze_log names it, and how often for one configuration."""

    on: Annotated[Line, Field(validation_alias="failure")]
    """The category, as analyze_log names it; `failure` in the file, because YAML reads a key `on` as true."""
    stages: tuple[Name, ...] | None = None
    multiply: dict[Name, Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]] = {}
    """Parameters and by how much, such as {batch_size: 0.5}; whole numbers stay whole."""
    change: dict[Name, Value] = {}
    """Parameters and their new values."""
    memory: Bytes | None = None
    """Memory up to this: what the diagnosis proposes, not more."""
    time_limit: Seconds | None = None
    at_most: Count = 1
    """How often for one configuration."""

    @model_validator(mode="after")
    def _does_something(self) -> Fix:
        if not (self.multiply or self.change or self.memory or self.time_limit):
            raise ValueError("state what is done: multiply, change, memory or time_limit")
        return self


class CampaignFile(FilePart):
    """A campaign: one question, answered by many runs in rounds."""

    campaign: Literal[1]
    """The version of this form."""
    title: Line | None = None
    share: Annotated[float, Field(strict=True, ge=0, le=1)] | None = None
    """Of the GPU time of all campaigns of the project, from 0 to 1: `campaign run --all` shares the slots by it."""
    objective: Objective
    stages: Annotated[tuple[CampaignStage, ...], Field(min_length=1, max_length=20)]
    rounds: Annotated[tuple[Round, ...], Field(min_length=1, max_length=100)]
    limits: CampaignLimits
    stop: StopWhen = StopWhen()
    fixes: tuple[Fix, ...] = ()
    plan: Annotated[str, Field(strict=True, pattern=r"^slurm://plans/[0-9a-f]{1,64}$")] | None = None
    """The uri of a plan whose jobs are named after settings, `lr=0.1`: trials are sent in its order, each as a job."""
    justification: Text | None = None
    """Why requests are above what is free: it goes with each submission, as submit_job's."""
    notes: tuple[Text, ...] = ()

    def is_smoke_round(self, number: int) -> bool:
        """Whether the file has a smoke round of this number, counted from 0."""
        return number < len(self.rounds) and isinstance(self.rounds[number], SmokeRound)

    def stage(self, name: str) -> CampaignStage:
        """The stage of this name. Raises KeyError."""
        return {stage.name: stage for stage in self.stages}[name]
