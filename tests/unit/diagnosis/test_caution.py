"""What keeps the diagnosis from being wrong with confidence: specific causes first, and nothing shown is no failure."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import TRACEBACK, job, log

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.excerpt import read_text

START, FRAME = "Traceback (most recent call last):", '  File "/home/u/run.py", line 8, in main'
HANDLED = "During handling of the above exception, another exception occurred:"


def said(*lines, part=None):
    found = diagnose(part, (), [log(*lines)])
    return found.category, found.confidence


# --- A log in which nothing failed ------------------------------------------------------------------------------------


def test_a_log_alone_without_an_error_says_that_nothing_in_it_shows_a_failure():
    found = diagnose(None, (), [log("reading input", "step 10 of 10", "results written to out.csv")])

    assert (found.category, found.confidence, found.escalation) == ("none", 0.3, "none")
    assert found.explanation.startswith("Nothing in the log shows a failure. Slurm's records were not asked")
    assert [line.text for line in found.evidence] == ["reading input", "step 10 of 10", "results written to out.csv"]
    assert "job's number" in found.suggestions[0]


@pytest.mark.parametrize(
    "line",
    ["fatal: bad mesh in cell 12", "solver returned with exit code 3", "caught signal 15, writing a checkpoint",
     "received TERM signal", "run interrupted", "job submission failed", "the request timed out", "got SIGUSR1"],
)  # fmt: skip
def test_a_log_alone_with_a_line_of_an_error_or_of_a_bad_end_stays_unknown(line):
    assert said("reading input", line, "cleaning up") == ("unknown", 0.1)


@pytest.mark.parametrize(
    "line",
    ["exit code 0", "return status 0", "the largest relative error is 0.02", "sending signals to the daemon",
     "warnings are turned into errors from version 3 on", "WARNING: download timed out, trying again"],
)  # fmt: skip
def test_a_line_that_only_sounds_like_an_error_leaves_it_at_nothing(line):
    assert said("reading input", line) == ("none", 0.3)


def test_an_empty_log_and_no_log_show_nothing_either_way():
    assert diagnose(None, (), [log("")]).category == "unknown"
    assert diagnose(None, (), ()).category == "unknown"


def test_a_log_of_which_parts_were_left_out_may_hold_an_error_there():
    parts = diagnose(None, (), [read_text("a.log", "stderr", b"reading input\n", b"done\n", 10**9)])

    assert (parts.category, parts.confidence) == ("unknown", 0.1)


def test_slurms_word_goes_before_a_quiet_log():
    quiet = "all results are written"

    assert said(quiet, part=job("TIMEOUT"))[0] == "time-limit"
    assert said(quiet, part=job("FAILED", exit_code=4))[0] == "unknown"
    assert said(quiet, part=job("COMPLETED", exit_code=0)) == ("none", 0.9)
    lost = diagnose(job("UNKNOWN"), (), [log(quiet)])
    assert lost.category == "unknown"
    assert lost.explanation == "How the job ended is not known; nothing in the log shows a failure."


# --- A specific cause beats the exception that wraps it ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "category"),
    [
        ("OSError: [Errno 24] Too many open files: '/data/part-7.h5'", "limit"),
        ("RuntimeError: can't start new thread", "limit"),
        ("OSError: [Errno 28] No space left on device", "disk-full"),
        ("OSError: [Errno 116] Stale file handle", "storage-fault"),
        ("RuntimeError: segment_csr: Not compiled with CUDA support", "python-exception"),
        ("OSError: [Errno 25] something of no kind", "python-exception"),
    ],
)
def test_the_number_of_a_system_error_tells_more_than_its_class(error, category):
    assert said(*TRACEBACK, error)[0] == category


def test_an_endpoint_that_is_not_connected_is_storage_in_a_file_and_the_network_in_a_socket():
    error = "OSError: [Errno 107] Transport endpoint is not connected"

    assert said(START, FRAME, "    out.write(block)", error) == ("storage-fault", 0.35)
    assert said(START, FRAME, "    self.sock.sendall(block)", error)[0] == "network"


def test_a_frameworks_error_with_its_message_on_the_next_lines_is_named_by_that_message():
    head = "tensorflow.python.framework.errors_impl.NotFoundError: 2 root error(s) found."

    assert said(*TRACEBACK, head, "  (0) Not found:  photos/a-17.png; No such file or directory")[0] == "missing-file"
    assert said(*TRACEBACK, head, "  (0) Not found:  key layer7/kernel in the checkpoint")[0] == "python-exception"


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("OpenBLAS blas_thread_init: pthread_create failed for thread 7 of 8: Resource temporarily unavailable", "limit"),
        ("run.sh: fork: Resource temporarily unavailable", "limit"),
        ("run.sh: fork: retry: Resource temporarily unavailable", "none"),
        ("slurmstepd: error: pyxis:     enroot-switchroot: failed to execute: /bin/sh: No such file or directory", "container-start"),
        ("enroot-switchroot: failed to execute: trainer: No such file or directory", "command-not-found"),
        ("Error: exec container process `/opt/run`: No such file or directory", "container-start"),
        ("TERM_MEMLIMIT: job killed after reaching its memory usage limit.", "host-out-of-memory"),
        ("ERROR: the integration diverged in cell 4", "numeric"),
        ("the integration diverged from the reference by 0.1", "none"),
        ("job 71 was preempted", "preempted"),
        ("the preempted queue holds 3 jobs", "unknown"),
        ("Cuda driver error 700 in call at file 'pair.cu' in line 9.", "cuda-error"),
        ("Cuda driver error 4 in call at file 'pair.cu' in line 9.", "unknown"),
        ("[n1][[7,1],0][btl_tcp.c:9:mca_btl_tcp_recv] mca_btl_tcp_recv: readv error (0x1, 8)", "mpi-abort"),
        ("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)", "network"),
    ],
)  # fmt: skip
def test_one_line_of_each_new_kind_is_named_and_its_like_is_not(line, category):
    assert said("reading input", line)[0] == category


def test_slurms_line_of_a_preemption_counts_behind_a_bar_of_progress():
    line = " 12%|#2   | 12/99 [00:10<01:10][2026-03-01T12:25:00.1] error: *** JOB 71 ON n1 CANCELLED AT 2026-03-01T12:25:00 {} ***"

    assert said(line.format("DUE TO PREEMPTION"))[0] == "preempted"
    assert said(line.format("on n2"))[0] != "preempted"


def test_constraints_that_cannot_be_kept_are_a_hint_at_numbers_that_broke_down():
    assert said("Step 9, time 0.018 (ps)  LINCS WARNING", "rms 0.9, max 12.1") == ("numeric", 0.35)
    assert said("Constraint algorithm: LINCS, 4 iterations")[0] == "none"


# --- What a run survives is no cause with confidence ------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    ["/var/spool/slurmd/job00071/slurm_script: line 4: env/bin/activate: No such file or directory",
     "CondaError: Run 'conda init' before 'conda activate'",
     "/var/spool/slurmd/job00071/slurm_script: line 4: pyhton: command not found"],
)  # fmt: skip
def test_a_line_that_scripts_survive_is_a_hint_where_slurm_does_not_say_that_the_job_failed(line):
    assert said(line)[1] == 0.5
    assert said(line, part=job(exit_code=1))[1] > 0.5
    assert said("ModuleNotFoundError: No module named 'torch'")[1] > 0.5


def test_a_library_that_shows_why_it_could_not_be_loaded_ends_no_program():
    trace = [START, FRAME, "    read()", "AttributeError: 'NoneType' object has no attribute 'version'"]
    hint = "Could not load the fast kernels: 'NoneType' object has no attribute 'version'"

    assert said(hint, *trace, "answer: 42")[1] <= 0.5
    assert said("Could not load the fast kernels", *trace, "answer: 42") == ("python-exception", 0.5)
    assert said("Could not load the fast kernels", *trace, part=job(exit_code=1))[1] > 0.5


def test_a_hint_about_the_set_up_of_cuda_is_no_more_than_a_hint():
    hint = "CUDA Setup failed despite a GPU being there. Run the check for more."

    assert said(hint, "answer: 42") == ("cuda-driver", 0.35)
    assert said(hint, *TRACEBACK, "KeyError: 'x'")[0] == "python-exception"


def test_tasks_that_cannot_be_laid_out_are_a_hint_at_the_request():
    line = "srun: error: Task launch for StepId=71.0 failed on node n1: Unable to layout tasks on given cpus"

    assert said(line) == ("script-error", 0.35)


# --- Logs that are cut off --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", ["", "[rank0]: ", "3: "])
def test_an_exception_counts_where_the_one_that_followed_is_cut_off(rank):
    lines = [START, FRAME, "    get()", "OSError: [Errno 101] Network is unreachable", HANDLED, START, FRAME]
    ended = [*lines, "    fit()", "ValueError: bad shape"]

    assert said(*(rank + line for line in lines)) == ("network", 0.7)
    assert said(*(rank + line for line in ended))[0] == "python-exception"


def test_a_warning_of_a_library_that_comes_again_begins_no_second_run():
    warning = "/opt/lib/a.py:63: UserWarning: old type"
    lines = [warning, "  convert(x)", *TRACEBACK, "NameError: name 'x' is not defined", warning, "  convert(x)"]

    assert said(*lines)[0] == "python-exception"


def test_a_workflows_own_mistake_is_a_hint_at_the_script():
    assert said("WorkflowError in line 7 of rules/a.smk:", "'Wildcards' has no such name")[0] == "script-error"
    assert said("the WorkflowError class is documented")[0] == "unknown"
