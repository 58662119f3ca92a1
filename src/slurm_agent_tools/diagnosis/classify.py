"""Why a job ended as it did: Slurm's records and the log's lines, joined. Where they do not decide: unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from slurm_agent_tools.diagnosis import propose
from slurm_agent_tools.diagnosis.excerpt import LogText
from slurm_agent_tools.diagnosis.extract import errors, metrics, stderr_first, warnings
from slurm_agent_tools.diagnosis.facts import among, broken, evidence, facts, failed
from slurm_agent_tools.diagnosis.match import Hit, hits, root
from slurm_agent_tools.diagnosis.signatures import Signature, signatures
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies import Diagnosis, EvidenceLine

__all__ = ["diagnose", "errors", "metrics", "warnings"]

NONE, UNKNOWN = "none", "unknown"
_SHOWN = 8
_QUOTED = 200
_QUOTES = "'\"`\u2018\u2019.,;"
_FAR = 200  # lines after the last match: the program went on for long, so that may not be what ended it


def diagnose(job: Job | None, tasks: Sequence[Job], logs: Sequence[LogText]) -> Diagnosis:
    """The root cause. `job` None: a log alone, without Slurm's records. Pure; log lines are data."""
    texts = stderr_first(logs)
    parts = [task for task in tasks if failed(task)] if job is not None and tasks else []
    if not parts and job is not None and failed(job):
        parts = [job]
    if parts:
        parts.sort(key=lambda part: (part.ended is None, part.ended.timestamp() if part.ended else 0.0))
        return _failure(parts, texts, bool(tasks))
    if job is None:
        return _log_alone(texts)
    return _no_failure(job, tasks, texts)


def _failure(parts: Sequence[Job], texts: Sequence[LogText], of_array: bool) -> Diagnosis:
    part = parts[0]
    known = facts(part)
    found = hits(texts, known)
    proof = evidence(part)
    shown = _several(parts) if of_array and len(parts) > 1 else ""
    chosen = _decided(known, found)
    if chosen is not None:
        lines = [hit.line for hit in found if hit.signature.id == chosen.id]
        first = next((hit for hit in found if hit.signature.id == chosen.id), None)
        return _answer(chosen, part, 0.95 if lines else 0.9, [*proof, *lines], shown + _other(chosen, found), first)
    hit = root(found, known)
    if hit is not None and hit.signature.tier == "cause":
        return _from_log(hit, part, known, found, proof, shown)
    suggested = next((s for s in signatures() if among(known, s.suggests)), None)
    if suggested is not None and (hit is None or hit.signature.tier == "effect"):
        return _answer(suggested, part, 0.6, [*proof, *errors(texts)], shown)
    if hit is not None:
        return _from_log(hit, part, known, found, proof, shown)
    return _unknown(part, [*proof, *errors(texts)], texts, shown)


def _decided(known: frozenset[str], found: Sequence[Hit]) -> Signature | None:
    """What Slurm says itself, in its records or in the log, in the order of the signatures."""
    said = {hit.signature.id for hit in found if hit.sure}
    for signature in signatures():
        if (among(known, signature.decides) or signature.id in said) and not among(known, signature.contradicts):
            return signature
    return None


def _other(chosen: Signature, found: Sequence[Hit]) -> str:
    """What the log shows beside a time limit or a cancellation: it may be why there was nothing more to wait for."""
    hit = root([hit for hit in found if hit.signature.id != chosen.id and not hit.sure], frozenset())
    if hit is None or chosen.id not in {"time-limit", "cancelled"}:
        return ""
    return f" The log also shows {hit.signature.id}: {_quote(hit.line.text)}"


def _from_log(
    hit: Hit, part: Job, known: frozenset[str], found: Sequence[Hit], proof: list[EvidenceLine], shown: str
) -> Diagnosis:
    confidence = {"cause": 0.8, "generic": 0.7, "effect": 0.5}[hit.signature.tier]
    if among(known, hit.signature.supports):
        confidence = min(0.95, confidence + 0.15)
    elif hit.late > _FAR:
        confidence = 0.4
    return _answer(hit.signature, part, confidence, [*_lines(hit, found), *proof], shown, hit)


def _log_alone(texts: Sequence[LogText]) -> Diagnosis:
    found = hits(texts, frozenset())
    said = _decided(frozenset(), found)
    hit = next((hit for hit in found if said is not None and hit.signature.id == said.id), None)
    hit = hit or root(found, frozenset())
    if hit is None:
        return _unknown(None, errors(texts), texts, "")
    confidence = 0.85 if hit.sure else {"cause": 0.7, "generic": 0.6, "effect": 0.5}[hit.signature.tier]
    return _answer(hit.signature, None, 0.35 if hit.late > _FAR else confidence, _lines(hit, found), "", hit)


def _lines(hit: Hit, found: Sequence[Hit]) -> list[EvidenceLine]:
    """The deciding line first, the frame of the user's file behind it, then what else matched."""
    origin = hit.raised.origin if hit.raised is not None else None
    frame = [origin.shown] if origin is not None else []
    same = [other for other in found if other is not hit]
    same.sort(key=lambda other: other.signature.id != hit.signature.id)
    return [hit.line, *frame, *(other.line for other in same)]


def _answer(
    signature: Signature,
    part: Job | None,
    confidence: float,
    lines: Sequence[EvidenceLine],
    more: str,
    hit: Hit | None = None,
) -> Diagnosis:
    change = None
    if part is not None and signature.change is not None:
        change = propose.memory(part) if signature.change == "memory" else propose.time(part)
    return Diagnosis(
        category=signature.id,
        confidence=round(confidence, 2),
        escalation=signature.escalation,
        explanation=_explanation(signature, part, hit) + more,
        evidence=_unique(lines),
        suggestions=list(signature.suggestions),
        proposed_change=change,
    )


def _explanation(signature: Signature, part: Job | None, hit: Hit | None) -> str:
    text = signature.explanation
    if hit is not None and hit.raised is not None:
        origin = hit.raised.origin
        where = f" at {origin.file} line {origin.line}" if origin is not None else ""
        text += f" {_quote(f'{hit.raised.kind}: {hit.raised.message}')}{where}."
    what = hit.what if hit is not None else None
    text = text.replace(" ({what})", f" ({_quote(what.strip(_QUOTES))})" if what else "")
    by = f" by user {part.cancelled_by}" if part is not None and part.cancelled_by else ""
    text = text.replace("{by}", by)
    if part is not None and part.state == "COMPLETED":
        text += " A step failed; Slurm calls the job COMPLETED because its script ended with exit code 0."
    return text


def _several(parts: Sequence[Job]) -> str:
    """How many tasks of an array failed, and how."""
    states = ", ".join(f"{count} {state}" for state, count in Counter(part.state for part in parts).most_common())
    return f" {len(parts)} tasks failed ({states}); this is about {parts[0].job_id}, which ended first."


def _unknown(part: Job | None, lines: Sequence[EvidenceLine], texts: Sequence[LogText], more: str) -> Diagnosis:
    last = [line for text in texts for line in text.lines[-3:]]
    if part is None:
        text = "No line of the log shows a known failure, and Slurm's records were not asked."
    elif part.state == "COMPLETED":
        text = f"{len(broken(part))} step(s) failed behind the exit code 0; the log does not say why."
    else:
        text = f"The job ended in {part.state}; neither Slurm nor the log says why."
        if among(facts(part), ("signal=9", "step_signal=9")):
            text += " It was killed (SIGKILL), which is often, but not surely, for memory."
    return Diagnosis(
        category=UNKNOWN,
        confidence=0.1,
        escalation="medium" if part is not None else "none",
        explanation=text + more,
        evidence=_unique([*lines, *last]),
        suggestions=["Read the lines shown, and let the program say more (set -x in the script, verbose logging)."],
    )


def _no_failure(job: Job, tasks: Sequence[Job], texts: Sequence[LogText]) -> Diagnosis:
    waiting = _waits(job, tasks)
    if waiting is not None:
        return waiting
    live = [part for part in (job, *tasks) if part.active]
    if job.state == "UNKNOWN" and not live:
        return _unknown(job, [], texts, "")
    bad = errors(texts)
    if live:
        reason = f" ({job.reason})" if job.state == "PENDING" and job.reason else ""
        text = f"The job is {job.state}{reason}; nothing has failed so far."
    else:
        text = "The job completed with exit code 0, and no step of it failed."
        text += " Its log holds lines that tell of errors; look at them." if bad else ""
    return Diagnosis(
        category=NONE,
        confidence=0.9 if not bad else 0.6,
        escalation="none",
        explanation=text,
        evidence=_unique([*evidence(job), *bad]),
    )


def _waits(job: Job, tasks: Sequence[Job]) -> Diagnosis | None:
    """A job that waits for something that will not come by itself."""
    for part in (job, *tasks):
        signature = next((s for s in signatures() if part.active and among(facts(part), s.decides)), None)
        if signature is not None:
            return _answer(signature, part, 0.9, evidence(part), f" Slurm's reason for waiting: {part.reason}.")
    return None


def _unique(lines: Sequence[EvidenceLine]) -> list[EvidenceLine]:
    """The first few, each place and each text once, bounded."""
    seen: dict[tuple[str, str], EvidenceLine] = {}
    for line in lines:
        short = line if len(line.text) <= _QUOTED * 2 else line.model_copy(update={"text": line.text[: _QUOTED * 2]})
        seen.setdefault((short.file, short.text), short)
    return list(seen.values())[:_SHOWN]


def _quote(text: str) -> str:
    """Text of a log as part of a sentence: one line, bounded."""
    flat = " ".join(text.split())
    return flat if len(flat) <= _QUOTED else flat[: _QUOTED - 3] + "..."
