"""Which job, and which of its runs, the lines of a log are of."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import TRACEBACK, job, log, step

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.excerpt import last_run, named_job
from slurm_agent_tools.units import JobId

OOM = "slurmstepd: error: Detected 1 oom_kill event in StepId={}.batch. Some of the step tasks have been OOM Killed."
LIMIT = "slurmstepd: error: *** JOB {} ON gpu01 CANCELLED AT 2026-03-01T12:25:00 DUE TO TIME LIMIT ***"


def kept(*lines, jobs=()):
    return [line.text for line in last_run(log(*lines), jobs).lines]


@pytest.mark.parametrize("line", [OOM, LIMIT, "srun: error: Task launch for StepId={}.0 failed on node gpu01: Socket"])
def test_a_line_of_slurms_about_another_job_decides_nothing(line):
    assert diagnose(job(exit_code=1, elapsed_seconds=1), (), [log("hello", line.format(191))]).category == "unknown"


def test_the_same_line_about_this_job_decides():
    found = diagnose(job(exit_code=1), (), [log("hello", OOM.format(71))])

    assert (found.category, found.confidence) == ("host-out-of-memory", 0.95)


def test_a_task_of_an_array_is_named_by_its_own_number():
    task = job(job_id=JobId(71, 2), raw_id=75, exit_code=1)

    assert diagnose(task, (task,), [log(OOM.format(75))]).category == "host-out-of-memory"
    assert diagnose(task, (task,), [log(OOM.format(74))]).category == "unknown"


def test_where_the_number_of_a_task_is_not_known_no_line_is_left_out():
    task = job(job_id=JobId(71, 2), exit_code=1)

    assert diagnose(task, (task,), [log(OOM.format(75))]).category == "host-out-of-memory"


def test_slurms_record_wins_over_what_it_once_wrote_into_the_log():
    assert diagnose(job(exit_code=1), (), [log(LIMIT.format(71))]).category == "unknown"
    assert diagnose(job("TIMEOUT"), (), [log(LIMIT.format(71))]).category == "time-limit"
    assert diagnose(job("TIMEOUT"), (), [log(OOM.format(71))]).category == "time-limit"


def test_a_step_with_a_limit_of_its_own_ends_a_job_that_failed():
    line = "slurmstepd: error: *** STEP 71.0 ON gpu01 CANCELLED AT 2026-03-01T12:25:00 DUE TO TIME LIMIT ***"

    assert diagnose(job(exit_code=1), (), [log(line)]).category == "time-limit"


def test_the_number_of_the_job_is_read_from_lines_of_slurms_alone():
    assert named_job(OOM.format(71)) == "71"
    assert named_job("/var/spool/slurmd/job00071/slurm_script: line 3: x: command not found") == "71"
    assert named_job("Submitted batch job 72") is None
    assert named_job("srun: error: gpu01: task 0: Exited with exit code 1") is None


def test_what_an_earlier_job_wrote_to_the_same_file_is_left_out():
    lines = ["first", LIMIT.format(70), "second", "/var/spool/slurmd/job00071/slurm_script: line 2: gmx: not found"]

    assert kept(*lines) == lines[2:]
    assert kept(*lines, jobs=("71",)) == lines[2:]
    assert kept(*lines, jobs=("70",)) == lines
    assert kept(lines[3], *lines) == [lines[3], *lines]


BEGIN = "Mon Mar  2 1{}:00:00 CET 2026"


def test_of_several_runs_in_one_file_the_last_one_counts():
    first = [BEGIN.format(0), "loading", *TRACEBACK, "RuntimeError: CUDA error: out of memory"]
    second = [BEGIN.format(4), "loading", "/var/spool/slurmd/job00071/slurm_script: line 9: gmx: command not found"]

    assert kept(*first, *second) == second
    assert diagnose(None, (), [log(*first, *second)]).category == "command-not-found"
    assert diagnose(job(exit_code=127), (), [log(*first, *second)]).category == "command-not-found"


def test_a_head_without_a_date_has_to_come_again_with_the_line_behind_it():
    end = "srun: error: gpu01: task 0: Exited with exit code 1"

    assert kept("Running on gpu01", "seed 7", "a", end, "Running on gpu02", "seed 8", "b") == [
        "Running on gpu02", "seed 8", "b",
    ]  # fmt: skip
    whole = ["Running on gpu01", "seed 7", "a", end, "Running on gpu02", "b"]
    assert kept(*whole) == whole


@pytest.mark.parametrize(
    "head",
    [
        "epoch 1/9 loss 0.4",
        "Traceback (most recent call last):",
        "[rank0]: loading",
        "2026-03-02 10:00:00 INFO loading",
    ],
)
def test_what_ranks_and_programs_repeat_begins_no_run(head):
    lines = [head, "ValueError: bad", head.replace("0", "1"), "KeyError: 'x'"]

    assert kept(*lines) == lines


def test_a_head_that_comes_again_before_anything_ended_begins_no_run():
    lines = [BEGIN.format(0), "loading", BEGIN.format(1), "KeyError: 'x'"]

    assert kept(*lines) == lines


def test_the_source_that_a_traceback_quotes_is_no_message():
    quoted = [*TRACEBACK[:2], '    raise MemoryError("CUDA out of memory" if gpu else "No space left on device")']

    assert diagnose(job(exit_code=1), (), [log(*quoted, "KeyError: 'x'")]).category == "python-exception"
    assert diagnose(job(exit_code=1), (), [log(*quoted[1:], "KeyError: 'x'")]).category == "python-exception"


def test_a_step_that_was_cancelled_is_no_case_of_memory():
    steps = (step("batch", "FAILED", exit_code=1), step("0", "CANCELLED", exit_code=0, signal=9))
    lines = ["slurmstepd: error: *** STEP 71.0 ON gpu01 CANCELLED AT 2026-03-01T12:25:00 ***",
             "srun: error: gpu01: task 0: Killed"]  # fmt: skip

    found = diagnose(job(exit_code=1, steps=steps), (), [log(*lines)])

    assert found.category == "unknown"
    assert "memory" not in found.explanation
    assert "A step was cancelled" in found.explanation


def test_a_step_that_srun_ended_because_a_task_had_ended_was_not_cancelled():
    lines = ["srun: error: gpu01: task 7: Aborted", "srun: Terminating job step 71.0",
             "slurmstepd: error: *** STEP 71.0 ON gpu01 CANCELLED AT 2026-03-01T12:25:00 ***",
             "srun: error: gpu01: tasks 0-6: Killed"]  # fmt: skip

    assert diagnose(None, (), [log(*lines)]).category == "unknown"
    assert diagnose(None, (), [log(lines[2])]).category == "cancelled"
    assert diagnose(None, (), [log(lines[3])]).category == "host-out-of-memory"


COPY = "cp: cannot stat 'old.npz': No such file or directory"


def test_what_the_shell_went_on_after_is_less_sure_where_another_error_came_later():
    alone = diagnose(job(exit_code=1), (), [log(COPY, COPY, "done")])
    beside = diagnose(job(exit_code=1), (), [log(COPY, "starting", "ERROR: the box is too small")])

    assert (alone.category, alone.confidence) == ("missing-file", 0.8)
    assert (beside.category, beside.confidence) == ("missing-file", 0.5)


def test_what_a_clean_up_did_not_find_is_no_cause_where_another_error_came_later():
    gone = "rm: cannot remove 'out/*': No such file or directory"

    assert diagnose(job(exit_code=1), (), [log(gone, "start")]).category == "missing-file"
    found = diagnose(job(exit_code=1), (), [log(gone, "start", "Solver error: singular matrix")])
    assert found.category == "unknown"
    assert "Solver error: singular matrix" in found.explanation


def test_what_nccl_informs_of_is_no_error():
    info = (
        "gpu01:7:9 [0] NCCL INFO NET/Plugin: libnccl-net.so: cannot open shared object file: No such file or directory"
    )

    assert diagnose(job(exit_code=1), (), [log(info)]).category == "unknown"


def test_the_times_of_a_workflow_manager_begin_no_run():
    lines = ["[Mon Mar  4 10:00:00 2024]", "rule plot:", "Error in library(x) : there is no package called x",
             "Execution halted", "[Mon Mar  4 10:00:02 2024]", "Error in rule plot:"]  # fmt: skip

    assert kept(*lines) == lines


def test_a_record_of_a_programs_log_begins_no_run():
    lines = [
        "2026-03-02 10:00:00 [INFO] starting worker 1",
        "KeyError: 'x'",
        "2026-03-02 10:00:01 [INFO] starting worker 2",
    ]

    assert kept(*lines) == lines


def test_a_folder_that_was_gone_when_the_job_began_is_what_the_missing_files_come_from():
    lines = ["slurmstepd: error: couldn't chdir to `/scratch/u': Stale file handle: going to /tmp instead",
             "python: can't open file '/tmp/train.py': [Errno 2] No such file or directory"]  # fmt: skip

    assert diagnose(job(exit_code=2), (), [log(*lines)]).category == "storage-fault"


def test_what_nextflow_shows_indented_of_a_process_is_read_as_the_process_wrote_it():
    lines = [
        "Caused by:",
        "  Failed to pull singularity image",
        "  message:",
        "    bash: singularity: command not found",
    ]

    found = diagnose(job(exit_code=1), (), [log(*lines)])

    assert (found.category, "(singularity)" in found.explanation) == ("command-not-found", True)
    assert diagnose(job(exit_code=1), (), [log("notes", lines[-1])]).category == "unknown"


def reported(number, words, *, above):
    head = ["Sender: LSF System <lsf@cn07>", f"Subject: Job {number}: <fit> in cluster <lab> Exited", *words]
    return [*head, "The output (if any) is above this job summary." if above else "The output (if any) follows:"]


def test_of_several_jobs_that_lsf_reported_of_into_one_file_the_last_one_counts():
    failed, owner = ["Exited with exit code 1."], ["TERM_OWNER: job killed by owner.", "Exited with exit code 143."]
    first, last = "OSError: [Errno 28] No space left on device", "a = 1"
    above = [first, *reported(1, failed, above=True), last, *reported(2, owner, above=True)]
    follows = [*reported(1, failed, above=False), first, *reported(2, owner, above=False), last]

    for lines in (above, follows):
        assert diagnose(None, (), [log(*lines)]).category == "cancelled"
        assert first not in kept(*lines)
        assert last in kept(*lines)
    assert kept(first, *reported(1, failed, above=True))[0] == first


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("=>> PBS: job killed: walltime 3628 exceeded limit 3600", "time-limit"),
        ("TERM_RUNLIMIT: job killed after reaching LSF run time limit.", "time-limit"),
        ("TERM_OWNER: job killed by owner.", "cancelled"),
    ],
)
def test_the_word_of_another_scheduler_decides_like_slurms(line, category):
    assert diagnose(None, (), [log("a.SC: line 23: 242 Segmentation fault ./run", line)]).category == category
