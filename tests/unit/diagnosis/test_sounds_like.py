"""Lines that only sound like an error, and what is printed on a good day too."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import TRACEBACK, log

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.log_figures import errors

SLURM = "/var/spool/slurmd/job00071/slurm_script: line 4: "


def said(*lines):
    found = diagnose(None, (), [log(*lines)])
    return found.category, found.confidence


# --- Lines that only sound like an error ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "The people who were killed in the flood could not be counted, said the mayor of the town on Monday",
        "[{'question': 'which error did the captain make', 'answer': 'he could not find the harbour in the fog'}]",
        '{"id": 4, "text": "the engine failed and permission was denied by the tower", "label": "accident"}',
        "1204\tthe pump failed\t0\t1\tkilled by frost",
        "+ grep -c 'out of memory' run.log",
        "retries on TimeoutError and FileNotFoundError are off",
        "train error: 0.12, test error: 0.15 (best)",
        "max error 1e-3, L2 error norm below the tolerance",
        "Residual standard error: 0.41 on 98 degrees of freedom",
        "on_error=raise, errors: none, log in job.error",
        "[a1/b2c3d4] process > ALIGN (3) [100%] 4 of 4, failed: 1, retries: 1",
        "could not remove scratch/x.tmp: No such file or directory",
        "slurmstepd: error: Unable to create TMPDIR [/tmp/ada]: Permission denied",
        "wandb: ERROR Error while calling W&B API: internal error (<Response [502]>)",
        "Chain 1: Exception: normal_lpdf: Scale parameter is 0! (in 'model', line 12, column 2 to column 20)",
        "Time step 9: time step continuity errors : sum local = 1e-08, global = 1e-10, cumulative = 4e-07",
    ],
)
def test_prose_data_figures_and_what_is_usual_leave_it_at_nothing(line):
    assert said("reading input", line) == ("none", 0.3)


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("ERROR: the file of the first run could not be read by the reader that is used for it", "unknown"),
        ('{"level": "error", "msg": "the solver of the first block failed and cannot go on with it"}', "unknown"),
        ("[a1/b2c3d4] process > ALIGN (3) [ 25%] 4 of 16, failed: 1", "unknown"),
        ("skipping the rest: FileNotFoundError", "none"),
        ("it ended with FileNotFoundError", "missing-file"),
        ("wandb: ERROR Error while calling W&B API: permission denied (<Response [403]>)", "permission"),
        ("forrtl: severe (24): end-of-file during read, unit 10, file /data/restart.dat", "unknown"),
        ("forrtl: severe (59): list-directed I/O syntax error, unit 11, file /data/grid.txt", "unknown"),
        ("Fortran runtime error: Bad integer for item 1 in list input", "unknown"),
        ("make: *** No rule to make target 'a.o'.  Stop.", "unknown"),
        ("thread 'main' panicked at src/main.rs:12:20:", "unknown"),
        ("Fehler in lm.fit(x): leere Matrix", "unknown"),
    ],
)  # fmt: skip
def test_what_reads_like_them_and_is_an_error_is_not_left_out(line, category):
    assert said("reading input", line)[0] == category


def test_a_sentence_that_names_a_failure_is_a_hint_at_most():
    line = "The reader of the second block said that there was no space left on device and that it would not write the rest of it"

    assert said(line) == ("disk-full", 0.35)
    assert said("OSError: [Errno 28] No space left on device")[1] > 0.5


def test_an_exception_that_was_ignored_is_no_error_of_the_log():
    ignored = log(
        "accuracy 0.91",
        "Exception ignored in: <function Pool.__del__ at 0x7f12>",
        *TRACEBACK,
        "AssertionError: can only test a child",
    )

    assert diagnose(None, (), [ignored]).category == "none"
    assert errors([ignored]) == []
    assert said(*TRACEBACK, "AssertionError: can only test a child")[0] == "python-exception"


# --- Which line, where several speak ----------------------------------------------------------------------------------


def test_an_exception_about_a_value_is_no_missing_file():
    assert said(*TRACEBACK, "ValueError: Could not find a format for the image")[0] == "python-exception"
    assert said(*TRACEBACK, "OSError: Could not find the weights")[0] == "missing-file"


def test_a_hook_of_the_containers_start_that_crashed_is_the_start_that_failed():
    hook = "slurmstepd: error: pyxis:          812 Segmentation fault      (core dumped) | pwck -R /x"
    start = "slurmstepd: error: pyxis: container start failed with error code: 1"

    assert said(start, hook)[0] == "container-start"
    assert said(f"3: {start}", f"3: {hook}")[0] == "container-start"
    assert (
        said("3: slurmstepd: error: pyxis:     [ERROR] No such file or directory: /images/a.sqsh")[0] == "missing-file"
    )
    assert (
        said("slurmstepd: error: pyxis:     mkdir: cannot create directory '/run/enroot': No space left on device")[0]
        == "disk-full"
    )


def test_a_clear_cause_behind_a_container_that_did_not_start_is_said_without_confidence():
    start = "FATAL:   container creation failed: mount source /data does not fit"

    category, confidence = said(start, "runner - ERROR - FileNotFoundError: step 3")
    assert (category, confidence) == ("missing-file", 0.5)


def test_a_last_run_that_has_only_begun_leaves_the_one_before_it_to_be_judged():
    head = ["loading module python/3.11", "loading module cuda/12.1"]
    run = [*head, *TRACEBACK, "KeyError: 'lr'"]

    assert said(*run, *run, *head)[0] == "python-exception"
    assert said(*run, *head, "reading input", "all done")[0] == "none"
    assert said(*run, *head, *TRACEBACK, "IndexError: 4")[0] == "python-exception"


def test_a_number_of_numeric_trouble_that_is_marked_as_a_warning_is_a_hint():
    assert said("WARNING: Input X contains NaN.") == ("numeric", 0.35)
    assert said("ValueError: Input X contains NaN.")[1] > 0.5


# --- What is printed on a good day and matches what would be a clear cause --------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "sigFpe : Enabling floating point exception trapping (FOAM_SIGFPE).",
        "Installing handlers for SIGSEGV SIGFPE SIGBUS",
        "data contains NaN: False",
        "libcuda.so.1: cannot open shared object file: No such file or directory",
        "xauth:  file /home/ada/.Xauthority does not exist",
        "scancel: error: Kill job error on job id 812: Invalid job id specified",
        "[h264 @ 0x55d0] error while decoding MB 4 7, bytestream -5",
    ],
)
def test_it_leaves_it_at_nothing(line):
    assert said("reading input", line) == ("none", 0.3)


@pytest.mark.parametrize(
    ("line", "category", "confidence"),
    [
        ("mbind: Operation not permitted", "permission", 0.35),
        (
            "'[Errno 101] Network is unreachable' thrown while requesting HEAD https://hub.example.org/a",
            "network",
            0.35,
        ),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", "cuda-driver", 0.5),
        ("curl: (6) Could not resolve host: hooks.example.org", "network", 0.5),
        ("   90122    batch   stage2      ada PD       0:00      1 (QOSMaxCpuPerUserLimit)", "limit", 0.35),
        ("setsockopt: Invalid argument", "unknown", 0.1),
    ],
)
def test_or_it_is_a_hint(line, category, confidence):
    assert said("reading input", line) == (category, confidence)


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("Program received signal SIGFPE: Floating-point exception", "numeric"),
        ("ValueError: data contains NaN", "numeric"),
        ("ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", "shared-library"),
        ("PermissionError: [Errno 1] Operation not permitted: '/dev/x'", "permission"),
        ("prog: invalid argument 'x' for '--mode'", "script-error"),
    ],
)
def test_what_differs_from_it_by_little_is_a_cause(line, category):
    found, confidence = said(line)

    assert found == category
    assert confidence > 0.5


def test_a_thread_that_only_pins_memory_dies_with_the_program_and_is_no_cause():
    thread = "Exception in thread Thread-4 (_pin_memory_loop):"

    assert (
        said("test accuracy 0.9", thread, *TRACEBACK, "ConnectionResetError: [Errno 104] Connection reset by peer")[0]
        == "none"
    )
    assert said(thread, *TRACEBACK, "EOFError", *TRACEBACK, "KeyError: 'lr'")[0] == "python-exception"


def test_a_class_that_names_a_failure_counts_as_one_without_error_in_its_name():
    assert (
        said("concurrent.futures.process.BrokenProcessPool: A process was ended while the future was running")[0]
        == "unknown"
    )
    assert said("protocols.jd2.JobDistributor: 4 jobs attempted")[0] == "none"


@pytest.mark.parametrize(
    "line",
    [
        "ERROR: no space in the table",
        "error: no such key: lr",
        "failed: off the grid in cell 4",
        "Error: 0.5 of the cells are empty, exception raised",
    ],
)
def test_a_message_that_begins_like_a_figure_is_an_error(line):
    assert said("reading input", line)[0] == "unknown"
    assert errors([log("reading input", line)])
