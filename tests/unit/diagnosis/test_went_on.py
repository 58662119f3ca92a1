"""A run that met errors and went on to its end, and what a log alone lets one say of it."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import TRACEBACK, job, log

from slurm_agent_tools.diagnosis.classify import diagnose

STEPS = ["epoch 1/3 loss 0.5", "epoch 2/3 loss 0.4", "epoch 3/3 loss 0.3"]
END = "model saved to out/model.pt"
CONDA = "CondaError: Run 'conda init' before 'conda activate'"
SLURM = "/var/spool/slurmd/job00071/slurm_script: line 4: "


def rows(count):
    return [f"row {number} of the table" for number in range(count)]


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
    assert said(CONDA, *other[:4], END)[0] == "none"  # an environment that programs often do without
    assert said(CONDA, *other[:3], END)[0] == "module-load"
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


FIGURES = [
    "| Single Bit ECC Errors              | 0                                       |",
    "0 (0.00%) power spectra failed to compute",
    "  error to minimize:   RMSE",
    "- Errors of the Human Body",
    "<class 'client.exceptions.APIError'>",
    "failed=0 changed=2",
    "critical temperature 2.269",
    "failure probability 0.03",
    "Aborting criterion: 1e-6",
    "error on the training set: 12 of 500",
    "Failed to restore checkpoint. Initializing variables instead.",
    "Failed to read the cache, building it",
    "mkdir: cannot create directory 'out': File exists",
    "fatal: not a git repository (or any of the parent directories): .git",
]


@pytest.mark.parametrize("line", FIGURES)
def test_titles_figures_settings_and_what_was_done_instead_are_no_errors(line):
    assert said("start", line, "result 12") == ("none", 0.3)


def test_an_error_of_no_known_kind_says_nothing_of_the_end_when_much_was_written_behind_it():
    head, within, code = "mesh: fatal: cell 12 is empty", "the CellError of step one", "the tool ended, exit code 3"

    assert said(head, *rows(99))[0] == "unknown"
    assert said(head, *rows(100)) == ("none", 0.3)
    assert said(within, *rows(39))[0] == "unknown"
    assert said(within, *rows(40)) == ("none", 0.3)
    assert said(code, *rows(999))[0] == "unknown"
    assert said(code, *rows(1000)) == ("none", 0.3)
    assert said(head, *([""] * 200), *rows(3))[0] == "unknown"


def test_where_only_the_shell_told_of_an_error_much_that_was_written_behind_it_is_a_good_end():
    line = f"{SLURM}bc: command not found"

    assert said(line, *rows(99))[0] == "command-not-found"
    assert said(line, *rows(100)) == ("none", 0.3)
    assert said(line, *rows(100), "mesh: fatal: cell 12 is empty")[0] != "none"


@pytest.mark.parametrize(
    "line",
    [
        "Abnormal termination of program",
        "STOP 1",
        "Exiting with code 3",
        "Terminated",
        "program stopped: negative density",
        "E: Unable to resolve the tool's path",
    ],
)
def test_words_with_which_a_program_breaks_off_are_no_good_end(line):
    assert said("start", line)[0] == "unknown"


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


def test_a_folder_that_was_not_entered_gives_way_to_what_came_later():
    line = f"{SLURM}cd: /data/code: Permission denied"
    script = "python: can't open file 'train.py': [Errno 2] No such file or directory"

    assert said(line)[0] == "permission"
    assert said(line, script) == ("missing-file", 0.5)
    assert said(line, "aprun: Apid 81: Caught signal Terminated, sending to application")[0] == "cancelled"


def test_a_broken_conda_gives_way_to_what_ended_the_run_long_after():
    conda = (
        *TRACEBACK[:1],
        '  File "/opt/conda/bin/conda", line 12, in <module>',
        "ModuleNotFoundError: No module named 'conda'",
    )

    assert said(*conda, *rows(120), "MPI_ABORT was invoked on rank 8 in communicator MPI_COMM_WORLD")[0] == "mpi-abort"
    assert said(*conda)[0] == "missing-module"


def test_what_a_workflow_misses_of_a_failed_step_is_not_why_the_step_failed():
    step = "Command 'fastp -A' returned non-zero exit status 127."
    gone = "FileNotFoundError: [Errno 2] No such file or directory: '/data/.snakemake/shadow/tmp1/fastp.log'"

    assert said("Error in rule trim:", step, *TRACEBACK, gone)[0] == "command-not-found"


def test_a_module_that_was_not_loaded_explains_a_python_too_old_for_the_program():
    module = "ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for 'Anaconda3/2022.05'"

    assert said(module, "SyntaxError: invalid syntax") == ("module-load", 0.5)


def test_what_may_be_missing_for_want_of_the_environment_is_said_with_that_and_without_confidence():
    found = diagnose(None, (), [log(CONDA, *TRACEBACK, "ModuleNotFoundError: No module named 'torch'")])

    assert found.confidence == 0.5
    assert f"Before that the log shows module-load: {CONDA}." in found.explanation
    assert said(CONDA, *TRACEBACK, "KeyError: 'lr'", part=job(exit_code=1))[1] > 0.5


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


@pytest.mark.parametrize(
    "call",
    [
        " [{0}] step!(model::Grid)",
        "    @ Main ~/runs/grid.jl:{0}",
        "\tat org.example.Reader.next(Reader.java:{0})",
        '  File "grid.py", line {0}, in step',
        "#{0}  0x00007f11 in step () at grid.c:7",
    ],
)
def test_the_calls_that_an_error_brings_along_are_no_lines_of_a_run_that_went_on(call: str):
    error = "ERROR: LoadError: the grid has no cell of this kind"
    calls = [call.format(number % 90) for number in range(150)]

    assert said("start", error, *calls)[0] == "unknown"
    assert said("start", error, *calls, *rows(100))[0] == "none"
