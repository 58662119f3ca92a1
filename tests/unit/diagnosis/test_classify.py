from __future__ import annotations

import pytest
from tests.unit.counting import counted
from tests.unit.diagnosis.records import GIB, MIB, NOON, TRACEBACK, job, log, step

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.log_figures import errors, metrics, warnings
from slurm_agent_tools.units import JobId

CALLS = 4_000_000  # twice of what it takes


@pytest.mark.parametrize(
    ("record", "category"),
    [
        (job("OUT_OF_MEMORY", signal=125), "host-out-of-memory"),
        (job("FAILED", exit_code=1, steps=(step("0", "OUT_OF_MEMORY", signal=125),)), "host-out-of-memory"),
        (job("TIMEOUT", steps=(step("batch", "CANCELLED", signal=15),)), "time-limit"),
        (job("DEADLINE"), "deadline"),
        (job("CANCELLED", cancelled_by="ada"), "cancelled"),
        (job("PREEMPTED"), "preempted"),
        (job("NODE_FAIL"), "node-failure"),
        (job("BOOT_FAIL"), "node-failure"),
        (job("FAILED", signal=11, exit_code=0), "segmentation-fault"),
        (job("FAILED", exit_code=139), "segmentation-fault"),
        (job("FAILED", exit_code=127), "command-not-found"),
        (job("FAILED", exit_code=126), "permission"),
        (job("FAILED", exit_code=0, signal=53), "missing-file"),
        (job("CANCELLED", started=None, reason="DependencyNeverSatisfied"), "dependency"),
        (job("PENDING", started=None, reason="DependencyNeverSatisfied"), "dependency"),
        (job("PENDING", started=None, reason="QOSMaxJobsPerUserLimit"), "limit"),
        (job("PENDING", started=None, reason="AssocGrpGRES"), "limit"),
        (job("PENDING", started=None, reason="Licenses"), "license"),
        (job("PENDING", started=None, reason="ReqNodeNotAvail, UnavailableNodes:gpu02"), "node-unavailable"),
        (job("PENDING", started=None, reason="launch failed requeued held"), "node-failure"),
        (job("PENDING", started=None, reason="Resources"), "none"),
        (job("RUNNING", ended=None), "none"),
        (job("COMPLETED", exit_code=0), "none"),
        (job("FAILED", exit_code=7), "unknown"),
        (job("FAILED", signal=9), "unknown"),
        (job("FAILED", signal=7), "bus-error"),
        (job("FAILED", signal=8), "numeric"),
        (job("FAILED", exit_code=1, reason="NodeDown"), "node-failure"),
        (job("FAILED", exit_code=1, reason="OutOfMemory"), "host-out-of-memory"),
        (job("FAILED", signal=15, elapsed_seconds=7200), "time-limit"),
        (job("FAILED", signal=15, elapsed_seconds=600), "unknown"),
        (job("CANCELLED", started=None, reason="QOSMaxJobsPerUserLimit"), "cancelled"),
        (job("UNKNOWN"), "unknown"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_slurms_records_alone_give_the_category_or_unknown(record, category):
    found = diagnose(record, (), ())

    assert found.category == category
    assert found.retry is False
    if category == "unknown":
        assert found.confidence < 0.3


@pytest.mark.proves("memory-kill-is-named")
def test_a_job_killed_by_the_sampled_memory_limit_is_named_so_where_slurm_says_failed():
    record = job(signal=9, exit_code=0, steps=(step("0", "CANCELLED", signal=9),))
    text = log("slurmstepd: error: Step 71.0 exceeded memory limit (139264 > 102400), being killed",
               "slurmstepd: error: *** STEP 71.0 ON gpu01 CANCELLED AT 2026-03-01T12:25:00 ***")  # fmt: skip

    found = diagnose(record, (), [text])

    assert found.category == "host-out-of-memory"
    assert found.confidence > 0.9
    assert found.proposed_change == "#SBATCH --mem=20G"


@pytest.mark.proves("memory-kill-is-named")
def test_a_kill_at_full_memory_is_named_without_any_log():
    record = job(signal=9, steps=(step("batch", "FAILED", signal=9, max_rss_bytes=16 * GIB - 5 * MIB),))

    assert diagnose(record, (), ()).category == "host-out-of-memory"


def test_the_enlarged_request_is_proposed_as_one_exact_line():
    gpus = job("OUT_OF_MEMORY")
    object.__setattr__(gpus, "resources", gpus.resources.__class__(gpus=2, memory_per_gpu_bytes=16 * GIB))
    small = job("OUT_OF_MEMORY")
    object.__setattr__(small, "resources", small.resources.__class__(nodes=1, memory_per_node_bytes=100 * MIB))
    unknown = job("OUT_OF_MEMORY")
    object.__setattr__(unknown, "resources", unknown.resources.__class__())

    assert diagnose(gpus, (), ()).proposed_change == "#SBATCH --mem-per-gpu=20G"
    assert diagnose(small, (), ()).proposed_change == "#SBATCH --mem=120M"
    assert diagnose(unknown, (), ()).proposed_change is None
    assert diagnose(job("TIMEOUT"), (), ()).proposed_change == "#SBATCH --time=03:00:00"
    assert diagnose(job("CANCELLED"), (), ()).proposed_change is None


def test_a_reason_for_waiting_that_accounting_kept_is_not_why_a_job_failed():
    record = job(exit_code=7, reason="QOSMaxJobsPerUserLimit")

    assert diagnose(record, (), ()).category == "unknown"


def test_unknown_shows_the_best_lines_instead_of_a_guess():
    found = diagnose(job(exit_code=7), (), [log("boom"), log("epoch 1", kind="stdout")])

    assert found.category == "unknown"
    assert [line.text for line in found.evidence][-2:] == ["boom", "epoch 1"]


def test_an_exception_names_its_type_and_the_innermost_frame_of_the_users_own_file():
    found = diagnose(job(exit_code=1), (), [log(*TRACEBACK, "ValueError: bad shape (3, 4)")])

    assert found.category == "python-exception"
    assert "ValueError: bad shape (3, 4) at /home/u/train.py line 42" in found.explanation
    assert [line.line for line in found.evidence[:2]] == [6, 2]


@pytest.mark.proves("root-cause-first")
def test_the_cause_is_the_first_rank_that_failed_not_those_that_died_of_it():
    lines = [f"[rank2]: {line}" for line in (*TRACEBACK, "torch.cuda.OutOfMemoryError: CUDA out of memory.")]
    lines += [f"[rank0]: {line}" for line in (*TRACEBACK, "torch.distributed.DistBackendError: NCCL error in: x.cpp")]
    lines += [*TRACEBACK, "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED"]
    lines += ["srun: error: gpu01: tasks 0-3: Exited with exit code 1"]

    found = diagnose(job(exit_code=1), (), [log(*lines)])

    assert found.category == "gpu-out-of-memory"
    assert found.evidence[0].line == 6


def test_interleaved_ranks_keep_their_own_tracebacks():
    lines = [f"[rank{rank}]: {line}" for line in (*TRACEBACK, "KeyError: 'x'") for rank in (1, 0)]

    found = diagnose(job(exit_code=1), (), [log(*lines)])

    assert found.category == "python-exception"
    assert "KeyError: 'x' at /home/u/train.py line 42" in found.explanation


def test_what_others_die_of_is_named_only_when_nothing_else_is_there():
    found = diagnose(
        job(exit_code=1), (), [log(*TRACEBACK, "torch.distributed.DistBackendError: NCCL error in: x.cpp")]
    )

    assert found.category == "nccl-timeout"
    assert found.confidence <= 0.5


def test_an_exception_that_was_being_handled_is_not_the_cause():
    handled = "During handling of the above exception, another exception occurred:"
    lines = (*TRACEBACK, "ModuleNotFoundError: No module named 'apex'", handled, *TRACEBACK, "ValueError: no scaler")

    found = diagnose(job(exit_code=1), (), [log(*lines)])

    assert found.category == "python-exception"
    assert "no scaler" in found.explanation


@pytest.mark.proves("root-cause-first")
def test_a_harmless_warning_is_never_the_cause():
    text = log("UserWarning: CUDA initialization: The NVIDIA driver on your system is too old",
               "WARNING: disk full at 95%", "boom")  # fmt: skip

    assert diagnose(job(exit_code=7), (), [text]).category == "unknown"


def test_an_error_long_before_the_end_is_named_with_little_confidence():
    lines = ["curl: (6) Could not resolve host: example.org", *(f"step {number}" for number in range(500))]

    assert diagnose(job(exit_code=7), (), [log(*lines)]).confidence < 0.5


def test_a_later_breakdown_goes_before_an_earlier_one():
    lines = ["/s: line 3: module: command not found", *(f"step {number}" for number in range(300))]

    found = diagnose(job(exit_code=1), (), [log(*lines, *TRACEBACK, "RuntimeError: CUDA error: out of memory")])

    assert found.category == "gpu-out-of-memory"


def test_standard_error_goes_before_standard_output():
    out, err = log("FileNotFoundError: x", kind="stdout"), log("PermissionError: [Errno 13] y")

    assert diagnose(job(exit_code=1), (), [out, err]).category == "permission"


def test_a_failed_step_behind_an_exit_code_0_is_told():
    found = diagnose(
        job("COMPLETED", exit_code=0, derived_exit_code=1), (), [log("ModuleNotFoundError: No module named x")]
    )

    assert found.category == "missing-module"
    assert "COMPLETED" in found.explanation
    assert diagnose(job("COMPLETED", exit_code=0, derived_exit_code=1), (), ()).category == "unknown"


def test_a_clean_end_is_no_failure_whatever_the_log_holds():
    found = diagnose(
        job("COMPLETED", exit_code=0), (), [log("Traceback (most recent call last):", "ValueError: retried")]
    )

    assert (found.category, found.escalation) == ("none", "none")
    assert "look at them" in found.explanation


def test_a_running_job_has_not_failed_yet():
    found = diagnose(job("RUNNING", ended=None), (), [log("RuntimeError: CUDA error: out of memory")])

    assert found.category == "none"
    assert "RUNNING" in found.explanation


def test_an_array_is_diagnosed_by_the_task_that_failed_first():
    whole = job("FAILED", job_id=JobId(9))
    tasks = [
        job("COMPLETED", job_id=JobId(9, task=0), exit_code=0),
        job("TIMEOUT", job_id=JobId(9, task=1), ended=NOON.replace(minute=50)),
        job("OUT_OF_MEMORY", job_id=JobId(9, task=2), ended=NOON.replace(minute=10)),
    ]

    found = diagnose(whole, tasks, ())

    assert found.category == "host-out-of-memory"
    assert "2 tasks failed" in found.explanation
    assert "9_2" in found.explanation


def test_a_time_limit_tells_also_what_the_log_shows():
    found = diagnose(job("TIMEOUT"), (), [log("[rank1]: RuntimeError: CUDA error: out of memory")])

    assert found.category == "time-limit"
    assert "gpu-out-of-memory" in found.explanation


def test_a_log_alone_is_diagnosed_with_less_confidence():
    assert diagnose(None, (), [log("ModuleNotFoundError: No module named 'x'")]).confidence <= 0.7
    quiet = diagnose(None, (), [log("all is well")])
    assert (quiet.category, quiet.confidence, quiet.escalation) == ("none", 0.3, "none")


def test_a_log_that_repeats_its_error_is_judged_at_once_and_by_its_first_line():
    found, calls = counted(lambda: diagnose(None, (), [log("MemoryError\n" * 20_000)]))

    assert calls < CALLS  # each line held against all others would be 200 million
    assert (found.category, found.evidence[0].line) == ("host-out-of-memory", 1)


def test_text_of_a_log_stays_bounded_in_an_explanation():
    found = diagnose(job(exit_code=1), (), [log(*TRACEBACK, "ValueError: " + "x" * 1900)])

    assert len(found.explanation) < 500
    assert all(len(line.text) <= 400 for line in found.evidence)


def test_errors_and_warnings_are_told_apart():
    text = log("UserWarning: slow", "0 errors", "validation error: 0.12", "ERROR: cannot go on", "ERROR: cannot go on",
               "WARNING failed once, trying again", "epoch 1")  # fmt: skip

    assert [line.text for line in errors([text])] == ["ERROR: cannot go on"]
    assert [line.text for line in warnings([text])] == ["UserWarning: slow", "WARNING failed once, trying again"]


def test_metrics_are_the_last_stated_values():
    text = log(
        "Epoch 1/10 - loss: 0.9 val_loss=1.5",
        "Epoch 3/10 - loss: 0.25 val_loss=1e-3 Accuracy: 93.1% learning rate: 3e-4",
        "{'eval_loss': 0.5, 'f1': 0.75} tokens/s: 1234",
        kind="stdout",
    )

    assert metrics([text]) == {
        "loss": 0.25, "val_loss": 1e-3, "accuracy": 93.1, "learning_rate": 3e-4, "epoch": 3.0, "eval_loss": 0.5,
        "f1": 0.75, "tokens/s": 1234.0,
    }  # fmt: skip


def test_metrics_are_never_a_guess():
    text = log(
        "loss: nan", "port: 8080", "time: 12:30", "step: 2026-01-02", "version=1.2.3", "loss went down", kind="stdout"
    )

    assert metrics([text]) == {}
