"""A log alone whose errors are hints far from the end, chatter of a program, or none of the end's."""

from __future__ import annotations

from tests.unit.diagnosis.records import TRACEBACK, job, log

from slurm_agent_tools.diagnosis.classify import diagnose

STEPS = [f"epoch {number}/4 loss 0.5" for number in (1, 2, 3)]
LSF = ["Successfully completed.", "", "Resource usage summary:", *(f"    Figure {n} :  1.00 sec." for n in range(16))]
SHELL = "/var/spool/slurmd/job00071/slurm_script: line 4: "
UNKNOWN_MODULE = 'Lmod has detected the following error: Unable to find: "gnuplot".'


def said(*lines, part=None, beside=()):
    texts = [log(*lines), *([log(*beside, kind="stdout")] if beside else [])]
    return diagnose(part, (), texts).category


def rows(count):
    return [f"sample {number} has {number} reads" for number in range(count)]


def test_an_exception_of_which_only_the_form_is_known_needs_slurms_word_to_be_more_than_a_hint():
    lines = log(*TRACEBACK, "RuntimeError: the shapes do not fit")

    assert diagnose(None, (), [lines]).confidence == 0.5
    assert diagnose(job(exit_code=1), (), [lines]).confidence > 0.5


def test_a_hint_far_from_the_end_is_no_reason_for_it():
    hint = "the reader could not open grid.nc"

    assert said(hint) == "missing-file"
    assert said(hint, *rows(190)) == "missing-file"
    assert said(hint, *rows(210)) != "missing-file"
    assert said("FileNotFoundError: grid.nc", *rows(210)) == "missing-file"


def test_what_the_shell_said_before_a_program_made_progress_is_no_reason_for_the_end():
    missing = f"{SHELL}module: command not found"

    assert said(missing, "starting") == "module-load"
    assert said(missing, *STEPS) != "module-load"
    assert said(missing, *STEPS, part=job(exit_code=1)) == "module-load"


def test_a_message_that_a_program_writes_all_the_time_is_no_failure_where_the_log_ends_well():
    chatter = [line for number in range(60) for line in (f"Error: no group /out/{number}", f"row {number}")]
    end = "Total time: 411.7s"

    assert said("Error: 3 rows are empty", *chatter, *rows(2), end) == "none"
    assert said(*chatter, *rows(2)) == "unknown"
    assert said(*chatter[:16], *rows(2), end) == "unknown"
    assert said(*chatter, "Error: the solver gave up", *rows(2)) == "unknown"


def test_a_stack_trace_without_a_reason_is_no_good_end():
    assert said("hello", "  *** begin stack trace ***", "0   ./server(+0x2) [0x55]") == "unknown"
    assert said("hello", "Backtrace for this error:", "#0  0x7f in main") == "unknown"


def test_lsf_says_in_its_report_that_a_job_ended_well_whatever_the_program_complained_of():
    trace = ["Profiler: fatal: an event has no name"]

    assert said(*trace, beside=[*rows(3), *LSF]) == "none"
    assert said(*trace, beside=[*rows(3), *LSF[1:]]) == "unknown"
    assert said(*trace, beside=["Successfully completed.", *rows(60)]) == "unknown"


def test_much_output_in_the_other_file_shows_that_a_script_went_on_behind_what_its_shell_said():
    assert said(UNKNOWN_MODULE, beside=rows(60)) == "none"
    assert said(UNKNOWN_MODULE, beside=rows(20)) == "module-load"
    assert said(UNKNOWN_MODULE, beside=[*rows(60), "solver: fatal: no memory pool"]) != "none"


def test_an_environment_that_was_not_set_up_does_not_explain_a_script_that_python_cannot_find():
    python = "python: can't open file '/home/u/trian.py': [Errno 2] No such file or directory"

    assert said(f"{SHELL}conda: command not found", python) == "missing-file"
    assert said(f"{SHELL}module: command not found", f"{SHELL}mpirun: command not found") == "module-load"


def test_the_rows_of_a_profile_are_no_messages():
    row = "        1    0.000    0.000    0.000    0.000 _exceptions.py:116(_ArrayMemoryError)"

    assert said("   ncalls  tottime  percall", row) == "none"
    assert said(row, *TRACEBACK, "ValueError: operands could not be broadcast") == "python-exception"


def test_a_job_that_its_user_removed_from_htcondor_was_cancelled_whatever_its_log_holds():
    ended = "009 (118.000.000) 2026-03-02 15:05:19 Job was aborted."

    assert said("Exec format error", *rows(3), ended, "\tvia condor_rm (by user ada)") == "cancelled"
    assert said("005 (118.000.000) Job terminated.", "\t(1) Normal termination (return value 1)") == "unknown"
    assert said("005 (118.000.000) Job terminated.", "\t(1) Normal termination (return value 0)") == "none"


STOP = "slurmstepd: error: *** STEP 71.0 ON cn03 CANCELLED AT 2026-03-01T12:25:00 ***"


def test_what_a_program_says_when_its_step_was_cancelled_is_no_cause_of_that():
    ended = "srun: error: cn03: task 0: Exited with exit code 1"

    assert said("listening", STOP, *TRACEBACK, "TimeoutError: Operation timed out", ended) == "cancelled"
    assert said("listening", *TRACEBACK, "TimeoutError: Operation timed out", STOP, ended) == "python-exception"
    assert said("solver: fatal: cell 12 is empty", STOP, *TRACEBACK, "TimeoutError: late") == "python-exception"
    assert said(ended, STOP, *TRACEBACK, "TimeoutError: late") == "python-exception"
    assert said("listening", STOP, "ModuleNotFoundError: No module named 'torch'") == "missing-module"
