"""The stages of a configuration: what it is now, what was tried of it, and what came of that by Slurm's record."""

from __future__ import annotations

import contextlib
import posixpath
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from slurm_agent_tools.backends import input_files, stages
from slurm_agent_tools.backends.input_files import InputFile
from slurm_agent_tools.backends.stages import Ladder, StageRun, StageState
from slurm_agent_tools.errors import AgentToolsError, SlurmError
from slurm_agent_tools.insights.accounting_history import JobSources
from slurm_agent_tools.models.geometry import geometry
from slurm_agent_tools.models.job import JobView
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, ScriptReading
from slurm_agent_tools.models.status_answer import LadderShown, StageShown
from slurm_agent_tools.store.submissions import OPEN_PHASES, Submission
from slurm_agent_tools.transport.base import Files

_NOT_ENDED = "its end is not known"

_SHOWN, _LATELY = 5, 100

_SLACK = timedelta(seconds=5)
"""How far the clocks of a node and of the project's files may be apart."""


@dataclass(frozen=True, slots=True)
class StageQuestion:
    """A request whose configuration is asked about. `files`: of the place where its jobs run, `far` over a connection.

    `args` are the script's, `variables` those that pass to the job, `active` the jobs that are not over, `seconds` the
    longest smoke run, `purposes` what pages say that partitions are for.
    """

    reading: ScriptReading
    request: JobRequest
    resources: Resources
    args: Sequence[str]
    variables: Mapping[str, str]
    files: Files
    far: bool
    active: frozenset[int]
    partitions: Mapping[str, Partition]
    seconds: int
    purposes: Mapping[str, str] = field(default_factory=dict)


async def ladder(
    sources: JobSources, asked: StageQuestion, settle_all: Callable[[Sequence[Submission]], Awaitable[object]]
) -> Ladder:
    """What is known of this request's configuration. What cannot be told is its `problem`, never an empty answer.

    `settle_all` asks Slurm how jobs ended. Raises StorageError where the ledger cannot be read.
    """
    try:
        parts, files = await _parts(sources, asked)
    except (AgentToolsError, ValueError) as error:
        return Ladder(problem=error.message if isinstance(error, AgentToolsError) else str(error))
    found = stages.configuration(parts)
    named = partial(sources.store.staged, sources.owner, configuration=found, script_path=asked.reading.path)
    runs = await sources.db(named)
    ended = [run for run in runs if run.phase == "released" and run.passed is None and run.job_id not in asked.active]
    if ended:
        with contextlib.suppress(SlurmError):  # what is not known then is not known to have passed
            await settle_all(ended)
        runs = await sources.db(named)
    found, parts = _as_tried(found, parts, files, runs)
    return Ladder(
        configuration=found,
        parts=parts,
        runs=tuple(stage_run(run, asked.active) for run in runs),
        smoke_partition=stages.cheapest(asked.partitions, asked.resources, asked.seconds, asked.purposes),
        lengths=(await input_files.computed(stages.declared, asked.reading.text)).lengths,
    )


def _as_tried(
    found: str, parts: dict[str, str], files: Mapping[str, InputFile], runs: Sequence[Submission]
) -> tuple[str, dict[str, str]]:
    """The configuration as an earlier run knew it, where nothing but files was added since that only a word names.

    That run did without them, and they were written while it, or a later one, was there: they are what those wrote.
    """
    for run in runs if all(run.configuration != found for run in runs) else ():
        known = run.parts or {}
        since = [one for one in runs if one.created >= run.created]
        later = {name for name, file in files.items() if file.named and name not in known and _written_by(file, since)}
        kept = {name: value for name, value in parts.items() if name not in later}
        if later and stages.configuration(kept) == run.configuration:
            return run.configuration, kept
    return found, parts


def _written_by(file: InputFile, runs: Sequence[Submission]) -> bool:
    """Whether a file was written while one of these runs waited or ran."""
    if file.modified is None:
        return False
    ends = [(run.created, run.ended) for run in runs]
    return any(begun <= file.modified and (ended is None or file.modified <= ended + _SLACK) for begun, ended in ends)


async def _parts(sources: JobSources, asked: StageQuestion) -> tuple[dict[str, str], dict[str, InputFile]]:
    """The parts of the configuration. Raises ValueError and AgentToolsError for what cannot be told."""
    shape, root = geometry(asked.request, None), sources.environment.root
    files = await input_files.read_inputs(asked.files, root, asked.reading, asked.args, far=asked.far)
    told = partial(
        stages.parts_of,
        request=asked.request,
        args=asked.args,
        layout={"nodes": shape.nodes, "tasks": shape.tasks, "cpus": shape.cpus, "gpus": shape.gpus},
        files={name: found.identity for name, found in files.items()},
        environment=asked.variables,
    )
    return await input_files.computed(told, asked.reading.text), files


def stage_run(run: Submission, active: frozenset[int]) -> StageRun:
    """One stage as the ledger knows it."""
    state, why = _state(run, active)
    return StageRun(
        job_id=str(run.job_id) if run.job_id is not None else run.idempotency_key,
        stage=run.stage or "production",
        configuration=run.configuration or "",
        submitted=run.created,
        state=state,
        why=why,
        parts=run.parts,
    )


def _state(run: Submission, active: frozenset[int]) -> tuple[StageState, str]:
    if run.phase in OPEN_PHASES or run.job_id in active:
        return "active", ""
    drifted = [] if run.drift is None else [one.what for one in run.drift.told if one.kind == "file"]
    if drifted:
        return "failed", f"{drifted[0]} while it waited"
    if run.passed is True:
        return "passed", ""
    if run.passed is False:
        return ("cancelled" if run.outcome == "CANCELLED" else "failed"), run.stage_note or ""
    return "unknown", run.stage_note or _NOT_ENDED


async def settle(sources: JobSources, files: Files, run: Submission, view: JobView) -> None:
    """Write down whether a stage passed, by Slurm's record of its end and by the files that its script declares."""
    absent = sources.slurm.accounting.absent
    passed, why = stages.end_of(replace(view, missing=None) if absent else view)
    if passed and not absent and not all(part.steps for part in (view.tasks or (view.job,))):
        passed, why = None, "the accounting does not tell its steps yet"
    if passed:
        why = await _unwritten(files, sources.environment.root, run, view)
        passed = why is None
    await sources.db(sources.store.update, run, passed=passed, stage_note=why)


async def _unwritten(files: Files, root: str, run: Submission, view: JobView) -> str | None:
    """Which file that the run had to write is not there, or is older than it."""
    try:
        for path in (run.parts or {}).get(input_files.WRITES, "").split():
            found = await files.stat(await files.real_path(posixpath.join(root, path)))
            begun = view.job.started or run.created
            if found is None or not found.size or found.modified < begun.replace(microsecond=0):
                return f"it did not write {path}, which its script declares"
    except AgentToolsError as error:
        return f"what it wrote cannot be read: {error.message}"
    return None


# --- The ladder of each configuration, for get_status -----------------------------------------------------------------


async def shown(sources: JobSources, active: frozenset[int], *, every: bool) -> list[LadderShown]:
    """The stages of each configuration, the one that was tried last first; of many the newest ones."""
    runs = await sources.db(partial(sources.store.staged, sources.owner, limit=_LATELY))
    ladders: dict[str, LadderShown] = {}
    for run in runs:
        one = stage_run(run, active)
        if one.configuration not in ladders:
            ladders[one.configuration] = LadderShown(
                configuration=one.configuration[:12], script=run.script_path, stages={}
            )
        told = ladders[one.configuration].stages
        if one.stage not in told and one.state != "cancelled":
            told[one.stage] = StageShown(job_id=one.job_id, state=one.state, why=one.why or None)
    found = [one for one in ladders.values() if one.stages]
    return found if every else found[:_SHOWN]
