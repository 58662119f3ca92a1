"""Finding remembered jobs: by tag, by text, and by likeness of what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from slurm_agent_tools.models.job import JobRecord
from slurm_agent_tools.models.job_resources import Resources

_EXACT, _BEGINS, _WITHIN, _ELSEWHERE = 8, 4, 2, 1

_WEIGHTS = {"gpus": 3.0, "memory_bytes": 2.0, "cpus": 2.0, "time_limit_seconds": 2.0, "nodes": 1.0, "array_tasks": 1.0}

_PARTITION, _NAME, _SCRIPT = 1.0, 2.0, 3.0

FAILURES = frozenset({"FAILED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "BOOT_FAIL", "DEADLINE", "LAUNCH_FAILED"})
"""A cancelled, preempted or requeued job is no failure of its script."""


def tags(record: JobRecord) -> tuple[str, ...]:
    """`slurm`, `job`, then what is known of: job id, partition, state in lower case, run id, category.

    Every end that is a failure has the tag `failed` beside its state.
    """
    failed = "failed" if record.state in FAILURES else None
    told = (record.job_id, record.partition, record.state.lower(), failed, record.run_id, record.category)
    return tuple(dict.fromkeys(("slurm", "job", *(tag for tag in told if tag))))


def search(
    records: Iterable[JobRecord],
    *,
    tags: Sequence[str] = (),
    match_all: bool = True,
    query: str = "",
    limit: int = 20,
) -> list[JobRecord]:
    """Records with these tags (all of them, or any), and with every word of the query in their text.

    Without a query in the order given, which is newest first; with one the best match first. Case does not matter.
    """
    wanted = {tag.casefold() for tag in tags}
    tagged = [record for record in records if _tagged(record, wanted, match_all=match_all)]
    words = query.casefold().split()
    scored = [(_score(record, words), record) for record in tagged]
    found = sorted((pair for pair in scored if pair[0] is not None), key=lambda pair: -(pair[0] or 0))
    return [record for _, record in found[:limit]]


def _tagged(record: JobRecord, wanted: set[str], *, match_all: bool) -> bool:
    has = {tag.casefold() for tag in tags(record)}
    return not wanted or (wanted <= has if match_all else bool(wanted & has))


def _score(record: JobRecord, words: Sequence[str]) -> int | None:
    """How well the words fit, in the name above all; None where one of them is nowhere."""
    name, rest = record.name.casefold(), " ".join((record.script_path, *tags(record))).casefold()
    scores = [_word(word, name, rest) for word in words]
    return None if 0 in scores else sum(scores)


def _word(word: str, name: str, rest: str) -> int:
    if word == name:
        return _EXACT
    if word in name:
        return _BEGINS if name.startswith(word) else _WITHIN
    return _WITHIN if word in rest.split() else _ELSEWHERE if word in rest else 0


def similar(
    records: Iterable[JobRecord],
    requested: Resources,
    *,
    name: str | None = None,
    script_path: str | None = None,
    limit: int = 20,
) -> list[tuple[float, JobRecord]]:
    """The likest records with their likeness, 0 to 1, the likest first.

    The weighted mean over what either request states: smaller divided by larger for GPUs (weight 3), memory, CPUs,
    time limit (2 each), nodes and array tasks (1 each); 1 or 0 for the same partition (1) and, where they are given,
    the same name (2) and the same script (3). What only one of them states counts 0.
    """
    scored = [(likeness(record, requested, name=name, script_path=script_path), record) for record in records]
    return sorted(scored, key=lambda pair: -pair[0])[:limit]


def likeness(
    record: JobRecord, requested: Resources, *, name: str | None = None, script_path: str | None = None
) -> float:
    """How like one record is to a request; see `similar`."""
    parts = [
        (weight, _ratio(getattr(record.requested, field), getattr(requested, field)))
        for field, weight in _WEIGHTS.items()
        if getattr(record.requested, field) or getattr(requested, field)
    ]
    partition = record.requested.partition or record.partition
    if partition or requested.partition:
        parts.append((_PARTITION, float(partition == requested.partition)))
    if name is not None:
        parts.append((_NAME, float(record.name == name)))
    if script_path is not None:
        parts.append((_SCRIPT, float(record.script_path == script_path)))
    return round(sum(weight * part for weight, part in parts) / (sum(weight for weight, _ in parts) or 1), 4)


def _ratio(one: int | None, other: int | None) -> float:
    """Smaller by larger; 0 where one is not stated or has no limit (-1) and the other has."""
    if one == other:
        return 1.0
    if not one or not other or min(one, other) < 0:
        return 0.0
    return min(one, other) / max(one, other)


def merged(kept: Iterable[JobRecord], told: Iterable[JobRecord]) -> list[JobRecord]:
    """The ledger's records completed by those of the accounting, and the jobs that only the accounting has.

    Newest first. What the ledger knows counts; of a job's end, what the accounting tells.
    """
    theirs = {record.job_id: record for record in told}
    ours = [_joined(record, theirs.pop(record.job_id, None)) for record in kept]
    return sorted((*ours, *theirs.values()), key=lambda record: (record.submitted, record.job_id), reverse=True)


def _joined(ours: JobRecord, theirs: JobRecord | None) -> JobRecord:
    if theirs is None:
        return ours
    return replace(
        ours,
        state=theirs.state,
        partition=theirs.partition or ours.partition,
        started=theirs.started or ours.started,
        ended=theirs.ended or ours.ended,
        exit_code=_code(ours.exit_code, theirs.exit_code),
        signal=theirs.signal or ours.signal,
        category=ours.category or theirs.category,
        usage=theirs.usage or ours.usage,
        tasks=theirs.tasks,
    )


def _code(ours: int | None, theirs: int | None) -> int | None:
    """The accounting's word, but for the code of which it keeps the low 7 bits."""
    if theirs is None or (ours is not None and ours & 127 == theirs):
        return ours
    return theirs
