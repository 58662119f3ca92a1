"""The first line of an answer on a diagnosis. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.diagnosis.excerpt import LogText, split_rank
from slurm_agent_tools.diagnosis.job_facts import NONE
from slurm_agent_tools.diagnosis.last_error import behind_success
from slurm_agent_tools.diagnosis.phrases import quoted
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import JobView

_NAMED = frozenset({"missing-module", "python-exception"})  # whose line says which one, in few words

_HINT, _SURE = 0.5, 0.9


def first_line(diagnosis: Diagnosis, view: JobView | None, logs: Sequence[LogText]) -> str:
    """The category, how sure, where it was seen, and which module or exception: the explanation says the rest."""
    if diagnosis.category != NONE:
        seen = next((line for line in diagnosis.evidence[:1] if line.line), None)
        where = "" if seen is None else f", see {seen.file} line {seen.line}"
        what = f': "{quoted(split_rank(seen.text)[1])}"' if seen is not None and diagnosis.category in _NAMED else ""
        return f"{diagnosis.category}{what} (confidence {diagnosis.confidence:.2f}){where}"
    if diagnosis.confidence >= _SURE:
        return "nothing failed"
    if diagnosis.confidence > _HINT:
        return "nothing failed as far as Slurm knows, but its log holds lines that tell of errors"
    error = None if view is None else behind_success(view, logs)
    if error is None:
        return f"nothing in the log shows a failure (confidence {diagnosis.confidence})"
    return (
        f'Slurm says that it completed, but its log shows "{error}" near its end. The program may have failed although'
        " the script ended with 0"
    )
