"""A run that met errors and went on to its end, and lines that only sound like an error."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import TRACEBACK, job, log

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.log_figures import errors

STEPS = ["epoch 1/3 loss 0.5", "epoch 2/3 loss 0.4", "epoch 3/3 loss 0.3"]
END = "model saved to out/model.pt"
CONDA = "CondaError: Run 'conda init' before 'conda activate'"
SLURM = "/var/spool/slurmd/job00071/slurm_script: line 4: "


def said(*lines, part=None):
    found = diagnose(part, (), [log(*lines)])
    return found.category, found.confidence


# --- A log alone, of a run that went on to its end --------------------------------------------------------------------

MET = [
    CONDA,
    "mesh reader: fatal: cell 12 is empty",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB",
    f"{SLURM}nvidia-smi: command not found",
    "the request timed out",
]


@pytest.mark.parametrize("line", MET)
def test_an_error_with_progress_behind_it_and_a_good_end_is_no_failure(line):
    found = diagnose(None, (), [log(line, *STEPS, END)])

    assert (found.category, found.confidence) == ("none", 0.3)
    assert found.explanation.endswith(f'The program went on behind "{line}".') or line == "the request timed out"


@pytest.mark.parametrize("line", MET[:4])
def test_without_a_good_end_or_without_progress_it_may_be_the_cause(line):
    assert said(line, *STEPS)[0] != "none"
    assert said(line, *STEPS[:2], END)[0] != "none"
    assert said(*STEPS, END, line)[0] != "none"
    assert said(*STEPS, line, END)[0] != "none"


def test_what_is_fetched_or_loaded_is_no_progress_and_no_end():
    bars = [f"Downloading part-{number}: 100%|##########| 9.1M/9.1M [00:01<00:00]" for number in range(4)]

    assert said(*TRACEBACK, "ValueError: bad row", *bars, END)[0] == "python-exception"
    assert said("mesh reader: fatal: cell 12 is empty", *STEPS, bars[0])[0] == "unknown"


def test_behind_a_word_of_the_shell_many_lines_of_any_kind_do_too():
    other = [f"sample {number} has {number} reads" for number in range(19)]

    assert said(CONDA, *other, END)[0] == "none"
    assert said(CONDA, *other[:-1], END)[0] == "module-load"
    assert said(f"{SLURM}bc: command not found", *other[:-1], END)[0] == "command-not-found"
    assert said("mesh reader: fatal: cell 12 is empty", *other, END)[0] == "unknown"


def test_what_start_up_files_and_removals_say_needs_a_good_end_alone():
    assert said("/home/ada/.bashrc: line 9: starship: command not found", "run 1 ok", END)[0] == "none"
    assert said("rm: cannot remove 'old.log': No such file or directory", "run 1 ok", END)[0] == "none"
    assert said("/home/ada/.bashrc: line 9: starship: command not found", "run 1 ok")[0] == "command-not-found"


def test_of_two_files_the_other_one_may_show_the_good_end():
    out = log(*STEPS, END, kind="stdout")

    assert diagnose(None, (), [out, log(CONDA)]).category == "none"
    assert diagnose(None, (), [log("start", kind="stdout"), log(CONDA)]).category == "module-load"
    assert diagnose(None, (), [out, log("mesh reader: fatal: cell 12 is empty")]).category == "unknown"


def test_slurms_word_that_the_job_failed_goes_before_a_good_end():
    line = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB"

    assert said(line, *STEPS, END, part=job(exit_code=1))[0] == "gpu-out-of-memory"


# --- An environment that was not activated gives way to what came later -----------------------------------------------


@pytest.mark.parametrize(
    "hint",
    [
        CONDA,
        "CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.",
        f"{SLURM}env/bin/activate: No such file or directory",
        "Thus you must initialize your shell before using activate and deactivate.",
    ],
)
@pytest.mark.parametrize(
    ("later", "category"),
    [
        ("ModuleNotFoundError: No module named 'torch'", "missing-module"),
        ("TypeError: main() takes 0 positional arguments but 1 was given", "python-exception"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "gpu-out-of-memory"),
        ("OSError: [Errno 28] No space left on device", "disk-full"),
    ],
)
def test_a_hint_of_an_environment_gives_way_to_the_exception_that_ended_the_program(hint, later, category):
    assert said(hint, *TRACEBACK, later)[0] == category
    assert said(hint, *TRACEBACK, later, part=job(exit_code=1))[0] == category
    assert said(hint)[0] == "module-load"
    assert said(hint, part=job(exit_code=1)) == ("module-load", 0.8)


def test_what_may_be_missing_for_want_of_the_environment_is_said_with_that_and_without_confidence():
    found = diagnose(None, (), [log(CONDA, *TRACEBACK, "ModuleNotFoundError: No module named 'torch'")])

    assert found.confidence == 0.5
    assert f"Before that the log shows module-load: {CONDA}." in found.explanation
    assert said(CONDA, *TRACEBACK, "KeyError: 'lr'")[1] > 0.5


def test_a_hint_of_an_environment_before_an_error_of_no_known_kind_decides_nothing():
    assert said(CONDA, "mesh reader: fatal: cell 12 is empty")[0] == "unknown"
    assert said(CONDA, *TRACEBACK) == ("python-exception", 0.35)


def test_a_module_that_could_not_be_loaded_still_explains_what_is_missing_for_it():
    unknown = 'Lmod has detected the following error: The following module(s) are unknown: "gcc/99"'

    assert said(unknown, f"{SLURM}mpirun: command not found")[0] == "module-load"
    assert (
        said("environment: line 9: /opt/lmod/libexec/lmod: No such file or directory", f"{SLURM}R: command not found")[
            0
        ]
        == "module-load"
    )
    assert (
        said("Bad: Command not found.", "ModuleCmd_Load.c(208):ERROR:105: Unable to locate a modulefile for 'x'")[0]
        == "module-load"
    )


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


# --- How loudly a line tells of an error ------------------------------------------------------------------------------

REST = [f"sample {number} has {number} reads" for number in range(5)]


@pytest.mark.parametrize(
    "line",
    [
        "two of the men were killed, police say",
        "   1  seq1      0.00%    failed      1.21%",
        "hyp: i cannot go",
        "HTTP request sent, the first one failed, the second did not",
    ],
)
def test_such_a_word_within_a_line_counts_at_the_end_of_the_log_alone(line):
    assert said(line, *REST)[0] == "none"
    assert said(line, *REST[:-1])[0] == "unknown"
    assert said(line, *REST[:2], "all samples are done")[0] == "none"


@pytest.mark.parametrize(
    "line",
    ["fatal: bad mesh in cell 12", "[10:11:12] E: mesh: failed", "solver: ERROR in cell 12", "mesh read error: cell 12",
     "*** killed by the guard", "Starting step 2 FAILED", "mesh.c:12: cannot read the next cell"],
)  # fmt: skip
def test_a_message_counts_wherever_it_stands(line):
    assert said(line, *REST)[0] == "unknown"
    assert said(line, *REST, "elapsed 12 s")[0] == "unknown"


def test_what_only_a_program_says_that_came_to_its_end_goes_before_a_message():
    line = "fatal: bad mesh in cell 12, left out"

    assert said(line, "Normal termination of the solver")[0] == "none"
    assert said(line, "Job completed successfully")[0] == "none"
    assert said(line, "At least one job did not complete successfully")[0] == "unknown"
    assert said("Normal termination of the solver", line)[0] == "unknown"
    assert said(*TRACEBACK, "KeyError: 'lr'", "Job completed successfully")[0] == "python-exception"


def test_what_is_quoted_within_a_line_is_a_hint():
    quoted = 'Q: What does "Segmentation fault (core dumped)" mean for a beginner?'

    assert said(quoted) == ("segmentation-fault", 0.35)
    assert said(f"{SLURM}812 Segmentation fault      (core dumped) ./sim")[0] == "segmentation-fault"
    assert said("A: permission denied by the tower")[0] == "unknown"


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


# --- Confidence in a log alone ----------------------------------------------------------------------------------------

FULL = "mkdir -p failed for path /home/ada/.config: [Errno 122] Disk quota exceeded: '/home/ada/.config'"


def test_a_cause_with_a_good_end_behind_it_is_said_without_confidence_where_slurm_was_not_asked():
    assert said(FULL) == ("disk-full", 0.7)
    assert said(FULL, "figure saved to a.png") == ("disk-full", 0.5)
    assert said(FULL, "figure saved to a.png", "solver: fatal: no cells")[1] > 0.5
    assert said(FULL, "figure saved to a.png", part=job(exit_code=1)) == ("disk-full", 0.8)


def test_so_is_one_with_more_lines_behind_it_than_an_end_takes():
    assert said(FULL, *(f"  #{number} 0x4f in main" for number in range(24)))[1] == 0.7
    assert said(FULL, *(f"  #{number} 0x4f in main" for number in range(25)))[1] == 0.5
    assert said(FULL, *(f"  #{number} 0x4f in main" for number in range(25)), part=job(exit_code=1))[1] == 0.8


def test_a_traceback_of_what_only_will_not_be_available_is_left_out():
    said_before = "The fused kernel is missing, some optimizations will not be enabled"

    assert said(said_before, *TRACEBACK, "ModuleNotFoundError: No module named 'triton'", "seed 42")[0] == "none"
    assert (
        said("loading the kernels", *TRACEBACK, "ModuleNotFoundError: No module named 'triton'")[0] == "missing-module"
    )


def test_a_workflows_word_about_a_job_of_its_own_is_a_hint():
    assert said("    message: SLURM-job '812' failed, SLURM status is: 'OUT_OF_MEMORY'.") == (
        "host-out-of-memory",
        0.35,
    )
    assert said("    message: SLURM-job '812' failed, SLURM status is: 'TIMEOUT'.") == ("time-limit", 0.35)
