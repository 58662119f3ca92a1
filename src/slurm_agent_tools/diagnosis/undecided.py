"""What is said of a failure of which neither Slurm nor the log tells the cause."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.diagnosis.excerpt import LogText
from slurm_agent_tools.diagnosis.facts import broken
from slurm_agent_tools.model import Job

_READ = "Read the lines shown, and let the program say more (set -x in the script, verbose logging)."
_UNREAD = "Read the job's log where it still is; let the program say more (set -x in the script, verbose logging)."


def told(part: Job | None, texts: Sequence[LogText]) -> str:
    """What is known, with the exit code. No texts: no log was read; a text without lines: nothing was written."""
    if part is None:
        return "No line of the log shows a known failure, and Slurm's records were not asked."
    if part.state == "COMPLETED":
        return f"{len(broken(part))} step(s) failed behind the exit code 0; the log does not say why."
    if _silent(texts) and part.state == "FAILED" and _end(part):
        return f"The script ended with {_end(part)} and wrote nothing to its log."
    end = f" with {_end(part)}" if _end(part) else ""
    why = "the log is empty" if _silent(texts) else "neither Slurm nor the log says why"
    return f"The job ended in {part.state}{end}; {why if texts else 'Slurm does not say why, and no log was read'}."


def advice(part: Job | None, texts: Sequence[LogText]) -> list[str]:
    """What to do so that the next run tells more."""
    if not _silent(texts):
        return [_READ if texts or part is None else _UNREAD]
    end = f" with {_end(part)}" if part is not None and _end(part) else ""
    return [f"Put `set -x` at the top of the script, or let the program print why it ends{end}."]


def _silent(texts: Sequence[LogText]) -> bool:
    return bool(texts) and not any(text.lines for text in texts)


def _end(part: Job) -> str:
    """The signal or the exit code; empty where Slurm tells of none."""
    if part.signal:
        return f"signal {part.signal}"
    return f"exit code {part.code_text}" if part.exit_code else ""
