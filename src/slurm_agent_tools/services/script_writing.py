"""The text of a batch script from a command and hints, with the reason for every number. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.insights.script_size import readable, size_script
from slurm_agent_tools.models.arguments import GenerateScript
from slurm_agent_tools.models.decision import Decision
from slurm_agent_tools.models.job import JobRecord
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.policy.document import Limits
from slurm_agent_tools.scripts.directive_lines import directive_line
from slurm_agent_tools.text.sanitize import safe_name
from slurm_agent_tools.units import format_duration, format_memory, parse_array

LOGS = "logs/slurm"

_NAME = 200


@dataclass(frozen=True, slots=True)
class Draft:
    """A script that is not written yet. `file_name` is NAME-YYYYMMDD-HHMMSS-XXXXXX.sh."""

    script: str
    reasons: list[str]
    file_name: str


def compose(
    ask: GenerateScript,
    *,
    partitions: Mapping[str, Partition] | None,
    limits: Limits,
    mail_user: str | None,
    now: datetime,
    suffix: str,
    records: Sequence[JobRecord] = (),
) -> Draft:
    """Draft the script. `partitions` None: the cluster could not be asked; `records`: runs of jobs of this name.

    Raises InputError naming the field.
    """
    check(ask)
    request, sizes = size_script(ask, partitions, limits, records)
    header = _header(ask, request, mail_user)
    parts = ["\n".join(["#!/bin/bash", *header]), "set -euo pipefail", *_setup(ask), *_checkpoint(ask), _run(ask)]
    reasons = [*sizes, *_more_reasons(ask, mail_user)]
    return Draft("\n\n".join(parts) + "\n", reasons, f"{safe_name(ask.name)}-{now:%Y%m%d-%H%M%S}-{suffix}.sh")


# --- what is asked -------------------------------------------------------------------------------------------


def check(ask: GenerateScript) -> None:
    """Everything that can be told without a cluster. Raises InputError naming the field."""
    _check_texts(ask)
    readable(ask)
    if ask.array is not None:
        try:
            parse_array(ask.array)
        except ValueError as error:
            raise InputError("array", ask.array, str(error), hint="Write it as for sbatch --array, 0-9%4.") from error


def _check_texts(ask: GenerateScript) -> None:
    """What must be one line, and the command, which may be several."""
    single = {"name": ask.name, "partition": ask.partition, "array": ask.array}
    single |= {f"setup[{index}]": line for index, line in enumerate(ask.setup or [])}
    if ask.checkpoint is not None:
        single |= {"checkpoint.dir": ask.checkpoint.dir, "checkpoint.resume_from": ask.checkpoint.resume_from}
    for field, value in single.items():
        if value is not None:
            _one_line(field, value)
    if len(ask.name) > _NAME:
        raise InputError("name", ask.name, f"is longer than {_NAME} characters", hint="Shorten it.")
    if not ask.command.strip():
        raise InputError("command", ask.command, "is empty", hint="Say what the job runs.")
    if any(not sign.isprintable() and sign not in "\n\t" for sign in ask.command):
        raise InputError("command", ask.command, "contains a character that cannot be printed", hint="Use plain text.")


def _one_line(field: str, value: str) -> None:
    if not value.strip():
        raise InputError(field, value, "is empty", hint=f"Leave {field} out or give it some text.")
    if any(not sign.isprintable() for sign in value):
        raise InputError(
            field, value, "contains a character that cannot be printed", hint="Use one line of plain text."
        )


# --- what is written -----------------------------------------------------------------------------------------


def _header(ask: GenerateScript, request: JobRequest, mail_user: str | None) -> list[str]:
    log = "%x" if safe_name(ask.name, limit=_NAME) == ask.name else safe_name(ask.name)
    log = f"{LOGS}/{log}-{'%A_%a' if ask.array else '%j'}"
    numbers = {"nodes": request.nodes, "ntasks": request.ntasks, "gpus": request.gpus or None}
    numbers |= {"cpus-per-task": request.cpus_per_task}
    sizes = {"mem-per-gpu": request.memory_per_gpu, "mem": request.memory_per_node}
    options: dict[str, str | None] = {"job-name": ask.name, "partition": request.partition}
    options |= {option: str(number) for option, number in numbers.items() if number is not None}
    options |= {option: format_memory(size) for option, size in sizes.items() if size is not None}
    options |= {"time": None if request.time_limit is None else format_duration(request.time_limit)}
    options |= {"array": ask.array, "output": f"{log}.out", "error": f"{log}.err"}
    if mail_user is not None:
        options |= {"mail-type": "END,FAIL", "mail-user": mail_user}
    return [_directive(option, value) for option, value in options.items() if value is not None]


def _directive(option: str, value: str) -> str:
    try:
        return directive_line(option, value)
    except ValueError as error:
        raise InputError(option, value, str(error), hint="Use one line of plain text.") from error


def _setup(ask: GenerateScript) -> list[str]:
    """The user's own lines. Environment scripts read variables that are not set, so -u waits until they are done."""
    return ["\n".join(["set +u", *ask.setup, "set -u"])] if ask.setup else []


def _checkpoint(ask: GenerateScript) -> list[str]:
    if ask.checkpoint is None:
        return []
    task = '/"$SLURM_ARRAY_TASK_ID"' if ask.array else ""
    lines = [f"export CHECKPOINT_DIR={shlex.quote(ask.checkpoint.dir)}{task}", 'mkdir -p "$CHECKPOINT_DIR"']
    if ask.checkpoint.resume_from is not None:
        lines.append(f"export RESUME_FROM={shlex.quote(ask.checkpoint.resume_from)}")
    return ["\n".join(lines)]


_SIMPLE = re.compile(r"(?![A-Za-z_]\w*=)(?!(?:cd|source|export|set|if|for|while|exec|eval|\.)\s)[^\n;&|<>()`#]+")


def _run(ask: GenerateScript) -> str:
    """The command as it is; with `distributed` as a step of one process per GPU."""
    command = ask.command.strip()
    if not ask.distributed or command.startswith("srun "):
        return command
    if _SIMPLE.fullmatch(command):
        return f"srun {command}"
    return f"srun bash -euo pipefail -c {shlex.quote(command)}"


def _more_reasons(ask: GenerateScript, mail_user: str | None) -> list[str]:
    reasons = [f"Logs go to {LOGS}/, which must be there when the job starts."]
    if mail_user is not None:
        reasons.append("Mail at the end and on failure: an address is configured.")
    if ask.checkpoint is not None:
        text = "CHECKPOINT_DIR names the checkpoint folder, which the script makes"
        text += ", one for each task" if ask.array else ""
        reasons.append(text + ("; RESUME_FROM names what to go on from." if ask.checkpoint.resume_from else "."))
    if ask.distributed:
        reasons.append("srun starts one process per GPU.")
    return reasons


# --- the script that is left for a person --------------------------------------------------------------------

_CODING = re.compile(r"#.*coding[:=]")  # Python reads a source's encoding in its first two lines (PEP 263)


def fallback(script: str, decision: Decision, *, blocker: str, now: datetime) -> str:
    """The whole script, the verdict as comments behind its first line; directives and commands stay as they are."""
    first, _, rest = script.partition("\n")
    second, newline, after = rest.partition("\n")
    if _CODING.match(second):
        first, rest = f"{first}\n{second}", after if newline else ""
    return "\n".join([first, *(_comment(line) for line in _verdict(decision, blocker, now)), rest])


def _verdict(decision: Decision, blocker: str, now: datetime) -> list[str]:
    policy = f"policy version {decision.policy.version}, sha256 {decision.policy.sha256}"
    lines = [
        f"slurm-agent-tools did not submit this script ({blocker}), {now.isoformat(timespec='seconds')}.",
        f"Verdict: {decision.verdict}; decision {decision.id}; {policy}.",
    ]
    for rule in decision.rules:
        if rule.outcome in {"warn", "justify", "approve", "deny"}:
            lines += f"{rule.id} ({rule.outcome}): {rule.message}".splitlines()
            lines += [f"  {line}" for line in (rule.remedy or "").splitlines()]
    lines += [f"To be given to sbatch: {pin.option} ({pin.why})" for pin in decision.pinned]
    return [*lines, "A person decides: read the script, then submit it by hand."]


def _comment(line: str) -> str:
    """A line that neither sbatch nor a shell acts on, whatever a job's name or a path holds."""
    return "# " + "".join(sign if sign.isprintable() else " " for sign in line).rstrip()
