"""Advice that is built from the log, and words that say no more than is known."""

from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import GIB, TRACEBACK, job, log, step

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.models.job_resources import Resources


def said(*lines, **facts):
    return diagnose(job(**({"exit_code": 1} | facts)), (), [log(*lines)])


def test_asked_and_total_memory_of_the_gpu_are_told():
    torch = said(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 39.39 GiB of which 1.2 GiB is free."
    )
    older = said(
        "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 0; 15.77 GiB total capacity; 9 GiB already allocated)"
    )
    vllm = said(
        "ValueError: Free memory on device (3.2/4.0 GiB) on startup is less than desired GPU memory utilization (0.9, 3.6 GiB). Decrease GPU memory utilization."
    )
    bare = said("RuntimeError: CUDA error: out of memory")

    assert "It asked for 2.50 GiB; the GPU has 39.39 GiB." in torch.explanation
    assert "It asked for 512.00 MiB; the GPU has 15.77 GiB." in older.explanation
    assert "It asked for 3.6 GiB; the GPU has 4.0 GiB, 3.2 free." in vllm.explanation
    assert "asked for" not in bare.explanation


def test_what_the_program_itself_advises_is_quoted_first():
    found = said(
        "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."
    )
    behind = said(
        'Lmod has detected the following error: The following module(s) are unknown: "gcc/99"',
        "",
        "Please check the spelling or version number.",
    )
    none = said("ModuleNotFoundError: No module named 'x'", "Please report this bug to the authors of x.")

    assert (
        found.suggestions[0]
        == 'The program itself advises: "Try increasing `gpu_memory_utilization` when initializing the engine"'
    )
    assert behind.suggestions[0].startswith('The program itself advises: "Please check the spelling')
    assert not any("advises" in text for text in none.suggestions)


@pytest.mark.parametrize(
    ("line", "node"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): 79, pid=4411, name=python, GPU has fallen off the bus.", "gpu01"),
        ("RuntimeError: CUDA error: uncorrectable ECC error encountered", "gpu01"),
        ("OSError: [Errno 116] Stale file handle: '/scratch/a'", "gpu01"),
        ("RuntimeError: CUDA error: device-side assert triggered", None),
    ],
)
def test_a_node_that_is_at_fault_is_named_to_be_left_out(line, node):
    told = [text for text in said(line).suggestions if "--exclude" in text]

    assert told == ([f"Keep the next run off that node: #SBATCH --exclude={node}"] if node else [])


def test_of_several_nodes_the_one_that_srun_names_is_left_out():
    lines = [
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "srun: error: gpu07: task 3: Exited with exit code 1",
    ]

    assert "--exclude=gpu07" in " ".join(said(*lines, nodes="gpu[05-08]").suggestions)
    assert "--exclude" not in " ".join(said(lines[0], nodes="gpu[05-08]").suggestions)
    assert "--exclude" not in " ".join(said(lines[0], nodes=None).suggestions)


def test_the_file_system_that_is_full_is_named():
    found = said("OSError: [Errno 28] No space left on device: '/scratch/u/ckpt-100.pt'")

    assert found.suggestions[0] == "Look at the file system of /scratch/u/ckpt-100.pt (df -h, df -i, your quota there)."
    assert not any("file system of" in text for text in said("cp: Disk quota exceeded").suggestions)


RULE = """\
[Wed May 14 15:31:10 2025]
Error in rule align:
    jobid: 54
    output: out/a.bam
    log: logs/align/a.log (check log file(s) for error details)
    shell:
        bwa mem ref.fa a.fq
        (command exited with non-zero exit code)
    external_jobid: 5783166
Exiting because a job execution failed. Look above for error message"""
PROCESS = """\
ERROR ~ Error executing process > 'ALIGN (S4)'
Caused by:
  Process `ALIGN (S4)` terminated with an error exit status (1)
Command error:
  giving up
Work dir:
  /scratch/u/work/7a/d21c0f
Tip: view the complete command output by changing to the process work dir"""


def test_the_step_of_a_workflow_that_failed_is_named_with_its_log_and_its_job():
    found = said(*RULE.splitlines())

    assert found.category == "unknown"
    assert (
        "The rule align failed. Its log is logs/align/a.log. It ran as job 5783166: ask analyze_log"
        in found.explanation
    )


def test_the_process_of_a_workflow_that_failed_is_named_with_its_folder():
    assert "The process ALIGN (S4) failed. Read .command.err and .command.log in /scratch/u/work/7a/d21c0f." in (
        said(*PROCESS.splitlines()).explanation
    )
    lines = PROCESS.replace("giving up", "ModuleNotFoundError: No module named 'x'").splitlines()
    known = said(*lines)
    assert known.category == "missing-module"
    assert any("The process ALIGN (S4) failed." in text for text in known.suggestions)


def test_an_undecided_end_quotes_the_last_error_of_the_log():
    found = said(
        "Error in check(x) : ",
        "  groups differ",
        "Execution halted",
        "srun: error: n1: task 0: Exited with exit code 1",
    )

    assert found.category == "unknown"
    assert 'The last error in the log: "Error in check(x) : groups differ".' in found.explanation
    assert "neither" not in found.explanation
    assert 'The last error in the log: "it failed".' in diagnose(None, (), [log("it failed")]).explanation


def test_what_a_launcher_says_is_quoted_only_where_nothing_else_is_there():
    only = said("hello", "srun: error: n1: task 0: Exited with exit code 3")

    assert "Exited with exit code 3" in only.explanation
    assert "neither Slurm nor the log says why" in said("hello").explanation


def killed(**facts):
    return diagnose(job(exit_code=137, **facts), (), [log("hello")])


def test_exit_137_alone_is_told_with_what_it_may_mean_and_what_speaks_for_it():
    plain = killed()
    low = killed(steps=(step("batch", "FAILED", exit_code=137, max_rss_bytes=2 * GIB),))
    full = killed(steps=(step("batch", "FAILED", exit_code=137, max_rss_bytes=16 * GIB),))

    assert plain.category == low.category == "unknown"
    for found in (plain, low, full):
        assert (
            "may be a shell's word for a program that signal 9 (SIGKILL) ended, or the program's own"
            in found.explanation
        )
        assert "It was killed" not in found.explanation
    assert "nothing measured speaks for that" in plain.explanation
    assert "speaks against" in low.explanation
    assert (full.category, full.confidence) == ("host-out-of-memory", 0.7)
    assert "The memory was full, which speaks for a kill for memory." in full.explanation


def test_exit_139_alone_is_a_hint_of_a_segmentation_fault_and_the_signal_itself_says_it():
    plain = diagnose(job(exit_code=139), (), [log("hello")])
    seen = diagnose(job(signal=11), (), [log("hello")])

    assert (plain.category, plain.confidence) == ("segmentation-fault", 0.5)
    assert "Exit code 139 may be a shell's word for a program that signal 11 (SIGSEGV, a segmentation fault) ended" in (
        plain.explanation
    )
    assert (seen.category, seen.confidence) == ("segmentation-fault", 0.8)
    assert "may be" not in seen.explanation


@pytest.mark.parametrize(
    ("line", "category"),
    [
        ("subprocess.CalledProcessError: Command 'x' returned non-zero exit status 127.", "command-not-found"),
        ("Process `A` terminated with an error exit status (137)", "host-out-of-memory"),
        ("failed (exitcode: -9) local_rank: 0 (pid: 5)", "host-out-of-memory"),
        ("step failed with return code 139", "segmentation-fault"),
        ("worker exited with exit code: -11", "segmentation-fault"),
        ("make: *** [Makefile:3: all] Error: exit status 12700", "unknown"),
    ],
)
def test_a_status_that_a_program_reports_of_another_one_is_a_hint(line, category):
    found = said(line)

    assert found.category == category
    assert found.confidence <= 0.6 if category == "unknown" else found.confidence < 0.5
    assert category == "unknown" or found.explanation.startswith("Perhaps, as far as one line tells: ")


@pytest.mark.parametrize(
    "line",
    [
        "/s/job00071/slurm_script: line 3: torchrun: command not found",
        "slurmstepd: error: execve(): torchrun: No such file or directory",
    ],
)
def test_a_launcher_that_is_not_there_is_a_command_that_was_not_found(line):
    found = said(line, "srun: error: g1: task 0: Exited with exit code 127", exit_code=127)

    assert found.category == "command-not-found"
    assert "(torchrun)" in found.explanation


VLLM = "(EngineCore_0 pid=812) ERROR 03-02 10:11:12 [core.py:700] "


def test_a_traceback_that_vllm_logs_line_by_line_is_read_and_its_front_end_is_no_cause():
    lines = [VLLM + line for line in (*TRACEBACK, "AttributeError: no rope_parameters")]
    lines = [line.replace(":12", f":{10 + index}") for index, line in enumerate(lines)]
    lines += ["(APIServer pid=7) RuntimeError: Engine core initialization failed. See root cause above."]
    front = [f"(APIServer pid=7) {line}" for line in (*TRACEBACK, "RuntimeError: Engine core initialization failed.")]

    found = said(*lines[:-1], *front)

    assert found.category == "python-exception"
    assert "AttributeError: no rope_parameters at /home/u/train.py line 42" in found.explanation


def test_memory_that_was_asked_for_does_not_appear_where_it_is_not_known():
    found = said("MemoryError", resources=Resources())

    assert found.category == "host-out-of-memory"
    assert found.proposed_change is None


def test_beside_what_ranks_died_of_the_programs_own_error_is_quoted():
    lines = [
        "Fatal error: no domain decomposition for 56 ranks",
        "MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD",
    ]
    found = said(*lines)

    assert found.category == "mpi-abort"
    assert f'The last other error in the log: "{lines[0]}".' in found.explanation
    assert "The last other" not in said(lines[1]).explanation
