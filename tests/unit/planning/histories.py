"""Histories of jobs for the tests of prediction, made by chance from a seed: users with habits, bursts and moods."""

import random

from slurm_agent_tools.planning.workload import TracedJob


def ended(number, run, *, user="ann", processors=1, limit=7200.0, submit=None, name=""):
    """A job that started at once, each a day after the one before where no submission is said."""
    at = number * 86_400.0 if submit is None else float(submit)
    return TracedJob(number, at, float(run), processors, limit, user, wait=0.0, name=name)


def habits(seed, count=4000, users=12, *, burst=4):
    """Each user has some kinds of work, each with a size, a limit and a usual time; kinds come in bursts, and change."""
    chance = random.Random(seed)  # noqa: S311 - nothing secret
    kinds = [[_kind(chance) for _ in range(chance.randint(1, 4))] for _ in range(users)]
    found, at = [], 0.0
    while len(found) < count:
        who = chance.randrange(users)
        place = chance.randrange(len(kinds[who]))
        if chance.random() < 0.02:
            kinds[who][place] = _kind(chance)
        size, limit, usual, spread = kinds[who][place]
        for _ in range(chance.randint(1, burst)):
            run = min(limit, max(1.0, usual * chance.lognormvariate(0, spread)))
            found.append(
                TracedJob(len(found) + 1, at, run, size, limit, f"user{who}", wait=chance.expovariate(1 / 600))
            )
            at += chance.expovariate(1 / 30)
        at += chance.expovariate(1 / 900)
    return tuple(found[:count])


def _kind(chance):
    usual = chance.lognormvariate(6.5, 1.5)
    return (
        2 ** chance.randrange(0, 5),
        max(60.0, round(usual * chance.choice((2, 4, 10)))),
        usual,
        chance.choice((0.2, 0.8)),
    )
