"""Before a submission over SSH: whether the script and the files it runs are the same here and where it runs."""

from __future__ import annotations

import hashlib
import posixpath
from dataclasses import replace

from slurm_agent_tools.backends import sync_sides
from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.scripts.reader import MAX_FILE, read_script
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.services.submission_request import SubmissionRequest, log_decision

RULE = "files-differ"

_NAMED = 5  # files in a sentence


async def differing_files(context: ClusterContext, request: SubmissionRequest) -> list[str]:
    """Files of the project here that are another there, or not there at all; those that are only there are left out.

    The script itself is sent with the submission, so it need not be there. Raises SlurmError.
    """
    here = await _here(context, request)
    there = await sync_sides.hashes(context.transport.runner, context.there.root, sorted(here))
    script = request.reading.path
    return sorted(name for name in here if there.get(name, here[name] if name == script else None) != here[name])


async def _here(context: ClusterContext, request: SubmissionRequest) -> dict[str, str]:
    """The hashes of the script and the files that it runs, as they are here, by their names in the project."""
    reading, files, root = request.reading, context.files, context.project
    here = await read_script(request.data, reading.path, project=root, files=files, args=request.arguments.args or ())
    named = {posixpath.relpath(posixpath.join(context.there.root, name), context.there.root) for name in reading.files}
    found: dict[str, str] = {}
    for name in sorted({reading.path, *named, *here.files}):
        real = await files.real_path(posixpath.join(root, name))
        data = await files.read(real, size=MAX_FILE + 1) if real.startswith(f"{root}/") else None
        if data is not None and not posixpath.isabs(name) and not name.startswith("../"):
            found[name] = hashlib.sha256(data).hexdigest()
    return found


async def with_difference(context: ClusterContext, request: SubmissionRequest, differs: list[str]) -> SubmissionRequest:
    """The request with a rule on what differs: a refusal, or where the policy says so a warning. In the log first."""
    decision, level = request.verdict, context.policy.policy.files_differ
    named = ", ".join(differs[:_NAMED]) + (f" and {len(differs) - _NAMED} more" if len(differs) > _NAMED else "")
    one = len(differs) == 1
    rule = RuleDecision(
        id=RULE, outcome=level,
        message=f"{named} {'is' if one else 'are'} not the same here and on the cluster. What was checked has to run.",
        observed=len(differs), limit=0, remedy="Push first: call sync_files with direction push, then submit again.",
    )  # fmt: skip
    verdict = "deny" if level == "deny" else decision.verdict
    request = replace(request, decision=replace(decision, verdict=verdict, rules=(*decision.rules, rule)))
    await log_decision(context, request, "differs", differs=differs)
    return request
