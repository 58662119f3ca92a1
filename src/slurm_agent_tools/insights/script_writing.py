"""The text of a batch script from a command and hints, with the reason for every number. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.insights.launch_lines import is_one_command, launch, launch_elsewhere, step
from slurm_agent_tools.insights.script_size import launcher_asked, readable, signal_seconds, size_script
from slurm_agent_tools.models.decision import Decision, RuleDecision
from slurm_agent_tools.models.job import JobRecord
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.models.script_arguments import Checkpoint, GenerateScript
from slurm_agent_tools.policy.document import Limits
from slurm_agent_tools.policy.rules.rule import WHY_NEEDED, call_again
from slurm_agent_tools.scripts.directive_lines import directive_line
from slurm_agent_tools.text.sanitize import safe_name
from slurm_agent_tools.units import format_duration, format_memory, parse_array, parse_memory

LOGS = "logs/slurm"

_NAME = 200


@dataclass(frozen=True, slots=True)
class Draft:
    """A script that is not written yet, and its numbers. `file_name` is NAME-YYYYMMDD-HHMMSS-XXXXXX.sh."""

    script: str
    reasons: list[str]
    file_name: str
    request: JobRequest


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
    program = _program(ask, request)
    parts = ["\n".join(["#!/bin/bash", *header]), "set -euo pipefail", *_setup(ask), *_checkpoint(ask), program]
    reasons = [*sizes, *_more_reasons(ask, mail_user)]
    file_name = f"{safe_name(ask.name)}-{now:%Y%m%d-%H%M%S}-{suffix}.sh"
    return Draft("\n\n".join(parts) + "\n", reasons, file_name, request)


def body_elsewhere(ask: GenerateScript, request: JobRequest) -> str:
    """What the job runs under another scheduler: setup, checkpoint and program. Raises InputError as `compose`."""
    try:
        program = _program_elsewhere(ask, request)
    except ValueError as error:
        hint = "Name one program with its arguments; put what comes before it into setup."
        raise InputError("command", ask.command, f"{error} ({ask.format})", hint=hint) from error
    return "\n\n".join([*_setup(ask), *_checkpoint(ask), program])


def _program_elsewhere(ask: GenerateScript, request: JobRequest) -> str:
    """The command: with its launcher, or under `timeout` where it is to get a signal before its time is over."""
    command, launcher = ask.command.strip(), launcher_asked(ask)
    before, limit = signal_seconds(ask), request.time_limit
    if before is not None and launcher is not None:
        raise ValueError(f"gets no signal before the time limit from {launcher}, which starts several processes")
    if launcher is not None:
        processes = request.gpus_per_node or request.ntasks_per_node or 1
        return launch_elsewhere(launcher, command, processes, request.nodes or 1, ask.format)
    if before is None or limit is None:
        return command
    if not is_one_command(command):
        raise ValueError("is more than one program")
    ends = f"--signal=USR1 --kill-after={before} {limit - before}"
    return f"timeout --foreground --preserve-status {ends} {command}"


# --- what is asked -------------------------------------------------------------------------------------------


def check(ask: GenerateScript) -> None:
    """Everything that can be told without a cluster. Raises InputError naming the field."""
    _check_texts(ask)
    readable(ask)
    if ask.gpu_type is not None and re.fullmatch(r"[A-Za-z0-9][\w.-]*", ask.gpu_type, re.ASCII) is None:
        raise InputError("gpu_type", ask.gpu_type, "is no name of a kind of GPU", hint="Write it like A100.")
    if ask.array is not None:
        try:
            parse_array(ask.array)
        except ValueError as error:
            raise InputError("array", ask.array, str(error), hint="Write it as for sbatch --array, 0-9%4.") from error


def _check_texts(ask: GenerateScript) -> None:
    """What must be one line, and the command, which may be several."""
    single = {"name": ask.name, "partition": ask.partition, "array": ask.array, "justification": ask.justification}
    single |= {"image": ask.image, "backend": ask.backend}
    single |= {f"setup[{index}]": line for index, line in enumerate(ask.setup or [])}
    if ask.checkpoint is not None:
        single |= {f"checkpoint.{field}": getattr(ask.checkpoint, field) for field in ("dir", "resume_from")}
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
    kind = f"{ask.gpu_type}:" if ask.gpu_type else ""
    numbers = {"nodes": request.nodes, "ntasks": request.ntasks, "ntasks-per-node": request.ntasks_per_node}
    gpus = {"gpus": request.gpus or None, "gpus-per-node": request.gpus_per_node}
    sizes = {"mem-per-gpu": request.memory_per_gpu, "mem": request.memory_per_node}
    options: dict[str, str | None] = {"job-name": ask.name, "partition": request.partition}
    options |= {option: str(number) for option, number in numbers.items() if number is not None}
    options |= {option: f"{kind}{number}" for option, number in gpus.items() if number is not None}
    options |= {} if request.cpus_per_task is None else {"cpus-per-task": str(request.cpus_per_task)}
    options |= {option: format_memory(size) for option, size in sizes.items() if size is not None}
    options |= {"time": None if request.time_limit is None else format_duration(request.time_limit)}
    options |= {"signal": _signal(ask, request)}
    options |= {"array": ask.array, "output": f"{log}.out", "error": f"{log}.err"}
    if mail_user is not None:
        options |= {"mail-type": "END,FAIL", "mail-user": mail_user}
    lines = [_directive(option, value) for option, value in options.items() if value is not None]
    if ask.justification is not None:  # behind a number that the policy may ask a reason for
        number = next(index for index, line in enumerate(lines) if line.startswith("#SBATCH --mem"))
        lines[number] += f"  # JUSTIFIED: {ask.justification.strip()}"
    return lines


def _signal(ask: GenerateScript, request: JobRequest) -> str | None:
    """For the job's steps, not for this script: a program that srun starts gets it."""
    seconds = signal_seconds(ask)
    if seconds is None or ask.checkpoint is None:
        return None
    if request.time_limit is not None and seconds >= request.time_limit:
        problem = f"is not less than the time limit, {format_duration(request.time_limit)}"
        raise InputError("checkpoint.signal_before", ask.checkpoint.signal_before, problem, hint="Write less.")
    return f"USR1@{seconds}"


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
        folder, _, pattern = ask.checkpoint.resume_from.rpartition("/")
        where = '"$CHECKPOINT_DIR"' if folder in {"", ask.checkpoint.dir} else shlex.quote(folder)
        newest = f"find {where} -maxdepth 1 -name {shlex.quote(pattern)} -printf '%T@ %p\\n'"
        lines += [
            "# The newest checkpoint that an earlier run left; empty for the first run.",
            f"RESUME_FROM=$({newest} | sort -n | tail -n 1 | cut -d ' ' -f 2-)",
            "export RESUME_FROM",
        ]
    return ["\n".join(lines)]


def _program(ask: GenerateScript, request: JobRequest) -> str:
    """The command as it is, or as a step: of several processes, or because only a step gets the signal."""
    command, launcher, signalled = ask.command.strip(), launcher_asked(ask), signal_seconds(ask) is not None
    processes = request.gpus_per_node or request.ntasks_per_node or 1
    try:
        if launcher is None:
            return step([command], signalled=True) if signalled else command
        return launch(launcher, command, processes, request.nodes or 1, signalled=signalled)
    except ValueError as error:
        hint = "Name one program with its arguments; put what comes before it into setup."
        if signalled:
            hint += " With checkpoint.signal_before, launcher srun starts the program itself, with the same variables."
        raise InputError("command", command, f"{error} ({launcher or 'srun'})", hint=hint) from error


def _more_reasons(ask: GenerateScript, mail_user: str | None) -> list[str]:
    logs = f"Logs go to {LOGS}/, which must be there when the job starts."
    reasons = [logs] if ask.format == "slurm" else []
    if mail_user is not None:
        reasons.append("Mail at the end and on failure: an address is configured.")
    if ask.checkpoint is not None:
        reasons += _duties(ask, ask.checkpoint)
    return reasons


def _duties(ask: GenerateScript, checkpoint: Checkpoint) -> list[str]:
    """What the program must do, since no script can do it for it."""
    each = ", one for each task" if ask.array else ""
    duties = [f"The program must save its checkpoints in the folder CHECKPOINT_DIR, which the script makes{each}."]
    if checkpoint.resume_from is not None:
        duties.append(
            "The program must go on from the file RESUME_FROM where that is not empty; if it takes an option for it, "
            'write it into the command: ${RESUME_FROM:+--resume "$RESUME_FROM"}.'
        )
    if checkpoint.signal_before is not None:
        earlier = " (Slurm may send it up to a minute earlier)" if ask.format == "slurm" else ""
        duties.append(
            f"The program gets USR1 {checkpoint.signal_before} before the time limit{earlier}: it must catch it, save"
            " and end. Submit the script again to go on; nothing does that by itself."
        )
    return duties


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


# --- a refusal in terms of what was asked for --------------------------------------------------------------------

_ARGUMENTS = {
    "mem": "memory", "mem-per-gpu": "memory", "mem-per-cpu": "memory", "time": "time_limit", "array": "array",
    "gpus": "gpus", "gpus-per-node": "gpus", "partition": "partition", "nodes": "nodes", "cpus-per-task": "cpus",
}  # fmt: skip
_OF_MEMORY_PER_GPU = "mem-per-gpu"
_PROPOSED = re.compile(r"^#SBATCH --([a-z-]+)=([^\s#]+)", re.MULTILINE)
_LINE = re.compile(r"line \d+ \((`[^`]*`)\)")


def in_arguments(decision: Decision, ask: GenerateScript) -> Decision:
    """The decision with ways that the caller can go: other arguments, as the script has not been written."""
    gpus = decision.resources.gpus or 1
    rules = tuple(
        replace(rule, remedy=_other_arguments(rule, ask, gpus), evidence=())
        if rule.outcome in {"deny", "justify", "approve", "warn"}
        else rule
        for rule in decision.rules
    )
    return replace(decision, rules=rules)


def _other_arguments(rule: RuleDecision, ask: GenerateScript, gpus: int) -> str | None:
    """The rule's remedy, with the argument in place of the line that came from it."""
    if rule.remedy is None:
        return None
    values = {_ARGUMENTS[option]: _value(option, value, gpus) for option, value in _options_proposed(rule.remedy)}
    if not values:
        lines = (rule.evidence[0].text.strip(),) if rule.evidence else ()
        field = next(
            (f"setup[{index}]" for index, line in enumerate(ask.setup or ()) if line.strip() in lines), "command"
        )
        return f"In `{field}`: {_LINE.sub(lambda line: line[1], rule.remedy)}"
    ways = [f"Call again with {' and '.join(f'{name}={value}' for name, value in values.items())}."]
    if rule.outcome == "justify":
        ways.append(call_again("justification", WHY_NEEDED))
    return "\nOr: ".join(ways)


def _options_proposed(remedy: str) -> list[tuple[str, str]]:
    """The directives of the first way; later ways are other spellings and reasons."""
    first, _, _ = remedy.partition("\nOr ")
    return [(option, value) for option, value in _PROPOSED.findall(first) if option in _ARGUMENTS]


def _value(option: str, value: str, gpus: int) -> str:
    """As the argument takes it: memory is that of the whole job."""
    if _ARGUMENTS[option] in {"gpus", "nodes", "cpus"}:
        return value
    if option == _OF_MEMORY_PER_GPU:
        value = format_memory(parse_memory(value) * gpus)
    return f'"{value}"'
