"""Where a tool cannot act or a person must decide: a ready script and exact commands are left for that person."""

from __future__ import annotations

import posixpath
import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.insights.script_writing import fallback as compose
from slurm_agent_tools.models.decision import Decision
from slurm_agent_tools.models.shapes import Blocker
from slurm_agent_tools.services import project_paths
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.text.sanitize import safe_name

GENERATED = "scripts/slurm/generated"


@dataclass(frozen=True, slots=True)
class Handover:
    """What is left for a person: the script's path in the project and the commands to run."""

    artifact: str
    commands: list[str]


async def write_script(context: ClusterContext, name: str, script: str) -> str:
    """Write a new file NAME-YYYYMMDD-HHMMSS-XXXXXX.sh; returns its path in the project. Never over a file."""
    stem = f"{safe_name(name.removesuffix('.sh'))}-{context.clock.now():%Y%m%d-%H%M%S}"
    for _ in range(5):
        path = posixpath.join(GENERATED, f"{stem}-{secrets.token_hex(3)}.sh")
        real = await project_paths.resolve(context.here, "scripts folder", path)
        if await context.files.write_new(real, script.encode("utf-8", "surrogateescape"), mode=0o700):
            return path
    raise StorageError(f"no free name for {stem} in {GENERATED}", hint="Remove old generated scripts.")


async def hand_over(
    context: ClusterContext,
    *,
    name: str,
    script: bytes,
    decision: Decision,
    blocker: Blocker,
    options: Sequence[str],
    args: Sequence[str],
) -> Handover:
    """Leave the complete script, the verdict in its header, and the commands that submit and watch it."""
    text = compose(script.decode("utf-8", "surrogateescape"), decision, blocker=blocker, now=context.clock.now())
    artifact = await write_script(context, name, text)
    return Handover(artifact, _commands(context, artifact, ["sbatch", *options, artifact, *args]))


def approve_command(context: ClusterContext, approval_id: str) -> str:
    """What a person types to answer a question."""
    more = [] if context.elsewhere is None else ["--cluster", context.cluster]
    if context.site is not None:
        return shlex.join(["slurm-agent-tools", "approve", "--socket", context.site.socket, approval_id])
    ways = context.policy.policy.approval_channels
    if not {"terminal", "signed"} & {*ways}:
        return shlex.join(["slurm-agent-tools", "dashboard", *more])  # by a passkey, on the question's page
    sign = [] if "terminal" in ways else ["--sign", "KEY"]
    return shlex.join(["slurm-agent-tools", "approve", approval_id, *more, *sign])


def _commands(context: ClusterContext, artifact: str, sbatch: Sequence[str]) -> list[str]:
    """Commands for a person at this machine; for a cluster elsewhere the script is copied there first."""
    far = context.elsewhere
    if far is None:
        return [shlex.join(sbatch), "squeue --me"]
    host = f"{far.user}@{far.host}" if far.user else f"{far.host}"
    root, port = far.remote_root or ".", [] if far.port is None else ["-p", str(far.port)]
    folder = posixpath.join(root, posixpath.dirname(artifact))
    into = f"{shlex.join(['mkdir', '-p', folder])} && cat > {shlex.quote(posixpath.join(root, artifact))}"
    there = f"{shlex.join(['cd', root])} && {shlex.join(sbatch)}"
    ssh = ["ssh", *port, host]
    return [
        f"{shlex.join([*ssh, into])} < {shlex.quote(artifact)}", shlex.join([*ssh, there]),
        shlex.join([*ssh, "squeue --me"]),
    ]  # fmt: skip
