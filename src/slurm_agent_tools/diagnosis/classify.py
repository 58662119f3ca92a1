"""Why a job ended as it did: Slurm's records and the log's lines, joined. Where they do not decide: unknown."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from slurm_agent_tools.diagnosis import root_cause
from slurm_agent_tools.diagnosis.excerpt import LogText, last_run, split_rank
from slurm_agent_tools.diagnosis.good_end import ended_well, own_message, quiet, ran_without, survived
from slurm_agent_tools.diagnosis.harmless_lines import not_activated, not_entered, of_the_shell, probing
from slurm_agent_tools.diagnosis.job_facts import (
    NONE,
    UNKNOWN,
    among,
    code_words,
    end_of,
    evidence,
    facts,
    failed,
    numbers,
    several,
    silent,
    told,
    told_by_code,
)
from slurm_agent_tools.diagnosis.last_error import CLOSE, at_the_end
from slurm_agent_tools.diagnosis.log_advice import advised, child, gpu_memory
from slurm_agent_tools.diagnosis.log_figures import error_behind, errors, errors_and_last, stderr_first
from slurm_agent_tools.diagnosis.next_request import larger_memory, longer_time
from slurm_agent_tools.diagnosis.phrases import QUOTED, quoted, within
from slurm_agent_tools.diagnosis.root_cause import RootCause, root
from slurm_agent_tools.diagnosis.signature_match import Hit, hits, level
from slurm_agent_tools.diagnosis.signatures import Signature, signatures
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.node import Node
from slurm_agent_tools.models.shapes import EvidenceLine

_READ = "Read the lines shown, and let the program say more (set -x in the script, verbose logging)."

_UNREAD = "Read the job's log where it still is; let the program say more (set -x in the script, verbose logging)."


def advice(part: Job | None, texts: Sequence[LogText]) -> list[str]:
    """What to do so that the next run tells more."""
    if not silent(texts):
        return [_READ if texts or part is None else _UNREAD]
    end = f" with {end_of(part)}" if part is not None and end_of(part) else ""
    return [f"Put `set -x` at the top of the script, or let the program print why it ends{end}."]


_SHOWN = 8

_KILLED = " It was killed (SIGKILL), which is often, but not surely, for memory."

_STOPPED = " A step was cancelled (scancel, or Ctrl-C of srun) while the job went on."

_OWN = "Nothing is wrong with the script as far as Slurm knows."

_QUOTES = "'\"`\u2018\u2019.,;"

_QUIET = 0.3  # a log alone without a line that tells of an error: how the job ended is Slurm's to say

_NEAR, _FAR = 60, 200  # lines after the last match: the program went on, so that may not be what ended it

_ANEW = 10  # lines of progress after Slurm's own words: those are of a run before, which this one's log was added to

_TRUST = {"certain": 0.95, "cause": 0.8, "generic": 0.7, "weak": 0.45, "effect": 0.5, "last": 0.4}


@dataclass(frozen=True, slots=True)
class _Case:
    """One part that failed, or a log alone (`part` None), with what Slurm's records and the logs show of it."""

    part: Job | None
    texts: Sequence[LogText]
    known: frozenset[str]
    found: Sequence[Hit]
    proof: Sequence[EvidenceLine] = ()
    more: str = ""


def diagnose(job: Job | None, tasks: Sequence[Job], logs: Sequence[LogText], nodes: Sequence[Node] = ()) -> Diagnosis:
    """The root cause. `job` None: a log alone, without Slurm's records. Pure; log lines are data.

    `nodes`: the job's nodes as they are now, where that is known.
    """
    jobs = frozenset[str]() if job is None else numbers((job, *tasks))
    texts = [last_run(text, jobs) for text in stderr_first(logs)]
    if job is None:
        return _judged(_Case(None, texts, frozenset(), hits(texts, frozenset())))
    parts = [task for task in tasks if failed(task)] or [part for part in (job,) if failed(part)]
    if not parts:
        return _no_failure(job, tasks, texts)
    parts.sort(key=lambda part: (part.ended is None, part.ended.timestamp() if part.ended else 0.0))
    known = facts(parts[0], nodes)
    more = several(parts) if tasks and len(parts) > 1 else ""
    return _judged(_Case(parts[0], texts, known, hits(texts, known, jobs), evidence(parts[0], nodes), more))


def _judged(case: _Case) -> Diagnosis:
    said = _decided(case.known, case.found)
    if said is not None:
        return _said(case, said)
    if case.part is None and survived(case.texts, case.found):
        return _nothing_shown(case.texts, errors(case.texts))
    best = root(case.found, case.known, case.texts)
    suggested = next((s for s in signatures() if among(_plain(case), s.suggests)), None)
    if suggested is not None and (best is None or best.hit.tier in {"effect", "last"}):
        lines = [*case.proof, *errors(case.texts)]
        return _answer(case, suggested, _byend_of(case, suggested), lines)
    if best is None or (case.part is None and _left_behind(best, case.texts)):
        return _unknown(case)
    if best.hit.wrapper and own_message(case.texts, best.hit):
        return _unknown(case, {split_rank(hit.line.text)[1] for hit in case.found})
    return _from_log(case, best)


def _left_behind(best: RootCause, texts: Sequence[LogText]) -> bool:
    """True for a hint or a mere form far from the end, and for what a shell said before a program made progress."""
    if best.hit.hint and not_activated(best.hit.line.text) and ran_without(texts[best.hit.text], best.hit.position):
        return True
    far = best.late > _FAR and (best.hit.tier == "weak" or (best.went_on and best.hit.form))
    return far or (best.went_on and best.hit.survived)


def _plain(case: _Case) -> frozenset[str]:
    """The facts without an exit code that the accounting may have cut: 127 may have been 255."""
    part = case.part
    if part is None or part.other_code is None:
        return case.known
    return case.known - {f"exit={part.exit_code}", f"step_exit={part.exit_code}"}


def _byend_of(case: _Case, signature: Signature) -> float:
    """More where the kernel's own signal says it than where an exit code does, which a program may choose."""
    if case.part is not None and told_by_code(case.part) is not None:
        return 0.5
    signal = any("signal=" in fact and among([fact], signature.suggests) for fact in case.known)
    return 0.8 if signal else 0.6


def _decided(known: frozenset[str], found: Sequence[Hit]) -> Signature | None:
    """What Slurm says itself: in its records, else in the log; in the order of the signatures."""
    said = {hit.signature.id for hit in found if hit.sure and hit.ahead < _ANEW}
    free = [signature for signature in signatures() if not among(known, signature.contradicts)]
    recorded = (signature for signature in free if among(known, signature.decides))
    return next(recorded, None) or next((signature for signature in free if signature.id in said), None)


def _said(case: _Case, chosen: Signature) -> Diagnosis:
    """What Slurm itself says. A clear cause in the log beside a time limit or a cancellation makes that doubtful."""
    same = [hit for hit in case.found if hit.signature.id == chosen.id]
    same.sort(key=lambda hit: not hit.sure)
    confidence = (0.95 if same else 0.9) if case.part is not None else 0.85
    if case.part is not None and not same and told_by_code(case.part) is not None:
        confidence = 0.7
    lines = [*case.proof, *(hit.line for hit in same)]
    other = _other(chosen, case.found)
    if other is not None:
        case = replace(case, more=f"{case.more} The log also shows {_named(other.hit)}.")
        lines.append(other.hit.line)
        if other.hit.tier in {"cause", "generic"} and not other.went_on and other.late <= _NEAR:
            confidence = 0.5
    return _answer(case, chosen, confidence, lines, same[0] if same else None)


def _named(hit: Hit) -> str:
    return f"{hit.signature.id}: {quoted(hit.line.text)}"


def _other(chosen: Signature, found: Sequence[Hit]) -> RootCause | None:
    """What the log shows beside a time limit or a cancellation: it may be why there was nothing more to wait for."""
    outside = {"time-limit", "cancelled"}
    if chosen.id not in outside:
        return None
    return root([hit for hit in found if hit.signature.id not in outside], frozenset())


def _from_log(case: _Case, best: RootCause) -> Diagnosis:
    """What one line of the log decides, and what stands beside it."""
    hit, body = best.hit, split_rank(best.hit.line.text)[1]
    if ((of_the_shell(body) and hit.survived) or hit.hint) and _other_error(case, hit):
        if probing(body) or (hit.hint and not not_entered(body)):
            return _unknown(case)
        best = replace(best, late=max(best.late, _NEAR + 1))
    known = {split_rank(one.line.text)[1] for one in case.found}
    error = errors_and_last(case.texts, known)[1] if hit.tier == "effect" else None
    confidence = _confidence(case, best)
    beside = [f"The log also shows {_named(one)}." for one in {one.signature.id: one for one in best.rivals}.values()]
    before = root_cause.set_up_before(hit, case.found)
    if before is not None:
        confidence = min(confidence, 0.5)
        beside.append(f"Before that the log shows {_named(before)}.")
    beside += [f'The last other error in the log: "{quoted(error)}".'] if error is not None else []
    begun = root_cause.first_rank(case.texts)
    first = f" {begun.text}" if begun is not None else ""
    case = replace(case, more=first + case.more + "".join(f" {text}" for text in beside))
    return _answer(case, hit.signature, confidence, [*_lines(hit, case.found, begun), *case.proof], hit)


def _confidence(case: _Case, best: RootCause) -> float:
    """How much a line of the log tells, by its kind and by what stands around it and behind it."""
    hit = best.hit
    confidence = _TRUST[hit.tier] - (0.1 if case.part is None else 0)
    if hit.tier in {"cause", "generic"} and among(case.known, hit.signature.supports):
        confidence = min(0.95, confidence + 0.15)
    if best.rivals or best.late > _NEAR or (case.part is None and hit.doubtful):
        confidence = min(confidence, 0.5)
    if case.part is None and (best.late > CLOSE or ended_well(case.texts[hit.text], hit.position)):
        confidence = min(confidence, 0.5)
    return min(confidence, 0.35) if best.went_on or best.late > _FAR else confidence


def _other_error(case: _Case, hit: Hit) -> bool:
    """The script went on behind it, and something that is not known here failed later."""
    alike = {one.position for one in case.found if one.text == hit.text and one.signature.id in _kin(hit)}
    return error_behind(case.texts[hit.text], alike | {hit.position})


def _kin(hit: Hit) -> set[str]:
    return {hit.signature.id, *hit.signature.explains}


def _lines(hit: Hit, found: Sequence[Hit], begun: root_cause.FirstRank | None) -> list[EvidenceLine]:
    """The deciding line first, the frame of the user's file behind it, srun's of its task, then what else matched."""
    origin = hit.raised.origin if hit.raised is not None else None
    frame = [origin.shown] if origin is not None else []
    same = [other for other in found if other is not hit]
    same.sort(key=lambda other: other.signature.id != hit.signature.id)
    task = [begun.line] if begun is not None else []
    return [hit.line, *frame, *task, *(other.line for other in same)]


def _answer(
    case: _Case, signature: Signature, confidence: float, lines: Sequence[EvidenceLine], hit: Hit | None = None
) -> Diagnosis:
    change = None
    if case.part is not None and signature.change is not None:
        propose = larger_memory if signature.change == "memory" else longer_time
        change = propose(case.part, case.texts)
    ground = "" if change is None else f" {change.why}"
    return Diagnosis(
        category=signature.id,
        confidence=round(confidence, 2),
        escalation=signature.escalation,
        explanation=_explanation(case, signature, hit) + case.more + ground,
        evidence=_unique(lines),
        suggestions=_suggestions(case, signature, hit),
        proposed_change=None if change is None else change.directive,
    )


def _suggestions(case: _Case, signature: Signature, hit: Hit | None) -> list[str]:
    """What the log lets one advise before what holds for every case of the kind."""
    part = case.part
    if signature.id == "cancelled" and part is not None and part.user is not None and part.cancelled_by == part.user:
        return [_OWN]  # its own user cancelled it: there is nobody to ask
    place = None if hit is None else (hit.text, hit.position)
    nodes = part.nodes if part is not None else None
    own = [] if place is None else advised(case.texts, place, signature.id, nodes)
    return [*(quoted(text) for text in own), *signature.suggestions]


def _explanation(case: _Case, signature: Signature, hit: Hit | None) -> str:
    text, part = signature.explanation, case.part
    if hit is not None and hit.level >= level("weak"):
        text = f"Perhaps, as far as one line tells: {within(text)}"
    if hit is not None and hit.raised is not None:
        origin = hit.raised.origin
        where = f" at {origin.file} line {origin.line}" if origin is not None else ""
        text += f" {quoted(f'{hit.raised.kind}: {hit.raised.message}')}{where}."
    what = hit.what if hit is not None else None
    if hit is not None and hit.raised is None and not hit.sure and not (what and "({what})" in text):
        text += f' The log says: "{quoted(split_rank(hit.line.text)[1])}".'
    text = text.replace(" ({what})", f" ({quoted(what.strip(_QUOTES))})" if what else "")
    if hit is not None and signature.id == "gpu-out-of-memory":
        text += gpu_memory(case.texts[hit.text], hit.position)
    by = f" by user {part.cancelled_by}" if part is not None and part.cancelled_by else ""
    text = text.replace("{by}", by)
    if part is not None and part.state == "COMPLETED":
        text += " A step failed; Slurm calls the job COMPLETED because its script ended with exit code 0."
    return text + (
        code_words(part, case.known) if part is not None and (hit is None or hit.level >= level("weak")) else ""
    )


def _unknown(case: _Case, besides: Collection[str] = ()) -> Diagnosis:
    """`besides`: lines that are not quoted as the last error."""
    bad, error = errors_and_last(case.texts, besides)
    if case.part is None and quiet(case.texts):
        return _nothing_shown(case.texts)
    part, lines = case.part, [*case.proof, *bad]
    last = [line for text in case.texts for line in text.lines[-3:]]
    text = told(part, case.texts, error)
    if part is not None:
        text += code_words(part, case.known)
        text += _KILLED if part.state != "COMPLETED" and _killed(part, case.known) else ""
        text += _STOPPED if among(case.known, ("cancelled=step",)) else ""
    step = child(case.texts)
    text += "" if step is None else f" {quoted(step)}"
    begun = root_cause.first_rank(case.texts)
    if begun is not None:
        text += f" {begun.text}"
        lines = [begun.line, *lines]
    return Diagnosis(
        category=UNKNOWN,
        confidence=0.1,
        escalation="medium" if part is not None else "none",
        explanation=text + case.more,
        evidence=_unique([*lines[: _SHOWN - len(last[:3])], *last]),
        suggestions=advice(part, case.texts),
    )


def _nothing_shown(texts: Sequence[LogText], passed: Sequence[EvidenceLine] = ()) -> Diagnosis:
    """A log alone, none of whose lines is an error but those `passed`, behind which the program went on to its end."""
    got_over = f' The program went on behind "{quoted(passed[0].text)}".' if passed else ""
    return Diagnosis(
        category=NONE,
        confidence=_QUIET,
        escalation="none",
        explanation="Nothing in the log shows a failure. Slurm's records were not asked, and a job that was"
        f" ended from outside may leave no line.{got_over}",
        evidence=_unique([*passed[:3], *(line for text in texts for line in text.lines[-3:])]),
        suggestions=["Give the job's number to learn from Slurm how it ended."],
    )


def _killed(part: Job, known: frozenset[str]) -> bool:
    return told_by_code(part) is None and among(known, ("signal=9", "step_signal=9"))


def _no_failure(job: Job, tasks: Sequence[Job], texts: Sequence[LogText]) -> Diagnosis:
    waiting = _waits(job, tasks)
    if waiting is not None:
        return waiting
    live = [part for part in (job, *tasks) if part.active]
    if job.state == "UNKNOWN" and not live:
        return _judged(_Case(job, texts, facts(job), hits(texts, frozenset())))
    bad, ending = errors(texts), ""
    if live:
        reason = f" ({job.reason})" if job.state == "PENDING" and job.reason else ""
        text = f"The job is {job.state}{reason}; nothing has failed so far."
    else:
        text = "The job completed with exit code 0, and no step of it failed."
        text += " Its log holds lines that tell of errors; look at them." if bad else ""
        ending = _failed_at_the_end(texts)
        text += ending
    return Diagnosis(
        category=NONE,
        confidence=0.9 if not bad else 0.5 if ending else 0.6,
        escalation="none",
        explanation=text,
        evidence=_unique([*evidence(job), *bad]),
    )


def _failed_at_the_end(texts: Sequence[LogText]) -> str:
    """Both sides, where a program ended in an error and Slurm recorded a success: it knows the script's code alone."""
    hit, last = at_the_end(texts)
    if hit is None and last is None:
        return ""
    named = f" ({_named(hit)})" if hit is not None else f': "{last}"'
    return f" One of them is at the end{named}. A script may end with code 0 behind a program that failed."


def _waits(job: Job, tasks: Sequence[Job]) -> Diagnosis | None:
    """A job that waits for something that will not come by itself."""
    for part in (job, *tasks):
        signature = next((s for s in signatures() if part.active and among(facts(part), s.decides)), None)
        if signature is not None:
            case = _Case(part, (), facts(part), (), more=f" Slurm's reason for waiting: {part.reason}.")
            return _answer(case, signature, 0.9, evidence(part))
    return None


def _unique(lines: Sequence[EvidenceLine]) -> list[EvidenceLine]:
    """The first few, each place and each text once, bounded."""
    seen: dict[tuple[str, str], EvidenceLine] = {}
    for line in lines:
        short = line if len(line.text) <= QUOTED * 2 else line.model_copy(update={"text": line.text[: QUOTED * 2]})
        seen.setdefault((short.file, short.text), short)
    return list(seen.values())[:_SHOWN]
