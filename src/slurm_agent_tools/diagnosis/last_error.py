"""The error with which a log ends, also behind a success that Slurm recorded. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.diagnosis.excerpt import LogText, last_run, split_rank
from slurm_agent_tools.diagnosis.good_end import last_word
from slurm_agent_tools.diagnosis.job_facts import numbers
from slurm_agent_tools.diagnosis.log_figures import errors_and_last, stderr_first
from slurm_agent_tools.diagnosis.phrases import quoted
from slurm_agent_tools.diagnosis.root_cause import root
from slurm_agent_tools.diagnosis.signature_match import Hit, hits
from slurm_agent_tools.models.job import JobView

CLOSE = 25  # lines that the messages of an end take; a log alone does not say that more than that belong to it


def success_in_doubt(view: JobView, logs: Sequence[LogText]) -> str:
    """A sentence for whoever saves it as a success, where its log ends with an error; empty where it does not."""
    error = behind_success(view, logs)
    if error is None:
        return ""
    return (
        f' But its log shows "{error}" near its end: the program may have failed although the script ended with 0.'
        f' Look with analyze_log, job_id="{view.job.job_id}".'
    )


def behind_success(view: JobView, logs: Sequence[LogText]) -> str | None:
    """The error that the log of a job that Slurm calls COMPLETED ends with; None where there is none."""
    if view.job.state != "COMPLETED":
        return None
    jobs = numbers((view.job, *view.tasks))
    texts = [last_run(text, jobs) for text in stderr_first(logs)]
    hit, last = at_the_end(texts)
    return quoted(split_rank(hit.line.text)[1]) if hit is not None else last


def at_the_end(texts: Sequence[LogText]) -> tuple[Hit | None, str | None]:
    """The error of a known kind with which a log ends, else the last one's own words; (None, None): it ends without."""
    bad, last = errors_and_last(texts)
    wrong = {line.text for line in bad}
    places = [[at for at, line in enumerate(text.lines) if line.text in wrong] for text in texts]
    if not any(at and last_word(text, at[-1]) for text, at in zip(texts, places, strict=True)):
        return None, None
    best = root(hits(texts, frozenset()), frozenset(), texts)
    return (best.hit, None) if best is not None and best.late <= CLOSE else (None, quoted(last or ""))
