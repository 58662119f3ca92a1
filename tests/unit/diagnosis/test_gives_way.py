"""Lines that are written around a failure, whatever it was, and give way to the cause beside them."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import TRACEBACK, log

from slurm_agent_tools.diagnosis.classify import diagnose

NOTICED = "mpirun noticed that process rank 0 with PID 77 on node cn01 exited on signal 6 (Aborted)."
DETECTED = "mpirun detected that one or more processes exited with non-zero status, thus causing"
PREFIX = "critical libmamba Cannot activate, prefix does not exist at: '/envs/train'"


def said(*lines):
    found = diagnose(None, (), [log(*lines)])
    return found.category, found.confidence


# --- Launchers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("line", [NOTICED, DETECTED, "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES"])
def test_a_launchers_word_gives_way_to_the_programs_own_message(line):
    found = diagnose(None, (), [log("reading the mesh", "--> FOAM FATAL ERROR: ", "run on one processor", line)])

    assert found.category == "unknown"
    assert "FOAM FATAL ERROR" in found.explanation
    assert said("reading the mesh", line) == ("mpi-abort", 0.4)


def test_the_programs_message_may_stand_in_the_other_file():
    out = log("reading the mesh", "mesh reader: fatal: cell 12 is empty", kind="stdout")

    assert diagnose(None, (), [out, log(NOTICED)]).category == "unknown"
    assert diagnose(None, (), [log("reading the mesh", kind="stdout"), log(NOTICED)]).category == "mpi-abort"


def test_a_message_far_before_it_does_not_count():
    rows = [f"cell {number} has 4 faces" for number in range(100)]

    assert said("mesh reader: fatal: cell 12 is empty", *rows, NOTICED)[0] == "mpi-abort"
    assert said("mesh reader: fatal: cell 12 is empty", *rows[:-1], NOTICED)[0] == "unknown"


def test_what_the_program_said_to_mpi_still_counts():
    lines = ["mesh reader: fatal: cell 12 is empty", "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD"]

    assert said(*lines)[0] == "mpi-abort"


@pytest.mark.parametrize(
    ("cause", "category"),
    [
        ("MPID_nem_tcp(31): accept of socket fd failed - Too many open files", "limit"),
        ("MPIR_Get_contextid(9): Too many communicators (0/2048 free on this process)", "limit"),
        ("[ch3:sock] rank 3 unable to connect to rank 2 using business card <port=5 >", "network"),
        (" CFL violation in cell 12", "numeric"),
    ],
)
def test_the_cause_within_an_error_stack_of_mpi_goes_before_its_frame(cause, category):
    stack = ["Fatal error in MPI_Comm_split: Other MPI error, error stack:", "MPI_Comm_split(9)...: failed", cause]

    assert said(*stack, "application called MPI_Abort(MPI_COMM_WORLD, 1) - process 0")[0] == category


def test_a_traceback_that_was_cut_off_gives_way_to_what_ranks_died_of():
    watchdog = "[E ProcessGroupNCCL.cpp:1] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1)"

    assert said(watchdog, *TRACEBACK)[0] == "nccl-timeout"
    assert said(*TRACEBACK)[0] == "python-exception"


# --- Set-up and what comes of it --------------------------------------------------------------------------------------


def test_a_prefix_that_is_not_there_gives_way_to_the_module_that_was_missing():
    found = diagnose(None, (), [log(PREFIX, *TRACEBACK, "ModuleNotFoundError: No module named 'torch'")])

    assert (found.category, found.confidence) == ("missing-module", 0.5)
    assert "Before that the log shows module-load" in found.explanation
    assert said(PREFIX)[0] == "module-load"


def test_an_older_python_comes_of_a_module_that_was_not_loaded_and_another_exception_does_not():
    unknown = "ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for 'python/3.11'"
    syntax = ['  File "train.py", line 3', "    match lr:", "SyntaxError: invalid syntax"]

    assert said(unknown, *syntax)[0] == "module-load"
    assert said(*syntax) == ("python-exception", 0.7)
    assert said(unknown, "epoch 1", *TRACEBACK, "KeyError: 'lr'")[0] == "python-exception"


def test_a_broken_module_system_goes_before_an_mpi_that_could_not_start():
    broken = 'couldn\'t read file "/opt/modules/libexec/modulecmd.tcl": no such file or directory'
    start = "but OMPI was not built with SLURM's PMI support and therefore cannot"

    assert said(broken, start)[0] == "module-load"
    assert said(start) == ("mpi-abort", 0.35)


def test_results_that_a_tool_looks_for_in_vain_come_of_the_program_that_failed():
    copy = "cp: cannot stat 'out/table.csv': No such file or directory"

    assert said(*TRACEBACK, "KeyError: 'lr'", copy) == ("python-exception", 0.5)
    assert said(copy, *TRACEBACK, "KeyError: 'lr'")[0] == "python-exception"
    assert said(copy)[0] == "missing-file"


# --- One frame, several causes ----------------------------------------------------------------------------------------


def test_a_frame_of_hdf5_says_nothing_and_its_reason_does():
    frame = "  #000: ../src/H5F.c line 509 in H5Fopen(): unable to open file"
    reason = "  #002: ../src/H5FDsec2.c line 346 in H5FD_sec2_open(): unable to open file: name = 'a.h5', errno = 2, error message = 'No such file or directory'"

    assert said("HDF5-DIAG: Error detected in HDF5 (1.10.5):", frame, "    minor: Unable to open file")[0] == "unknown"
    assert said("HDF5-DIAG: Error detected in HDF5 (1.10.5):", frame, reason)[0] == "missing-file"


def test_an_image_that_cannot_be_opened_is_named_after_the_reason():
    image = "FATAL:   could not open image /images/a.sif: "

    assert said(image + "image format not recognized")[0] == "container-start"
    assert said(image + "permission denied")[0] == "permission"
    assert said(image + "failed to retrieve path for /images/a.sif: no such file or directory")[0] == "missing-file"


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd: Exceeded step memory limit at some point.",
        "ORTE was unable to reliably start one or more daemons.",
        "It looks like MPI runtime init failed for some reason; your parallel process is",
        "[cn04:1:0:1] ib_mlx5_log.c:145  Transport retry count exceeded on mlx5_0:1/IB (synd 0x15)",
    ],
)
def test_a_line_that_may_stand_for_several_causes_is_said_without_confidence(line):
    assert said("start", line)[1] <= 0.5
    assert said("start", line)[0] not in {"none", "unknown"}


# --- Runs that ended well ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "(file out/panel.dta not found)",
        "[Task monitor] DEBUG n.p.TaskPollingMonitor - Task completed > TaskHandler[id: 4; name: A; exit: 137; error: -; w]",
        "A system call failed during shared memory initialization that should",
        "  Error:       Permission denied (errno 13)",
        "~> TaskHandler[id: 4; name: align (4); status: RUNNING; exit: -; error: -; workDir: /work/cb/09]",
        "  error [nextflow.exception.ProcessFailedException]: Process `A` terminated with an error exit status (137)",
    ],
)
def test_what_a_component_notes_and_the_program_goes_on_behind_is_no_failure(line):
    assert said("row 1", line, "row 2") == ("none", 0.3)


def test_a_probe_of_the_own_machine_needs_twenty_lines_behind_it():
    probe = "curl: (7) Failed to connect to 127.0.0.1 port 8000: Connection refused"
    rows = [f"row {number} of the table" for number in range(20)]

    assert said(probe, *rows) == ("none", 0.3)
    assert said(probe, *rows[:-1])[0] == "network"
    assert said(probe.replace("127.0.0.1", "data.example.org"), *rows)[0] == "network"


def test_the_rank_that_srun_writes_to_the_right_is_no_part_of_the_message():
    assert said("  0: forrtl: error (65): floating invalid")[0] == "numeric"
    assert said(" 12: FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'")[0] == "missing-file"
