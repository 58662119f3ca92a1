"""scancel: it ends jobs."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.devcluster.fake.answering import DENIED, Answer, NamedJobs, Session, UnknownCommand, named_jobs


def run_scancel(session: Session, words: Sequence[str]) -> Answer:
    """scancel IDS or --user=NAME; nothing is said of ids that no job has."""
    slurm, jobs, errors = session.slurm, list[NamedJobs](), ""
    for word in words[1:]:
        if word.startswith("--user="):
            own = [job for job in slurm.known() if job.user == word.removeprefix("--user=")]
            jobs.append(NamedJobs(word, tuple(own)))
        elif word.startswith("-"):
            raise UnknownCommand(words, word)
        else:
            jobs.append(named_jobs(slurm, word))
    for wanted in jobs:
        for job in wanted.jobs:
            if not session.may_change(job):
                errors += f"scancel: error: Kill job error on job id {wanted.text}: {DENIED}\n"
            else:
                slurm.cancel(job, session.uid)
        rest = wanted.rest
        if rest is None or not session.may_change(rest):
            continue
        if set(wanted.tasks) == set(rest.waiting):  # all that wait are cancelled as one (22.05, measured)
            slurm.cancel(rest, session.uid)
            continue
        for task in wanted.tasks:
            slurm.cancel_task(rest, task, session.uid)
    return Answer(err=errors, code=1 if errors else 0)
