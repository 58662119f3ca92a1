"""Saving the results of trials that ended together: each a file of its own, what is the same for all read once."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.insights import experiment_results
from slurm_agent_tools.models.decision import Decision
from slurm_agent_tools.models.job import JobView
from slurm_agent_tools.models.result import ResultRecord, SaveResult
from slurm_agent_tools.services import failures, jobs, project_paths, results
from slurm_agent_tools.services.context import Caller, ClusterContext
from slurm_agent_tools.transport.git_state import git_state


@dataclass(frozen=True, slots=True)
class _Draft:
    """A result that is to be written: `path` in the project, `real` with links resolved."""

    ask: SaveResult
    view: JobView
    record: ResultRecord
    path: str
    real: str
    data: bytes
    decision: Decision


async def save_all(
    context: ClusterContext, asked: Sequence[tuple[SaveResult, JobView]], caller: Caller
) -> list[str | None]:
    """Write results of different names, each with its metrics, as save_result does; their paths, None where blocked.

    None of them is of a failure, of which more is kept. What is the same for all is read once; decisions are logged,
    and results noted, in one step each. An error of one is an error of all: what was written is found again by
    its name. Raises as save_result.
    """
    folder = await project_paths.resolve(context.here, "output_dir", results.FOLDER)
    names = set(await context.files.list(folder) or ())
    bases = {view.job.job_id.base for _, view in asked}
    known = results.SavedTogether(
        await git_state(context.project), await context.db(context.store.by_jobs, context.owner, bases)
    )
    drafts = [await _draft(context, ask, view, folder, names, known) for ask, view in asked]
    decided = [(draft.decision, {"path": draft.path, "size": len(draft.data)}) for draft in drafts]
    await context.log_decisions(caller, "save_result", "decided", decided)
    paths, notes = list[str | None](), list[Callable[[], object]]()
    for draft in drafts:
        path: str | None = draft.path
        if draft.decision.verdict != "allow":
            path = None
        elif await context.files.write_new(draft.real, draft.data, mode=0o600):
            notes.append(results.note(context, draft.path, draft.record))
        else:  # somebody took the name meanwhile
            path = (await results.save_result(context, draft.ask, caller, draft.view)).file_path
        paths.append(path)
    await context.db(context.store.together, notes)
    return paths


async def _draft(
    context: ClusterContext, ask: SaveResult, view: JobView, folder: str, names: set[str], known: results.SavedTogether
) -> _Draft:
    view = await jobs.in_full(context, view)
    record = await results.record_of(context, ask, view, known)
    data = (record.model_dump_json(indent=2) + "\n").encode()
    tried = (experiment_results.path_of(ask, record.timestamp, attempt) for attempt in range(1, 1000))
    path = next((path for path in tried if posixpath.basename(path) not in names), None)
    if path is None:
        raise StorageError(f"no free name for {ask.name} in {ask.output_dir}", hint="Choose another name.")
    names.add(posixpath.basename(path))
    real = posixpath.join(folder, posixpath.basename(path))
    _, decision = failures.judged_at(context, real, len(data), exists=False)
    return _Draft(ask, view, record, path, real, data, decision)
