"""What plan_jobs answers. Times are seconds from now, by what jobs are expected to take."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from slurm_agent_tools.models.shapes import Reply, Shape, no_items, unknown


class PlanGroup(Shape):
    """Jobs that start one after another, in their order; from `start` to `last_start`."""

    jobs: str
    start: int
    last_start: int | None = None
    place: str


class SubmissionShown(Shape):
    """One call of submit_job. `<name>` in a dependency stands for the id of that job.

    `generate_script`: its arguments instead, for a pool named like a page of PBS or Kubernetes; a person starts what it
    writes, on PBS with `qsub -W depend=DEPENDENCY`.

    `after`: submit once these have ended, names or ids.

    `verdict`: what the policy says of the script as it is now; None where there is no script yet. `because`: the rules
    that say so, smoke-first where a smoke run has to pass before.
    """

    job: str
    how: Literal["array", "single", "chain"]
    script: str | None = None
    array: str | None = None
    dependency: str | None = None
    after: list[str] | None = None
    verdict: Literal["allow", "justify", "approve", "deny"] | None = None
    because: list[str] | None = None
    generate_script: dict[str, str | int] | None = None


class SlicesOffered(Shape):
    """Of jobs that checkpoint: what slices would be worth, of which no run time has to be known. Offered, never forced.

    `calls` of submit_job are in the plan's resource; each goes on from the checkpoint of the slice before.
    """

    summary: str
    mean_completion_seconds: int
    restarts: int
    lost_seconds: int
    calls: int


class PlanReply(Reply):
    """The plan. `changes`: what became of the plan before, of the same jobs.

    `bound_seconds`, `gap` and `naive_seconds` are of the mean completion where that is the objective.
    `run_times`: of jobs of which nothing was said, by similar ones that ended. `first_start`: what the first waits.
    """

    written_by_others: ClassVar[tuple[str, ...]] = ()

    status: Literal["planned", "infeasible"]
    objective: Literal["makespan", "mean_completion", "deadlines", "cost"]
    makespan_seconds: int
    mean_completion_seconds: int
    bound_seconds: int
    gap: float
    naive_seconds: int
    cost: float | None = None
    missed: list[str] = Field(default_factory=no_items)
    method: Literal["lists", "exact"]
    groups: list[PlanGroup] = Field(default_factory=no_items)
    submissions: list[SubmissionShown] = Field(default_factory=no_items)
    submissions_not_shown: int = 0
    run_times: list[str] = Field(default_factory=no_items)
    first_start: str | None = Field(default=None, exclude_if=unknown)
    changes: list[str] = Field(default_factory=no_items)
    slices: SlicesOffered | None = Field(default=None, exclude_if=unknown)
    assumptions: list[str] = Field(default_factory=no_items)
    uri: str
    gantt_uri: str
