"""Which of the earlier runs failed."""

from __future__ import annotations

from evals.task import Outcome, Scene, Task, need, script, send, state_of


def prepare(scene: Scene) -> dict[str, str]:
    """Four jobs of the person's, of which two failed."""
    fates = {"good-1": "true", "bad-1": "exit 3", "good-2": "true", "bad-2": "exit 4"}
    jobs = {name: send(scene, script(f"fit-{name}", body)) for name, body in fates.items()}
    scene.until(
        lambda: {state_of(scene, job) for job in jobs.values()} == {"COMPLETED", "FAILED"}, "all of them have ended"
    )
    return jobs


def check(seen: Outcome) -> None:
    """Their ids, and no new job."""
    need(not seen.sent, "nothing was to be submitted")
    told = sorted(seen.text("failed.txt").split())
    need(told == sorted([seen.values["bad-1"], seen.values["bad-2"]]), f"failed.txt says {told}")


TASK = Task(
    prompt="Which of the jobs that ran in this project failed? Write their ids into failed.txt, one on each line.",
    files={},
    check=check,
    prepare=prepare,
)
