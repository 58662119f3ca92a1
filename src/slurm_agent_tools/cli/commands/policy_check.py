"""`policy check`: the decision on scripts, without a cluster."""

from __future__ import annotations

import errno
import shlex
from pathlib import Path

import anyio

from slurm_agent_tools.api import printing, render, serialize
from slurm_agent_tools.models.decision import Decision, decision_shown
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.text import safe_open
from slurm_agent_tools.transport.local import LocalFiles

DONE, BLOCKED = 0, 3


def judge(names: list[str], loaded: LoadedPolicy, settings: Settings, *, as_json: bool) -> int:
    """Print one decision a script; 0 when all are allowed, else 3."""
    verdicts = []
    for name in names:
        decision = anyio.run(check, name, loaded, settings)
        verdicts.append(decision.verdict)
        body = {"script": name, **decision_shown(decision).model_dump(mode="json")}
        if as_json:
            printing.lines([serialize.text(body)])
        else:
            printing.show([render.Line(render.plain(f"{name}:"), "heading"), *render.decision(body)])
    if not as_json:
        call = f"slurm-agent-tools submit_job {shlex.quote(names[0])} --dry-run"
        told = f"This is what the script and the policy say; `{call}` also asks Slurm and looks at your jobs."
        printing.show([render.Line(render.plain(told))])
    return DONE if set(verdicts) <= {"allow"} else BLOCKED


async def check(name: str, loaded: LoadedPolicy, settings: Settings) -> Decision:
    """The decision on one script, as far as it can be told without a cluster."""
    project = str(settings.project_root.resolve())
    data, problem = _read(Path(name), loaded.policy.sizes.script_bytes)
    if data is None:
        return evaluate(None, EvaluationContext(loaded, project, problem=problem))
    return await check_bytes(data, _shown(name, project), loaded, project=project)


async def check_bytes(
    data: bytes, shown: str, loaded: LoadedPolicy, *, project: str, justification: str | None = None
) -> Decision:
    """The decision on a script's bytes; `shown` is the path that it has in the project."""
    reading = await read_script(data, shown, project=project, files=LocalFiles())
    return evaluate(reading, EvaluationContext(loaded, project, justification=justification))


def _shown(name: str, project: str) -> str:
    """Relative to the project where it lies inside."""
    path = Path(name).resolve()
    return str(path.relative_to(project)) if path.is_relative_to(project) else str(path)


def _why(error: OSError | ValueError, limit: int) -> str:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "does not exist"
    if isinstance(error, safe_open.NotStored):
        return "is not a regular file"
    if isinstance(error, OSError) and error.errno == errno.EFBIG:
        return f"is larger than {limit} bytes"
    return f"cannot be read: {error}"


def _read(path: Path, limit: int) -> tuple[bytes | None, str | None]:
    """The script's bytes, or why it is no batch script: the rule script-exists says so in the decision."""
    try:
        data = safe_open.read(path, limit)
    except (OSError, ValueError) as error:
        return None, f"{path} {_why(error, limit)}"
    if not data.strip():
        return None, f"{path} is empty"
    if b"\0" in data:
        return None, f"{path} is a binary file"
    return (data, None) if data.startswith(b"#!") else (None, f"{path} does not start with #!")
