"""Instances of the kinds that schedules are measured on, and a check of schedules that shares nothing with the makers."""

import random
from datetime import UTC, datetime

from slurm_agent_tools.models.plan_answer import PlanGroup, PlanReply, SubmissionShown
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.schedule import plan_problem

POOL = JobPool(gpus=4)
ANSWER = PlanReply(
    status="planned", summary="The plan takes 02:00:00.", as_of=datetime(2026, 1, 2, tzinfo=UTC), objective="makespan",
    makespan_seconds=7200, mean_completion_seconds=3600, bound_seconds=7200, gap=0.0, naive_seconds=9000, method="lists",
    groups=[PlanGroup(jobs="sweep x4", start=0, place="pool")],
    submissions=[SubmissionShown(job="sweep", how="array", array="0-3")],
    uri="slurm://plans/0a", gantt_uri="slurm://plans/0a/gantt",
)  # fmt: skip


def seeded(seed):
    return random.Random(seed)  # noqa: S311 - no secret


def seconds(chance):
    """Like GPU jobs of a shared cluster: minutes to days, most of them short."""
    return round(max(60.0, min(chance.lognormvariate(8, 1.9), 8 * 86400)))


def single(seed, jobs=50):
    chance = seeded(seed)
    return plan_problem([PlannedJob(f"j{i}", seconds(chance), gpus=1) for i in range(jobs)], [POOL])


def gangs(seed, jobs=50):
    chance = seeded(seed)
    sizes = chance.choices([1, 2, 4], [0.6, 0.25, 0.15], k=jobs)
    return plan_problem([PlannedJob(f"j{i}", seconds(chance), gpus=size) for i, size in enumerate(sizes)], [POOL])


def uniform(seed, jobs=50):
    chance = seeded(seed)
    made = [PlannedJob(f"j{i}", chance.randint(600, 36000), gpus=chance.randint(1, 4)) for i in range(jobs)]
    return plan_problem(made, [POOL])


def mixed(seed, jobs=20):
    """Counts, CPUs, memory, shares, deadlines, weights and dependencies on one or two pools."""
    chance = seeded(seed)
    made = []
    for number in range(jobs):
        whole = chance.choice([0, 1, 1, 2, 4])
        share = None if whole or chance.random() < 0.5 else chance.choice([0.1, 0.25, 0.3, 0.5, 0.6])
        before = {f"j{chance.randrange(number)}" for _ in range(chance.randint(0, 2))} if number else set()
        made.append(
            PlannedJob(
                f"j{number}",
                chance.uniform(10, 5000),
                gpus=whole,
                cpus=chance.randint(1, 12),
                memory_bytes=chance.randint(1, 40) << 30,
                count=chance.randint(1, 4),
                after=tuple(before),
                deadline=chance.uniform(5000, 50000) if chance.random() < 0.3 else None,
                priority=chance.choice([1, 1, 2, 5]),
                share=share,
            )
        )
    first = JobPool("here", gpus=4, cpus=16, memory_bytes=64 << 30, jobs=6, gpu_hour=0.5)
    more = JobPool("cloud", gpus=8, cpus=32, gpu_hour=2.5, cpu_hour=0.05)
    return plan_problem(made, [first, more] if seed % 2 else [first])


def faults(problem, schedule):
    """What is wrong with a schedule: copies missing, more held than there is, dependencies broken, GPUs held twice."""
    jobs = {job.name: job for job in problem.jobs}
    pools = {pool.name: pool for pool in problem.pools}
    found = []
    counts = dict.fromkeys(jobs, 0)
    for one in schedule.placed:
        counts[one.job.name] += 1
        if one.start < 0 or abs(one.end - one.start - one.job.seconds) > 1e-6:
            found.append(f"{one.name} is cut short")
        if pools[one.pool].gpus is not None and len(one.gpus) != (1 if one.job.share else one.job.gpus):
            found.append(f"{one.name} holds {one.gpus}")
        if any(number >= (pools[one.pool].gpus or 0) for number in one.gpus):
            found.append(f"{one.name} holds a GPU that there is not")
    found += [f"{name} runs {number} times" for name, number in counts.items() if number != jobs[name].count]
    ends = {name: max(one.end for one in schedule.placed if one.job.name == name) for name in jobs}
    for one in schedule.placed:
        found += [f"{one.name} starts before {name} ends" for name in one.job.after if one.start < ends[name]]
    for moment in {one.start for one in schedule.placed}:
        for pool in pools.values():
            running = [one for one in schedule.placed if one.pool == pool.name and one.start <= moment < one.end]
            found += _beyond(pool, running, moment)
    return found


def _beyond(pool, running, moment):
    found = []
    held = {}
    for one in running:
        for number in one.gpus:
            held[number] = held.get(number, 0) + (1 if one.job.share is None else one.job.share)
    found += [f"GPU {number} is held {part} times at {moment}" for number, part in held.items() if part > 1 + 1e-9]
    sums = {
        "gpus": len(held),
        "cpus": sum(one.job.cpus for one in running),
        "memory_bytes": sum(one.job.memory_bytes for one in running),
        "jobs": len(running),
    }
    return found + [
        f"{what}: {value} at {moment}"
        for what, value in sums.items()
        if getattr(pool, what) is not None and value > getattr(pool, what)
    ]
