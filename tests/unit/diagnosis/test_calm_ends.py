"""Good runs with bad words in them, ends that somebody wanted, and errors behind a success that Slurm recorded."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import job, log

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.excerpt import last_run

STEPS = ["epoch 1/3 loss 0.5", "epoch 2/3 loss 0.4", "epoch 3/3 loss 0.3"]
ROWS = [f"row {number} of the table" for number in range(60)]


def said(*lines, part=None):
    found = diagnose(part, (), [log(*lines)])
    return found.category, found.confidence


# --- Good runs --------------------------------------------------------------------------------------------------------

ENDS = [
    "  **** **** ******  **  PROGRAM ENDED AT                 2026-03-13 07:03:43.388",
    "PROGRAM MAIN: Execution ended Normally",
    "d01 2026-03-04_06:00:00 wrf: SUCCESS COMPLETE WRF",
    "Finalising parallel run",
    "Total wall time: 0:12:31",
    "WallClock: 512.2  CPUTime: 511.9  Memory: 812.4 MB",
    "Finished mdrun on rank 0 Wed Mar  4 22:15:00 2026",
    "`Trainer.fit` stopped: `max_epochs=3` reached.",
]


@pytest.mark.parametrize("end", ENDS)
def test_what_only_a_program_says_that_came_to_its_end_outweighs_an_error_before(end):
    assert said("ERROR: cell 12 has no volume", "read the next cell", end) == ("none", 0.3)
    assert said("read the next cell", end, "ERROR: cell 12 has no volume")[0] == "unknown"


def test_the_folder_in_which_a_program_stopped_is_no_stop():
    end = "  **** **  *******  **  PROGRAM STOPPED IN /scratch/ada/run"
    assert said(*ROWS, ENDS[0], end) == ("none", 0.3)
    assert said(*ROWS, "PROGRAM STOPPED because of the mesh")[0] == "unknown"


def test_what_a_program_marks_as_skipped_is_no_failure():
    skipped = "[skip] Failed to load tsp50.ckpt: the checkpoint names device 7"
    assert said(*ROWS, skipped, "Saved the table to out.csv") == ("none", 0.3)
    assert said(*ROWS, skipped.removeprefix("[skip] "))[0] == "unknown"


def test_a_node_without_the_library_of_gpus_is_no_failure():
    assert said("Failed to initialize NVML: N/A", "predicting", "Done") == ("none", 0.3)
    assert said("Failed to initialize NVML: Driver/library version mismatch", "predicting")[0] == "cuda-driver"


def test_root_goes_on_behind_what_it_calls_an_error():
    error = "Error in <TNetXNGFile::Open>: [ERROR] Server responded with an error: [3014] Unable to open file /store/a"
    assert said(error, *ROWS, *ROWS, "Processing complete.") == ("none", 0.3)
    assert said(*ROWS, error)[0] == "missing-file"


@pytest.mark.parametrize(
    "line",
    [
        "/var/spool/slurmd/job00071/slurm_script: line 4: /home/ada/conda/bin/activate: Permission denied",
        "CondaError: Run 'conda init' before 'conda activate'",
    ],
)
def test_a_log_that_breaks_off_behind_an_environment_that_was_not_activated_names_no_cause(line):
    assert said(line, *ROWS[:5])[0] == "unknown"
    assert said(line, *ROWS[:4])[0] != "unknown"
    assert said(line, *ROWS[:5], "Saved the table to out.csv") == ("none", 0.3)
    assert said(line, *ROWS[:3], "Saved the table to out.csv")[0] != "none"
    assert said(line, *ROWS[:5], "Segmentation fault (core dumped)")[0] == "segmentation-fault"


def test_the_help_that_conda_prints_is_no_work_of_a_program():
    told = "CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'."
    shells = ["", "Currently supported shells are:", "  - bash", "  - fish", "  - tcsh", "  - zsh"]
    advice = ["See 'conda init --help' for more information and options.", "    $ conda init <SHELL_NAME>"]
    assert said(told, "To initialize your shell, run", *shells, *advice) == ("module-load", 0.5)


# --- Ends that somebody wanted ----------------------------------------------------------------------------------------

STOPPED = [
    "mpiexec noticed that process rank 3 with PID 41 on node cn07 exited on signal 15 (Terminated).",
    "cn07.cluster: rank 0 died from signal 15",
    "[2026-03-04 22:15:00,815] [INFO] [launch.py:324:sigkill_handler] Main process received SIGINT, exiting",
    "Terminating processes on user request, this might take some time.",
]


@pytest.mark.parametrize("line", STOPPED)
def test_a_process_that_was_told_to_end_may_have_been_cancelled(line):
    assert said(*STEPS, line) == ("cancelled", 0.3)


def test_the_launchers_word_of_the_other_processes_does_not_hide_that_one_was_told_to_end():
    around = ["Primary job  terminated normally, but 1 process returned", "a non-zero exit code."]
    assert said(*STEPS, *around, STOPPED[0]) == ("cancelled", 0.3)
    assert said(*STEPS, *around)[0] != "cancelled"


def test_what_ended_a_process_before_goes_before_that_the_others_were_ended():
    assert said("Segmentation fault (core dumped)", STOPPED[0])[0] == "segmentation-fault"
    assert said("MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD", STOPPED[0])[0] == "mpi-abort"


# --- What stands for a cause ------------------------------------------------------------------------------------------


def test_one_guess_among_several_is_no_segmentation_fault():
    guess = (
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. Some common"
        " causes include: (1) the process was killed by the OOM killer, (3) the worker crashed due to SIGSEGV"
    )
    assert said("ray.exceptions.ActorUnavailableError: Socket closed", guess)[0] != "segmentation-fault"


def test_a_full_gpu_that_nccl_met_goes_before_that_the_processes_lost_each_other():
    nccl = "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.cpp:81, unhandled cuda error"
    assert said(nccl, "ncclUnhandledCudaError: Call to CUDA function failed.")[0] == "nccl-timeout"
    assert said(nccl, "Failed to CUDA calloc 6291456 bytes") == ("gpu-out-of-memory", 0.35)


def test_hydras_words_stand_for_the_exception_of_a_program():
    hydra = ["Error in call to target 'ada.models.Encoder':", "AttributeError(\"'NoneType' object has no 'values'\")"]
    assert said("Error executing job with overrides: ['mode=train']", *hydra) == ("python-exception", 0.35)
    assert said(hydra[1])[0] == "python-exception"


def test_a_syntax_error_goes_before_an_environment_that_was_not_found():
    lines = [
        "Could not find conda environment: torch",
        '  File "a.py", line 7',
        "    x = (",
        "SyntaxError: invalid syntax",
    ]
    assert said(*lines)[0] == "python-exception"


def test_what_small_tools_do_not_find_is_at_most_half_sure():
    assert said("gzip: out/popsize_2000.txt: No such file or directory") == ("missing-file", 0.5)


def test_a_job_that_was_held_for_its_memory_was_short_of_it():
    line = "\tJob in status 2 put on hold by SYSTEM_PERIODIC_HOLD due to memory usage 32500000."
    assert said(line)[0] == "host-out-of-memory"


def test_errors_of_mpi_that_are_fatal_are_told_where_only_their_help_was_named():
    assert said("[cn07:11] 1 more process has sent help message help-mpi-errors.txt / mpi_errors_are_fatal") == (
        "mpi-abort",
        0.3,
    )


def test_a_second_job_that_wrote_nothing_itself_into_the_file_hides_no_error():
    ends = [
        "srun: error: cn07: task 0: Exited with exit code 1",
        "srun: Terminating StepId=81.0",
        "srun: error: cn08: task 0: Exited with exit code 1",
        "srun: Terminating StepId=82.0",
    ]
    assert len(last_run(log("TabError: inconsistent use of tabs", *ends)).lines) == 5
    assert [line.text for line in last_run(log(*ends[:2], "hello", *ends[2:])).lines] == ["hello", *ends[2:]]
    assert said("TabError: inconsistent use of tabs and spaces in indentation", *ends)[0] == "python-exception"


# --- Slurm recorded a success -----------------------------------------------------------------------------------------


def test_an_error_at_the_end_of_a_job_that_slurm_calls_completed_tells_both_sides():
    good = job("COMPLETED", exit_code=0)
    found = diagnose(good, (), [log(*ROWS, "Error: object 'res' not found", "Execution halted")])
    assert (found.category, found.confidence, found.escalation) == ("none", 0.5, "none")
    assert "completed with exit code 0" in found.explanation
    assert "One of them is at the end: \"Error: object 'res' not found\"." in found.explanation

    named = diagnose(good, (), [log(*ROWS, "ModuleNotFoundError: No module named 'pandas'")])
    assert named.confidence == 0.5
    assert "at the end (missing-module: ModuleNotFoundError: No module named 'pandas')" in named.explanation


def test_an_error_behind_which_a_program_went_on_in_a_job_that_slurm_calls_completed_is_only_shown():
    caught = ["Traceback (most recent call last):", '  File "load.py", line 4, in <module>', '    open("optional.cfg")']
    caught += ["FileNotFoundError: [Errno 2] No such file or directory: 'optional.cfg'"]
    report = ["##########", "State    : COMPLETED", "ExitCode : 0:0"]
    good = job("COMPLETED", exit_code=0)

    went_on = diagnose(good, (), [log(*caught, "accuracy: 0.91")])
    assert (went_on.category, went_on.confidence) == ("none", 0.6)
    assert "at the end" not in went_on.explanation
    assert diagnose(good, (), [log(*caught, "", *report)]).confidence == 0.5
    assert diagnose(good, (), [log("accuracy: 0.91"), log(*caught)]).confidence == 0.5


def test_an_error_far_from_the_end_of_a_job_that_slurm_calls_completed_is_only_shown():
    found = diagnose(job("COMPLETED", exit_code=0), (), [log("Error: object 'res' not found", *ROWS)])
    assert (found.category, found.confidence) == ("none", 0.6)
    assert "at the end" not in found.explanation


# --- What a log alone says of lines that are often something else -----------------------------------------------------

SURVIVED = [
    ("Error: cannot open file 'mesh.dat': No such file or directory", "missing-file"),
    ("mkdir: cannot create directory '/archive/a': Permission denied", "permission"),
    ("curl: (6) Could not resolve host: data.example.org", "network"),
    ("There are not enough slots available in the system to satisfy the 8 slots", "mpi-abort"),
    ("RuntimeError: No CUDA GPUs are available", "cuda-driver"),
]


@pytest.mark.parametrize(("line", "category"), SURVIVED)
def test_a_line_that_a_script_may_survive_is_at_most_half_sure_until_slurm_calls_the_job_failed(line, category):
    assert said(line) == (category, 0.5)
    failed = said(line, part=job("FAILED", exit_code=1))
    assert failed[0] == category
    assert failed[1] > 0.5


def test_an_exception_that_ended_the_program_is_more_than_a_line():
    lines = ["Traceback (most recent call last):", '  File "a.py", line 7, in <module>', "    open(name)"]
    assert said(*lines, "FileNotFoundError: [Errno 2] No such file or directory: 'a.csv'") == ("missing-file", 0.7)
