"""Records as they are shown, scripts as they are written, ids as callers name them: whole values, and at the limits."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.insights.test_script_writing import DECISION, NOW, draft
from tests.unit.services.clusters import submitted

from slurm_agent_tools.errors import InputError, SlurmUnreachable
from slurm_agent_tools.insights import job_outcome, measured_waits
from slurm_agent_tools.insights.script_writing import fallback
from slurm_agent_tools.models.decision import Pin, RuleDecision
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job import Job, JobView, PastWait, PastWaits
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.shapes import JobShown, ResourcesShown, WaitMeasured
from slurm_agent_tools.models.submission_answer import ExpectedWait
from slurm_agent_tools.services import jobs, present, submission_facts
from slurm_agent_tools.units import UNLIMITED, JobId, parse_job_id

MIB, GIB = 2**20, 2**30


def at(second: int) -> datetime:
    return datetime.fromtimestamp(1_770_000_000 + second, UTC)


def job(text: str = "5", state: str = "RUNNING", **facts: object) -> Job:
    return Job(parse_job_id(text), "train", state, ("squeue",), **facts)  # type: ignore[arg-type]


# --- a job --------------------------------------------------------------------------------------------------------

FULL = job(
    state="FAILED", user="alice", partition="cpu", reason="NonZeroExitCode\x1b[31m", exit_code=7, signal=9,
    derived_exit_code=3, derived_signal=4, cancelled_by="64", submitted=at(0), started=at(30), ended=at(90),
    elapsed_seconds=60, resources=Resources(time_limit_seconds=120), nodes="cpu1", restarts=2, dependency="afterok:4",
    expected_start=at(500),
)  # fmt: skip


def test_a_job_is_shown_whole():
    shown = present.job(replace(FULL, name="a\nb"), managed=True, why="It ran out of luck.")
    assert shown == JobShown(
        job_id="5", name=shown.name, state="FAILED", partition="cpu", user="alice", reason=shown.reason, exit_code=7,
        signal=9, derived_exit_code=3, derived_signal=4, cancelled_by="64", submitted=at(0), started=at(30),
        ended=at(90), queue_seconds=30, run_seconds=60, time_limit_seconds=120, nodes="cpu1", restarts=2,
        dependency="afterok:4", managed=True, cause="It ran out of luck.", estimated_start=None, sources=["squeue"],
    )  # fmt: skip
    assert ("\n" not in shown.name, "\x1b" not in (shown.reason or "")) == (True, True)


def test_a_job_is_expected_to_start_while_it_waits_and_its_cause_is_slurms_where_nobody_knows_more():
    assert present.job(replace(FULL, state="PENDING")).estimated_start == at(500)
    told = present.job(FULL)
    assert (told.cause, told.managed) == ("It ended by signal 9.", None)
    assert present.job(job()).reason is None
    assert present.brief_job(FULL, managed=False).managed is False


def test_a_part_tells_what_is_its_own():
    whole = present.job(FULL, managed=True)
    task = replace(FULL, job_id=parse_job_id("5_1"), user="bob", resources=Resources(time_limit_seconds=120))
    part = present.part(task, whole, why="Its disk was full.")
    assert (part.job_id, part.user, part.cause) == ("5_1", "bob", "Its disk was full.")
    assert (part.partition, part.time_limit_seconds, part.submitted, part.managed) == (None,) * 4
    assert part.sources == []
    other = present.part(replace(task, partition="gpu", sources=("sacct",)), whole)
    assert (other.partition, other.sources) == ("gpu", ["sacct"])


def test_a_request_is_shown_with_the_spelling_of_people():
    full = Resources(
        partition="gpu", nodes=2, cpus=8, gpus=4, memory_bytes=8 * GIB, memory_per_gpu_bytes=2 * GIB,
        time_limit_seconds=3600, array_tasks=10, array_concurrency=3,
    )  # fmt: skip
    assert ResourcesShown.of(full) == ResourcesShown(
        partition="gpu", nodes=2, cpus=8, gpus=4, memory_bytes=8 * GIB, memory="8G", memory_per_gpu_bytes=2 * GIB,
        memory_per_gpu="2G", time_limit_seconds=3600, time_limit="01:00:00", array_tasks=10, array_concurrency=3,
    )  # fmt: skip
    nothing = ResourcesShown.of(Resources())
    assert (nothing.memory, nothing.memory_per_gpu, nothing.time_limit) == (None, None, None)
    assert ResourcesShown.of(Resources(memory_bytes=0, time_limit_seconds=0)).memory == "0B"


@pytest.mark.parametrize(
    ("record", "words"),
    [
        (Resources(), ""),
        (Resources(partition="cpu"), " to cpu"),
        (Resources(partition="cpu", cpus=1), " to cpu: 1 CPU"),
        (Resources(nodes=1, cpus=2, gpus=1), ": 1 GPU, 2 CPUs"),
        (Resources(nodes=2, gpus=0), ": 2 nodes"),
        (Resources(array_tasks=1, memory_bytes=200 * MIB, time_limit_seconds=0), ": 1 array task, 200M, 00:00:00"),
        (Resources(time_limit_seconds=UNLIMITED), ": UNLIMITED"),
    ],
)
def test_a_request_in_a_few_words_leaves_out_what_is_not_stated(record, words):
    assert record.in_words == words


def test_an_error_is_shown_with_its_code_and_its_mend():
    shown = present.section_error(SlurmUnreachable("Slurm is silent.", hint="Ask again.")).error
    assert (shown.code, shown.message, shown.hint) == (SlurmUnreachable.code, "Slurm is silent.", "Ask again.")


# --- ids and states -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "x", "5_[1-3]", "0", "-5", "5 6"])
def test_what_is_no_job_id_is_an_error_that_names_its_field(text):
    with pytest.raises(InputError) as caught:
        jobs.parse(text, "job_ids[1]")
    assert (caught.value.field, caught.value.value) == ("job_ids[1]", text)
    assert "123_4" in (caught.value.hint or "")


def test_a_job_id_is_a_job_a_task_or_a_component():
    assert [jobs.parse(text) for text in ("5", "5_2", "5+1")] == [JobId(5), JobId(5, task=2), JobId(5, component=1)]
    with pytest.raises(InputError) as caught:
        jobs.parse("x")
    assert caught.value.field == "job_id"


@pytest.mark.parametrize(
    ("states", "status", "ended", "failed"),
    [
        (["COMPLETED"], "finished", True, False),
        (["FAILED"], "finished", True, True),
        (["CANCELLED"], "finished", True, False),
        (["TIMEOUT"], "finished", True, True),
        (["UNKNOWN"], "unknown", False, None),
        (["PENDING"], "pending", False, False),
        (["REQUEUED"], "pending", False, False),
        (["COMPLETING"], "running", False, False),
        (["SUSPENDED"], "running", False, False),
        (["PENDING", "PENDING", "COMPLETED"], "pending", False, False),
        (["PENDING", "PENDING", "RUNNING"], "running", False, False),
        (["FAILED", "COMPLETED", "FAILED"], "finished", True, True),
        (["COMPLETED", "COMPLETED", "UNKNOWN"], "finished", False, None),
    ],
)
def test_how_a_job_stands_is_a_word_over_all_its_parts(states, status, ended, failed):
    view = JobView(job(state=states[0]), tuple(job(f"5_{n}", state) for n, state in enumerate(states[1:])))
    assert (jobs.status(view), view.over) == (status, ended)
    assert failed is None or jobs.failed(view) == failed


# --- why it ended -------------------------------------------------------------------------------------------------

FOUND = Diagnosis(
    category="cancelled", confidence=0.9, escalation="none", explanation="The job was cancelled by user 1001. Nothing more.",
    suggestions=["Ask who did it."],
)  # fmt: skip


def run(**facts: object):
    return submitted(at(0), **facts)


def test_the_reason_of_a_cancel_belongs_to_the_very_job_or_its_whole():
    told = run(cancellation={str(parse_job_id("5")): "wrong data"})
    task = run(cancellation={str(parse_job_id("5_1")): "wrong data"})
    ended = {text: job(text, "CANCELLED") for text in ("5", "5_1", "5_2")}
    assert [job_outcome.reason(told, one) for one in ended.values()] == ["wrong data"] * 3
    assert [job_outcome.reason(task, one) for one in ended.values()] == [None, "wrong data", None]
    assert job_outcome.reason(told, job(state="FAILED")) is None
    assert job_outcome.reason(run(), ended["5"]) is None
    assert job_outcome.reason(None, ended["5"]) is None


@pytest.mark.parametrize(
    ("other", "analysed", "ended", "there"),
    [("5", 10, 10, True), ("5", 10, 11, False), ("5", 10, None, True), ("6", 10, 5, False), ("5", None, 5, False)],
)
def test_a_diagnosis_is_of_this_very_job_and_not_older_than_its_end(other, analysed, ended, there):
    kept = job_outcome.found_cause(job(other, "FAILED"), FOUND)
    made = run(diagnosis=kept, analysed=None if analysed is None else at(analysed))
    found = job_outcome.remembered(made, job(state="FAILED", ended=None if ended is None else at(ended)))
    assert (found is not None) == there
    assert found is None or (found.category, found.confidence, found.suggestions) == (
        "cancelled",
        0.9,
        FOUND.suggestions,
    )
    assert job_outcome.remembered(None, job()) is None


def test_a_diagnosis_in_the_ledger_has_no_evidence_and_no_secret():
    secret = FOUND.model_copy(update={"explanation": "It said password=hunter2secret to all."})
    kept = asdict(job_outcome.found_cause(job(), secret))
    assert "evidence" not in kept
    assert "hunter2secret" not in str(kept)


# --- the wait -----------------------------------------------------------------------------------------------------


def waits(*seconds: int, partition: str = "cpu", **facts: object) -> PastWaits:
    made = tuple(PastWait(n, partition, one, Resources(partition=partition)) for n, one in enumerate(seconds, 1))
    return PastWaits(made, 24, **facts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("hours", "words"), [(24, "24 hours"), (48, "2 days"), (168, "7 days"), (50, "50 hours"), (6, "6 hours")]
)
def test_a_window_is_told_in_days_where_it_is_several_whole_ones(hours, words):
    assert measured_waits.period(hours) == words


def test_the_queue_tells_what_was_measured_and_on_what_it_rests():
    told = measured_waits.of_queue(waits(*[10] * 18, 40, 80))
    assert told.measured == WaitMeasured(median=10, p95=40, jobs=20)
    assert told.partitions == {"cpu": told.measured}
    assert told.note == "20 jobs ran in the last 24 hours"
    own = measured_waits.of_queue(waits(1, own=True))
    assert (own.measured, own.partitions, own.note) == (None, {}, "1 job of your own ran in the last 24 hours")
    assert measured_waits.of_queue(PastWaits(note="not asked")).note == "not asked"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, ""), (0, " Slurm expects it to start at once."), (9, " Slurm expects it to start at once."), (10, " Slurm expects it to start in 00:00:10.")],
)  # fmt: skip
def test_the_expected_start_is_a_sentence(seconds, words):
    assert submission_facts.starts(ExpectedWait(from_slurm_seconds=seconds, jobs=0, note="")) == words
    assert submission_facts.starts(None) == ""


# --- scripts that are written -------------------------------------------------------------------------------------


def test_what_a_script_does_beside_its_numbers_is_told():
    plain = draft().reasons[-1]
    assert plain == "Logs go to logs/slurm/, which must be there when the job starts."
    checked = draft(checkpoint={"dir": "c"}).reasons[-1]
    assert checked == "The program must save its checkpoints in the folder CHECKPOINT_DIR, which the script makes."
    full = draft(
        mail="a@b.c", array="0-3", gpus=2, distributed=True, checkpoint={"dir": "c", "resume_from": "r"}
    ).reasons  # fmt: skip
    assert full[-3:-1] == [
        "Mail at the end and on failure: an address is configured.",
        "The program must save its checkpoints in the folder CHECKPOINT_DIR, which the script makes, one for each task.",
    ]
    assert full[-1].startswith("The program must go on from the file RESUME_FROM where that is not empty; ")
    assert draft().reasons[-2] != full[-3]


@pytest.mark.parametrize(
    ("facts", "field", "value"),
    [
        ({"name": "x" * 201}, "name", "x" * 201),
        ({"name": " "}, "name", " "),
        ({"partition": "a\nb"}, "partition", "a\nb"),
        ({"array": "9-1"}, "array", "9-1"),
        ({"command": " "}, "command", " "),
        ({"command": "a\x07"}, "command", "a\x07"),
        ({"setup": ["a", ""]}, "setup[1]", ""),
        ({"checkpoint": {"dir": "c", "resume_from": "\x01"}}, "checkpoint.resume_from", "\x01"),
    ],
)
def test_a_text_that_cannot_stand_in_a_script_is_an_error_with_its_field_and_value(facts, field, value):
    with pytest.raises(InputError) as caught:
        draft(**facts)
    assert (caught.value.field, caught.value.value) == (field, value)
    assert caught.value.hint


def test_a_name_may_have_two_hundred_signs_and_a_command_tabs_and_newlines():
    assert "--job-name=" + "x" * 200 in draft(name="x" * 200).script
    assert draft(command="a\n\tb").script.endswith("a\n\tb\n")


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("python a.py --x 1", "exec python a.py --x 1"),
        ("A=1 python a.py", "A=1 python a.py"),
        ("cd x", "cd x"),
        ("a | b", "a | b"),
        ("a\nb", "a\nb"),
    ],
)
def test_a_command_of_several_processes_is_one_step(command, written):
    script = draft(command=command, gpus=2, distributed=True).script
    assert script.count("\nsrun ") == 1
    assert script.endswith(f"\n{written}\n'\n")
    assert draft(command=command).script.endswith(f"\n\n{command.strip()}\n")


def test_the_script_for_a_person_says_when_why_and_with_which_options():
    warned = RuleDecision(id="device-index", outcome="warn", message="Names GPU 0.")
    open_ = RuleDecision(id="dependency", outcome="not_evaluated", message="Not asked.")
    pin = Pin("--gpus=1", "no GPUs stated")
    made = replace(DECISION, rules=(*DECISION.rules, warned, open_), pinned=(pin,))
    lines = fallback("#!/bin/bash\ntrue\n", made, blocker="approval", now=NOW).split("\n")
    assert lines[1] == "# slurm-agent-tools did not submit this script (approval), 2026-03-01T12:00:05+00:00."
    assert lines[2] == "# Verdict: approve; decision d1; policy version 1, sha256 ab."
    assert "# device-index (warn): Names GPU 0." in lines
    assert not any("Not asked." in line for line in lines)
    assert lines[-4:-2] == [
        "# To be given to sbatch: --gpus=1 (no GPUs stated)",
        "# A person decides: read the script, then submit it by hand.",
    ]
    assert lines[-2:] == ["true", ""]


def test_a_second_line_that_is_an_encoding_and_the_last_one_stays_the_last():
    made = fallback("#!/usr/bin/python3\n# coding: utf-8", DECISION, blocker="approval", now=NOW)
    assert made.split("\n")[:2] == ["#!/usr/bin/python3", "# coding: utf-8"]
    assert made.endswith("by hand.\n")


def test_a_moment_ago_is_no_time_at_all():
    assert present.job(job(submitted=at(5), started=at(5) - timedelta(seconds=2))).queue_seconds == 0
