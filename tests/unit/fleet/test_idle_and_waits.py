"""GPUs that do nothing, by whoever measured it; and why jobs wait, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.unit.fleet.looks import NOW, G, facts, node

from slurm_agent_tools.fleet.sections import idle_use, pending_waits
from slurm_agent_tools.fleet.use_windows import KeptLooks
from slurm_agent_tools.models.job import Job, PastWait, PastWaits, StepUse
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.units import JobId

HOUR = timedelta(hours=1)


def job(number: int = 7, *, gpus: int | None = 2, ago: timedelta = HOUR, state: str = "RUNNING", **more: Any) -> Job:
    asked = Resources(partition="main", cpus=4, gpus=gpus, memory_bytes=8 * G, time_limit_seconds=7200)
    start = NOW - ago if state == "RUNNING" else None
    known: dict[str, Any] = {
        "partition": "main",
        "raw_id": number,
        "submitted": NOW - ago,
        "started": start,
        "resources": asked,
    }
    return Job(JobId(number), "train", state, ("squeue",), **{**known, **more})


def step(cpu: float | None, *, number: int = 7, name: str = "batch", percent: float | None = None) -> StepUse:
    return StepUse(number, name, 1, 2 * G, G, cpu, percent)


def look(*jobs: Job, use: Sequence[StepUse] | None = (), series: Sequence[Sequence[float]] = (), **more: Any):
    steps = None if use is None else {one.raw_id: tuple(two for two in use if two.raw_id == one.raw_id) for one in use}
    points = tuple(
        tuple((NOW - timedelta(minutes=len(one) - 1 - index), value) for index, value in enumerate(one))
        for one in series
    )
    known = {7: points} if points else {}
    return facts([], mine=jobs, use=steps, gpu_series=known, series_note="no Prometheus is set", **more)


@pytest.mark.proves("idle-is-measured")
def test_gpus_of_a_job_whose_processes_take_no_cpu_are_held_empty():
    (found,) = idle_use.idle(look(job(), use=[step(0.2)]))
    assert (found.job_id, found.gpus, found.since) == ("7", 2, NOW - HOUR)
    assert (found.kind, found.source) == ("held-empty", "cpu_time")
    assert "2 of your GPUs do nothing." in idle_use.idle_sentence([found])


@pytest.mark.proves("idle-is-measured")
@pytest.mark.parametrize(
    ("one", "use"),
    [
        (job(), [step(1800)]),  # it computes
        (job(), [step(None)]),  # not measured
        (job(), None),  # sstat did not answer
        (job(), []),  # nothing is told of it
        (job(), [step(0, percent=40)]),  # Slurm samples the GPU: it is used
        (job(ago=timedelta(minutes=5)), [step(0)]),  # not for long enough
        (job(gpus=0), [step(0)]),
        (job(state="PENDING"), [step(0)]),
    ],
)
def test_nothing_is_called_idle_that_was_not_measured_for_long_enough(one, use):
    assert idle_use.idle(look(one, use=use)) == []


def test_a_job_that_holds_gpus_with_no_step_but_the_one_that_holds_them_is_empty():
    (found,) = idle_use.idle(look(job(), use=[step(None, name="extern")]))
    assert found.kind == "held-empty"


def test_a_program_that_was_started_by_ssh_runs_in_the_step_that_holds_the_nodes():
    assert idle_use.idle(look(job(), use=[step(3000, name="extern")])) == []
    assert idle_use.idle(look(job(), use=[step(0.1), step(3000, name="extern")])) == []


def steps(*series: Sequence[float]) -> dict[int, Any]:
    """A look of nvidia-smi each minute until now, for each GPU."""
    return {
        7: tuple(
            tuple((NOW - timedelta(minutes=len(one) - 1 - at), use) for at, use in enumerate(one)) for one in series
        )
    }


def test_nvidia_smi_in_a_step_is_asked_behind_prometheus_and_slurm():
    dead, busy = [0.0] * 20, [0.9] * 20
    (found,) = idle_use.idle(look(job(), use=[step(1800)], gpu_steps=steps(dead, busy)))
    assert (found.gpus, found.source) == (1, "nvidia_smi")
    assert idle_use.idle(look(job(), use=[step(1800)], gpu_steps=steps(busy, busy))) == []
    (sampled,) = idle_use.idle(look(job(), use=[step(0.1, percent=0)], gpu_steps=steps(busy, busy)))
    assert sampled.source == "gpuutil"
    (first,) = idle_use.idle(look(job(), use=[step(1800)], gpu_steps=steps(busy, busy), series=[dead]))
    assert first.source == "prometheus"


def test_one_look_of_nvidia_smi_is_no_window_and_what_it_saw_in_use_is_not_empty():
    assert idle_use.idle(look(job(), use=[step(1800)], gpu_steps=steps([0.0], [0.0]))) == []
    (held,) = idle_use.idle(look(job(), use=[step(0.1)], gpu_steps=steps([0.0], [0.0])))
    assert held.source == "cpu_time"
    assert idle_use.idle(look(job(), use=[step(0.1)], gpu_steps=steps([0.4], [0.0]))) == []


def test_why_nvidia_smi_told_nothing_is_said():
    (blind,) = idle_use.unknown(look(job(), use=[step(1800)], gpu_step_notes={7: "nvidia-smi named no GPU"}))
    assert "nvidia-smi named no GPU" in blind.why
    (off,) = idle_use.unknown(look(job(), use=[step(1800)]))
    assert "fleet.gpu_steps" in off.why
    assert idle_use.unknown(look(job(), use=[step(1800)], gpu_steps=steps([0.5]))) == []


def test_no_more_gpus_are_idle_than_a_job_holds():
    twice = look(job(gpus=1), series=[[0.0] * 60, [0.0] * 60])  # two Prometheus that collect the same
    assert [one.gpus for one in idle_use.idle(twice)] == [1]


def test_gpu_use_that_slurm_samples_as_none_is_the_source():
    (found,) = idle_use.idle(look(job(), use=[step(0.1, percent=0)]))
    assert found.source == "gpuutil"


def test_prometheus_is_asked_first_and_each_gpu_counts_by_itself():
    busy, dead, late = [0.9] * 60, [0.0] * 60, [0.9] * 40 + [0.0] * 20
    (found,) = idle_use.idle(look(job(gpus=3), use=[step(0)], series=[busy, dead, late]))
    assert (found.gpus, found.source, found.kind) == (2, "prometheus", "held-empty")
    (after,) = idle_use.idle(look(job(gpus=2), use=[step(0)], series=[busy, late]))
    assert (after.gpus, after.kind, after.since) == (1, "idle-after-activity", NOW - timedelta(minutes=19))
    assert idle_use.idle(look(job(), use=[step(0)], series=[busy, busy])) == []


def test_idle_after_activity_is_told_from_earlier_looks():
    looks = KeptLooks()
    for minutes, spent in ((30, 900.0), (20, 1500.0), (10, 1500.1), (0, 1500.2)):
        seen = facts([], mine=(job(),), use={7: (step(spent),)}, now=NOW - timedelta(minutes=minutes))
        since = idle_use.quiet_since(seen, looks)
    (found,) = idle_use.idle(look(job(), use=[step(1500.2)], quiet_since=since))
    assert (found.kind, found.since) == ("idle-after-activity", NOW - timedelta(minutes=20))


@pytest.mark.proves("idle-is-measured")
def test_what_nobody_measures_is_said_with_the_reason():
    (told,) = idle_use.unknown(look(job(), use=[step(1800)]))
    assert "GPU use of jobs 7" in told.what
    assert "no Prometheus is set; Slurm samples no gres/gpuutil" in told.why
    (none,) = idle_use.unknown(look(job(gpus=0)))
    assert "no running job with GPUs" in none.why
    assert idle_use.unknown(look(job(), series=[[0.5]])) == []
    assert any("GPUs of jobs 7" in one.what for one in idle_use.unknown(look(job(gpus=None))))


def test_what_is_used_stands_beside_what_is_allocated():
    (found,) = idle_use.beside(look(job(), use=[step(3600.0)]))
    assert (found.cpu_share, found.memory_share) == (0.25, 0.25)
    assert idle_use.beside(look(job(), use=None)) == []


def test_jobs_that_near_their_limit_are_told():
    (found,) = idle_use.endings(look(job(1, ago=2 * HOUR - timedelta(minutes=4)), job(2)))
    assert (found.job_id, found.left_seconds, found.limit_ends) == ("1", 240, NOW + timedelta(minutes=4))


# --- waits ------------------------------------------------------------------------------------------------------------


def waiting(reason: str = "Priority", **more: Any) -> Job:
    return job(state="PENDING", gpus=1, reason=reason, **more)


def past(*seconds: int) -> PastWaits:
    asked = Resources(partition="main", cpus=4, gpus=1, memory_bytes=8 * G, time_limit_seconds=7200)
    return PastWaits(tuple(PastWait(100 + index, "main", one, asked) for index, one in enumerate(seconds)), 24)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Priority", "higher priority"), ("Resources", "until enough is free"), ("Dependency", "it waits for afterok:3"),
        ("QOSMaxJobsPerUserLimit", "as many jobs run"), ("AssocGrpGRES", "may hold is in use"),
        ("AssocGrpCPUMinutesLimit", "may hold is in use"), ("BeginTime", "may not begin before"),
        ("ReqNodeNotAvail, UnavailableNodes:a1", "busy, reserved or not working"), ("None", "not looked at it"),
        ("JobArrayTaskLimit", "as many tasks at once"), ("SomethingNew", "a word of its own"),
        ("JobHeldUser", "its user holds it"), ("Licenses", "licenses"),
    ],
)  # fmt: skip
def test_every_reason_is_a_sentence_with_slurms_own_word(reason, words):
    told = pending_waits.reason_sentence(waiting(reason, dependency="afterok:3" if reason == "Dependency" else None))
    assert words in told
    assert reason.split(",")[0] in told


def test_the_start_is_an_interval_over_jobs_that_waited_longer():
    waits = [600, 3700, 4200, 4800, 5400, 6000, 9000]
    (shown,) = pending_waits.section(look(waiting(), past=past(*waits))).jobs
    assert (shown.start_from, shown.start_to) == (NOW + timedelta(seconds=100), NOW + timedelta(seconds=5400))
    assert shown.basis == "6 jobs like it of the last 24 h"


def test_a_wait_counts_from_when_a_job_could_start():
    waits = [600, 3700, 4200, 4800, 5400, 6000, 9000]
    (shown,) = pending_waits.section(look(waiting(eligible=NOW), past=past(*waits))).jobs
    assert (shown.start_from, shown.start_to) == (NOW + timedelta(seconds=600), NOW + timedelta(seconds=9000))


@pytest.mark.parametrize("more", [{"reason": "Dependency"}, {"reason": "BeginTime", "eligible": NOW + HOUR}])
def test_a_job_that_may_not_start_yet_has_no_interval(more):
    (shown,) = pending_waits.section(look(waiting(**more), past=past(*[4000] * 9))).jobs
    assert (shown.start_from, shown.start_to) == (None, None)
    assert "may not start" in (shown.basis or "")


def test_running_jobs_that_were_not_looked_at_do_not_count_as_waiting():
    made = pending_waits.section(look(waiting(), mine_not_asked=40, mine_waiting=3, queue={("main", "PENDING"): 9}))
    assert made.jobs_not_shown == 2
    assert "9 jobs wait, 3 of them yours" in pending_waits.sentence(made)
    alone = pending_waits.section(look(waiting(), queue={("main", "PENDING"): 1}))
    assert pending_waits.sentence(alone).startswith("1 job waits, ")


def test_too_few_earlier_waits_give_no_interval_and_say_so():
    (shown,) = pending_waits.section(look(waiting(), past=past(600))).jobs
    assert (shown.start_from, shown.start_to) == (None, None)
    assert "are needed" in (shown.basis or "")
    assert (
        pending_waits.unknown(look(waiting(), past=PastWaits(note="the accounting is silent")))[0].why
        == "the accounting is silent"
    )


def test_a_job_that_no_waiting_starts_has_no_interval():
    made = pending_waits.section(look(waiting("JobHeldUser"), past=past(*[4000] * 9)))
    assert (made.jobs[0].never, made.jobs[0].start_from) == (True, None)
    assert "no waiting starts 7" in pending_waits.sentence(made)


def test_slurms_own_estimate_stands_beside_it_while_it_lies_ahead():
    late, soon = NOW - HOUR, NOW + HOUR
    made = pending_waits.section(look(waiting(expected_start=soon), waiting(expected_start=late)))
    assert [one.slurm_says for one in made.jobs] == [soon, None]


def test_the_queue_is_counted_by_partition_and_the_list_is_bounded():
    many = [waiting() for _ in range(70)]
    made = pending_waits.section(
        look(*many, queue={("main", "PENDING"): 90, ("main", "RUNNING"): 4, ("b", "PENDING"): 2})
    )
    assert (len(made.jobs), made.jobs_not_shown) == (50, 20)
    assert [(one.partition, one.pending, one.running) for one in made.queue] == [("main", 90, 4), ("b", 2, 0)]
    assert "92 jobs wait, 70 of them yours" in pending_waits.sentence(made)


def test_what_jobs_hold_that_the_caller_cannot_see_is_told_and_never_idle():
    nodes = [node("n1", "a100", 4, 4), node("n2", "a100", 4, 1)]
    (told,) = pending_waits.hidden(facts(nodes, mine=(job(gpus=2),), hidden_jobs=True))
    assert "1 CPUs and 3 GPUs are held by jobs that you cannot see" in told.why
    assert pending_waits.hidden(facts(nodes, mine=(job(gpus=2),))) == []
    (blind,) = pending_waits.hidden(facts([], hidden_jobs=True))
    assert blind.why == "this site hides them (PrivateData)"
