"""What Slurm's records say of one job, as facts that signatures name, and as evidence that people read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from slurm_agent_tools.diagnosis.excerpt import LogText
from slurm_agent_tools.diagnosis.phrases import quoted
from slurm_agent_tools.insights.usage import usage
from slurm_agent_tools.models.job import Job, Step, end_reason
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.models.shapes import EvidenceLine
from slurm_agent_tools.units import format_duration, human_memory

NONE, UNKNOWN = "none", "unknown"
"""Categories of a diagnosis that no signature has."""

SOURCE = "Slurm"  # stands for a file in evidence

_KILL, _END, _MOST_SIGNALS = 9, 15, 64

_SIGNALS = {
    2: "SIGINT", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV, a segmentation fault",
    15: "SIGTERM",
}  # fmt: skip

_SAMPLED = 120  # seconds, several times Slurm's usual interval

_FULL = 0.95  # of the requested memory: sampled, so a peak is seen a little late

_LAUNCH = "JobLaunchFailure"  # 22.05 gives it to every job that a signal ended too, as measured


def facts(part: Job, nodes: Sequence[Node] = ()) -> frozenset[str]:
    """`state=`, `step=` (a step's state), `exit=`, `signal=`, `step_exit=`, `step_signal=`, `waits=`, `reason=`, ...

    An exit code above 128 is also the signal that a shell reports that way (bash(1), EXIT STATUS). Where the
    accounting alone tells 11, it may have been 139: both are `exit=`, neither is a `signal=`. The reason of an ended
    job counts as `reason=` only where it never started, since accounting keeps the last reason for waiting; as
    `ended=` where it is one for an end. `memory=full`, `memory=low`, `memory=full-and-killed`, `time=over-and-killed`
    compare what was used with the request; `cancelled=step` is a step that was cancelled by itself; `node=down` is the
    state of one of its nodes now, `node=down-and-killed` the same where the job was killed.
    """
    found = {f"state={part.state}"} | _ends("", part.exit_code, part.signal)
    if part.other_code is not None:
        found.add(f"exit={part.other_code}")
    found |= _ends("step_", part.derived_exit_code, part.derived_signal)
    for step in part.steps:
        ended = set() if step.state == "CANCELLED" else _ends("step_", step.exit_code, step.signal)
        found |= {f"step={step.state}"} | ended  # what ended a step that was cancelled is known
    if part.reason and part.active:
        found.add(f"waits={part.reason}")
    elif part.reason and end_reason(part.reason):
        found |= set() if part.reason == _LAUNCH and part.signal else {f"ended={part.reason}"}
    elif part.reason and part.started is None:
        found.add(f"reason={part.reason}")
    fallen = _fallen(found) if any(node.troubled for node in nodes) else set()
    return frozenset(found | _compared(part, found) | fallen | _stopped(part, found))


def _stopped(part: Job, found: set[str]) -> set[str]:
    """A step was cancelled while the job went on, and nothing else was killed."""
    whole = part.state == "CANCELLED" or found & {f"signal={_KILL}", f"step_signal={_KILL}"}
    return {"cancelled=step"} if "step=CANCELLED" in found and not whole else set()


def numbers(parts: Iterable[Job]) -> frozenset[str]:
    """The numbers by which Slurm's lines name these; none where one's own number is not known."""
    known = tuple(parts)
    within = [part for part in known if part.job_id.task is not None or part.job_id.component is not None]
    if any(part.raw_id is None for part in within):
        return frozenset()
    return frozenset(str(number) for part in known for number in (part.job_id.base, part.raw_id) if number is not None)


def _fallen(found: set[str]) -> set[str]:
    """One of its nodes is down now, which may have happened after its end."""
    killed = found & {f"signal={_KILL}", f"step_signal={_KILL}"}
    return {"node=down", "node=down-and-killed"} if killed else {"node=down"}


def _compared(part: Job, found: set[str]) -> set[str]:
    """What was used beside what was asked for."""
    compared = {"memory=full"} if filled(part) else {"memory=low"} if roomy(part) else set()
    if "memory=full" in compared and found & {f"signal={_KILL}", f"step_signal={_KILL}"}:
        compared.add("memory=full-and-killed")
    killed = found & {f"{who}signal={number}" for who in ("", "step_") for number in (_KILL, _END)}
    if killed and part.state == "FAILED" and overdue(part):
        compared.add("time=over-and-killed")
    return compared


def roomy(part: Job) -> bool:
    """True when it ran long enough to be sampled and no task used half of what it had."""
    has, used = part.resources.memory_per_node_bytes or part.resources.memory_bytes, peak([part])
    return bool(has and used and used < has / 2 and (part.elapsed_seconds or 0) >= _SAMPLED)


def overdue(part: Job) -> bool:
    """True when it ran for all the time that it had."""
    limit = part.resources.time_limit_seconds
    return bool(limit and limit > 0 and part.elapsed_seconds is not None and part.elapsed_seconds >= limit)


def _ends(prefix: str, code: int | None, signal: int | None) -> set[str]:
    found = {f"{prefix}exit={code}"} if code else set()
    if code is not None and code > 128:
        found.add(f"{prefix}signal={code - 128}")
    if signal:
        found.add(f"{prefix}signal={signal}")
    return found


def told_by_code(part: Job) -> int | None:
    """The signal that an exit code above 128 may stand for, where Slurm saw none itself; a program may choose 137."""
    code = part.exit_code or 0
    seen = part.signal or part.derived_signal or any(step.signal for step in part.steps)
    return code - 128 if 128 < code <= 128 + _MOST_SIGNALS and not seen else None


def code_words(part: Job, known: Iterable[str]) -> str:
    """What an exit code above 128 may mean, and what speaks for it; empty where Slurm tells of a signal itself."""
    number = told_by_code(part)
    if number is None:
        return ""
    name = _SIGNALS.get(number)
    called = f"signal {number}" + (f" ({name})" if name else "")
    text = f" Exit code {part.exit_code} may be a shell's word for a program that {called} ended, or the program's own."
    if number != _KILL:
        return text
    if among(known, ("memory=full",)):
        return f"{text} The memory was full, which speaks for a kill for memory."
    if among(known, ("memory=low",)):
        return f"{text} The memory was not half used, which speaks against a kill for memory."
    return f"{text} A kill is often for memory, but nothing measured speaks for that here."


def among(known: Iterable[str], wanted: Sequence[str]) -> bool:
    """True when one of the facts is one of those wanted (* for any text)."""
    return any(fnmatchcase(fact, pattern) for fact in known for pattern in wanted)


def peak(parts: Iterable[Job]) -> int | None:
    """Largest MaxRSS over all steps, bytes; None where nothing was sampled (Slurm then says 0)."""
    sizes = [step.max_rss_bytes for part in parts for step in part.steps if step.max_rss_bytes]
    return max(sizes, default=None)


def filled(part: Job) -> bool:
    """True when the peak of one task came near to what the job had on a node."""
    has, used = part.resources.memory_per_node_bytes or part.resources.memory_bytes, peak([part])
    return bool(has and used and used >= has * _FULL)


def failed(part: Job) -> bool:
    """True for an end that is not a clean one, a failed step behind an exit code 0 included."""
    if part.state == "COMPLETING":  # its script is over, its processes are being cleaned up
        return bool(part.exit_code)
    return not part.active and part.state != "UNKNOWN" and (part.state != "COMPLETED" or bool(broken(part)))


def broken(part: Job) -> list[Step | None]:
    """Steps that failed; [None] where only the derived exit code tells it."""
    steps: list[Step | None] = [
        step for step in part.steps if step.exit_code or step.signal or step.state not in {"COMPLETED", "RUNNING", ""}
    ]
    return steps or ([None] if part.derived_exit_code or part.derived_signal else [])


def evidence(part: Job, nodes: Sequence[Node] = ()) -> list[EvidenceLine]:
    """State and codes of the job, of the steps that failed and of nodes that are down, one line each."""
    texts = [f"job {part.job_id}: {_words(part.state, part.exit_code, part.signal, part.reason, part.doubted_code)}"]
    texts[0] += _used(part)
    for step in broken(part):
        if step is None:
            texts.append(f"job {part.job_id}: a step ended with {part.derived_exit_code}:{part.derived_signal or 0}")
        else:
            texts.append(f"step {step.step_id} ({step.name}): {_words(step.state, step.exit_code, step.signal, None)}")
    bad = [node for node in nodes if node.troubled]
    texts += [f"node {node.name}: {node.state}" + (f" ({node.reason})" if node.reason else "") for node in bad]
    return [EvidenceLine(file=SOURCE, line=0, text=text) for text in texts]


def _words(state: str, code: int | None, signal: int | None, reason: str | None, other: int | None = None) -> str:
    words = [state]
    if code is not None or signal is not None:
        words.append(f"exit {code or 0}:{signal or 0}" + (f" (or {other}:0)" if other is not None else ""))
    if reason and reason != "None":
        words.append(f"reason {reason}")
    return ", ".join(words)


def _used(part: Job) -> str:
    """Time and memory beside what was given; memory as in the report, the largest task's where that is less."""
    limit, spent, task = part.resources.time_limit_seconds, usage(part), peak([part])
    used, has = spent.memory_peak_bytes, spent.memory_allocated_bytes or part.resources.memory_bytes
    text = ""
    if part.elapsed_seconds is not None:
        text += f", ran {format_duration(part.elapsed_seconds)}"
        text += f", limit {format_duration(limit)}" if limit is not None else ""
    if used is not None:
        text += f", peak memory {human_memory(used)}"
        text += f" of {human_memory(has)}" if has else ""
        text += f", largest task {human_memory(task)}" if task is not None and task < used else ""
    return text


def several(parts: Sequence[Job]) -> str:
    """How many tasks of an array failed, and how."""
    states = ", ".join(f"{count} {state}" for state, count in Counter(part.state for part in parts).most_common())
    return f" {len(parts)} tasks failed ({states}); this is about {parts[0].job_id}, which ended first."


def told(part: Job | None, texts: Sequence[LogText], error: str | None) -> str:
    """What is known, with the exit code. `error`: the last one in the logs.

    No texts: no log was read; a text without lines: nothing was written.
    """
    last = "" if error is None else f' The last error in the log: "{quoted(error)}".'
    if part is None:
        return f"No line of the log shows a known failure, and Slurm's records were not asked.{last}"
    if part.state == "COMPLETED":
        why = last or " The log does not say why."
        return f"{len(broken(part))} step(s) failed behind the exit code 0.{why}"
    if silent(texts) and part.state == "FAILED" and end_of(part):
        return f"The script ended with {end_of(part)} and wrote nothing to its log."
    end = f"The job ended in {part.state}" + (f" with {end_of(part)}" if end_of(part) else "")
    end = "How the job ended is not known" if part.state == "UNKNOWN" else end
    end = end.replace("The job ended in COMPLETING", "The job is ending, its script ended")
    if not texts:
        return f"{end}; Slurm does not say why, and no log was read."
    if error is not None:
        return f"{end}, for a reason of no kind that is known here.{last}"
    unseen = "nothing in the log shows a failure" if part.state == "UNKNOWN" else "neither Slurm nor the log says why"
    return f"{end}; {'the log is empty' if silent(texts) else unseen}."


def silent(texts: Sequence[LogText]) -> bool:
    """True where logs were read and nothing was written to them."""
    return bool(texts) and not any(text.lines for text in texts)


def end_of(part: Job) -> str:
    """The signal or the exit code; empty where Slurm tells of none."""
    if part.signal:
        return f"signal {part.signal}"
    return f"exit code {part.code_text}" if part.exit_code else ""
