"""Workloads for the tests: made by hand, or by chance from a seed. Nothing of them was ever run."""

import random

from slurm_agent_tools.planning.workload import TracedJob, Workload


def job(number, submit, run, processors=1, limit=None, user="ann", **more):
    """A job whose limit is its run time where none is said."""
    return TracedJob(
        number, float(submit), float(run), processors, float(run if limit is None else limit), user, **more
    )


def workload(*jobs, processors=4):
    return Workload("by hand", tuple(sorted(jobs, key=lambda one: (one.submit, one.number))), processors, {})


def made_up(seed, count=400, processors=32, load=0.9, users=8, chains=False):
    """Poisson submissions of sizes that are powers of two, run times between seconds and hours, loose limits."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    found, at = [], 0.0
    for number in range(1, count + 1):
        size = min(processors, 2 ** chance.randrange(0, 5))
        run = round(chance.lognormvariate(6.5, 1.5)) + 1.0
        limit = max(60.0, round(run * chance.choice((1, 1.2, 3, 10))))
        after = number - 1 if chains and number % 5 == 0 else None
        who = f"user{chance.randrange(users)}"
        found.append(TracedJob(number, round(at), run, size, limit, who, after=after))
        at += chance.expovariate(processors * load / (6.2 * 2000))
    return Workload(f"made up from {seed}", tuple(found), processors, {})
