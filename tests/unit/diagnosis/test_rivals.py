"""Between several causes: which goes before which, and what is only a hint."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import GIB, MIB, TRACEBACK, job, log, step

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Node


def test_a_node_that_went_down_later_is_not_the_cause_of_a_crash():
    gone = Node("gpu01", "down*", ("gpu",), 8, None, 0, None, 0, None, reason="Not responding")

    assert diagnose(job(signal=11), (), (), [gone]).category == "segmentation-fault"
    assert diagnose(job(exit_code=1), (), (), [gone]).category == "unknown"


def test_a_node_that_is_down_is_named_where_nothing_else_is():
    gone = Node("gpu01", "down*", ("gpu",), 8, None, 0, None, 0, None, reason="Not responding")

    found = diagnose(job(signal=9), (), (), [gone])

    assert found.category == "node-failure"
    assert "gpu01: down* (Not responding)" in " ".join(line.text for line in found.evidence)
    assert diagnose(job(exit_code=1), (), [log("ModuleNotFoundError: No module named x")], [gone]).category == (
        "missing-module"
    )


def test_a_kill_far_below_the_request_is_not_taken_for_memory():
    part = job(signal=9, steps=(step("batch", "FAILED", signal=9, max_rss_bytes=2 * GIB),))
    killed = log("/var/spool/slurmd/job71/slurm_script: line 4: 311 Killed   ./sim")

    assert diagnose(part, (), [killed]).category == "unknown"
    assert diagnose(job(signal=9), (), [killed]).category == "host-out-of-memory"


def test_one_generic_line_is_never_said_with_confidence():
    assert diagnose(job(exit_code=137), (), [log("Killed")]).confidence <= 0.5
    assert diagnose(job(exit_code=1), (), [log("loss: nan")]).confidence <= 0.5


def test_a_set_up_that_failed_explains_what_is_missing_later():
    lines = ["/s: line 3: module: command not found", "/s: line 9: gmx: command not found"]

    assert diagnose(job(exit_code=127), (), [log(*lines)]).category == "module-load"
    assert (
        diagnose(job(exit_code=1), (), [log(lines[0], *TRACEBACK, "ModuleNotFoundError: No module named 'x'")]).category
        == "module-load"
    )


def test_what_a_script_went_on_after_gives_way_to_the_exception_that_ended_it():
    lines = ["ls: cannot access 'last.ckpt': No such file or directory", "starting anew", *TRACEBACK, "KeyError: 'lr'"]

    assert diagnose(job(exit_code=1), (), [log(*lines)]).category == "python-exception"


def test_two_clear_causes_side_by_side_are_both_told_with_less_confidence():
    lines = ["OSError: [Errno 28] No space left on device: 'a'", "RuntimeError: CUDA error: out of memory"]

    found = diagnose(job(exit_code=1), (), [log(*lines)])

    assert found.category == "disk-full"
    assert "gpu-out-of-memory" in found.explanation
    assert found.confidence <= 0.5


def test_progress_after_an_error_shows_that_the_program_went_on():
    lines = ["curl: (6) Could not resolve host: example.org", *(f"epoch {number}/9" for number in range(5))]

    assert diagnose(job(exit_code=7), (), [log(*lines)]).confidence < 0.5
    found = diagnose(job(exit_code=1), (), [log(*lines, "./sim: Segmentation fault")])
    assert (found.category, found.confidence > 0.5) == ("segmentation-fault", True)


@pytest.mark.proves("root-cause-first")
def test_torchruns_summary_tells_which_of_several_ranks_failed_first():
    lines = [f"[rank{rank}]: {line}" for rank in (0, 3) for line in (*TRACEBACK, f"ValueError: from {rank}")]
    lines += ["Root Cause (first observed failure):", "[0]:", "  time      : 2026-03-01_12:00:00",
              "  host      : gpu01", "  rank      : 3 (local_rank: 3)"]  # fmt: skip

    assert "from 3" in diagnose(job(exit_code=1), (), [log(*lines)]).explanation


def test_a_summary_of_a_launcher_alone_decides_nothing():
    text = log(*TRACEBACK, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:", "train.py FAILED")

    assert diagnose(job(exit_code=1), (), [text]).category == "unknown"


def test_a_time_limit_after_a_breakdown_is_said_with_less_confidence():
    broke = log(*TRACEBACK, "RuntimeError: CUDA error: out of memory")

    assert diagnose(job("TIMEOUT"), (), [broke]).confidence <= 0.5
    assert diagnose(job("TIMEOUT"), (), [log("epoch 3/9")]).confidence >= 0.9


def test_the_time_limit_itself_is_not_shown_as_another_cause():
    text = log("slurmstepd: error: *** STEP 71.0 ON gpu01 CANCELLED AT 2026-03-01T12:25:00 DUE TO TIME LIMIT ***",
               *TRACEBACK, "KeyboardInterrupt")  # fmt: skip

    found = diagnose(job("TIMEOUT", resources=Resources(time_limit_seconds=600)), (), [text])

    assert (found.category, found.confidence) == ("time-limit", 0.95)
    assert "also shows" not in found.explanation


def test_what_slurm_said_of_an_earlier_run_in_the_same_file_does_not_decide():
    ended = "slurmstepd: error: *** JOB 71 ON gpu01 CANCELLED AT 2026-03-01T12:25:00 DUE TO TIME LIMIT ***"
    lines = [ended, *(f"epoch {number}/90" for number in range(30)), *TRACEBACK, "KeyError: 'lr'"]

    assert diagnose(job(exit_code=1), (), [log(*lines)]).category == "python-exception"
    assert diagnose(job("TIMEOUT"), (), [log(*lines)]).category == "time-limit"


def test_the_line_that_decides_is_named_where_nothing_else_in_the_explanation_does():
    line = "train.py: error: unrecognized arguments: --learning-rate 0.1"

    assert f'The log says: "{line}".' in diagnose(job(exit_code=2), (), [log(line)]).explanation
    named = diagnose(job(exit_code=1), (), [log("ModuleNotFoundError: No module named 'x'")])
    assert "The log says" not in named.explanation


def test_memory_is_told_as_in_the_report_beside_what_the_largest_task_had():
    steps = (step("batch", "FAILED", max_rss_bytes=MIB), step("0", "FAILED", max_rss_bytes=GIB, tasks=4))
    shown = diagnose(job(exit_code=1, steps=steps), (), ()).evidence[0].text

    assert "ran 00:20:00, limit 02:00:00, peak memory 4G of 16G, largest task 1G" in shown


def test_nobody_is_sent_to_ask_the_jobs_own_user():
    own = diagnose(job("CANCELLED", user="ada", cancelled_by="ada"), (), ())
    other = diagnose(job("CANCELLED", user="ada", cancelled_by="root"), (), ())

    assert not any("ask who" in text for text in own.suggestions)
    assert any("ask who" in text for text in other.suggestions)


def test_a_warning_that_a_port_could_not_be_bound_counts_only_where_nothing_else_is_there():
    line = "[W socket.cpp:402] [c10d] The server socket has failed to bind to 0.0.0.0:29511 (errno: 98)."
    alone = diagnose(job(exit_code=1), (), [log(line)])
    beside = diagnose(job(exit_code=1), (), [log(line, *TRACEBACK, "RuntimeError: CUDA error: out of memory")])

    assert (alone.category, alone.confidence <= 0.4) == ("port-in-use", True)
    assert beside.category == "gpu-out-of-memory"


def test_a_warning_with_tensorflows_summary_of_allocations_is_a_full_gpu():
    line = "W tensorflow/core/bfc.cc:99] Allocator (GPU_1_bfc) ran out of memory trying to allocate 3.00GiB."

    found = diagnose(job(exit_code=1), (), [log(line + "  Current allocation summary follows.")])

    assert found.category == "gpu-out-of-memory"


def test_what_slurm_says_of_its_own_files_is_no_cause():
    lines = ["slurmstepd: error: _is_a_lwp: open() /proc/4021/status failed: No such file or directory",
             "slurmstepd: error: rmdir(/sys/fs/cgroup/memory/slurm/uid_7/job_9): No such file or directory"]  # fmt: skip

    assert diagnose(job(exit_code=1), (), [log(*lines)]).category == "unknown"


@pytest.mark.parametrize(
    ("shell", "category"), [("/opt/R/Rscript", "command-not-found"), ("/bin/sh^M", "script-error")]
)
def test_an_interpreter_that_is_not_there_is_no_missing_file(shell, category):
    text = log(f"run.sh: {shell}: bad interpreter: No such file or directory")

    assert diagnose(job(exit_code=126), (), [text]).category == category
