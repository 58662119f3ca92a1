"""All four places are taken: the next job waits for one of them, and none is taken away."""

from __future__ import annotations

from evals.task import Outcome, Scene, Task, need, script, send, state_of

NAMES = ("short", "long-1", "long-2", "long-3")


def prepare(scene: Scene) -> dict[str, str]:
    """Four jobs of the person's run."""
    jobs = {name: send(scene, script(name, "sleep 600", time="20")) for name in NAMES}
    scene.until(lambda: {state_of(scene, job) for job in jobs.values()} == {"RUNNING"}, "all four run")
    return jobs


def check(seen: Outcome) -> None:
    """The four run still; the fifth is in the queue and waits for the short one."""
    states = {name: seen.job(seen.values[name]).state for name in NAMES}
    need(set(states.values()) == {"RUNNING"}, f"the jobs that ran are {states}")
    need(len(seen.sent) == 1, f"one job was to be sent, not {len(seen.sent)}")
    job = seen.sent[0]
    need((job.name, job.state) == ("night", "PENDING"), f"{job.name} is {job.state}")
    need(seen.values["short"] in job.dependency, f"night waits for {job.dependency or 'nothing'}")
    seen.unchanged(TASK, TASK.files)


TASK = Task(
    prompt="Put night.sh into the queue now. If there is no place for it, let it take the place of `short` (job "
    "{short}) as soon as that one has ended. My jobs stay as they are.",
    files={"night.sh": script("night", "python3 -c 'print(1)'")},
    check=check,
    prepare=prepare,
)
