from __future__ import annotations

from tests.unit.diagnosis.records import job, log

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.python_tracebacks import exceptions

START = "Traceback (most recent call last):"
OWN = '  File "/home/u/train.py", line 42, in main'
LIBRARY = '  File "/home/u/venv/lib/python3.11/site-packages/torch/nn.py", line 9, in forward'


def names(*lines):
    return [raised.kind for raised in exceptions(log(*lines))]


def test_the_origin_is_the_innermost_frame_of_the_users_own_file():
    raised = exceptions(log(START, OWN, "    fit()", LIBRARY, "    raise ValueError", "ValueError: bad"))[0]

    assert (raised.origin.file, raised.origin.line, raised.message) == ("/home/u/train.py", 42, "bad")


def test_where_no_frame_is_the_users_the_innermost_one_is_the_origin():
    frozen = '  File "<frozen runpy>", line 198, in _run_module_as_main'
    raised = exceptions(log(START, frozen, LIBRARY, "    raise ValueError", "ValueError: bad"))[0]

    assert raised.origin.line == 9


def test_a_worker_process_sends_its_own_traceback_along():
    lines = [START, OWN, "    for x in loader:", "KeyError: Caught KeyError in DataLoader worker process 0.",
             "Original " + START, '  File "/home/u/data.py", line 7, in __getitem__', "    return self.rows[key]",
             "KeyError: 'label'"]  # fmt: skip

    found = diagnose(job(exit_code=1), (), [log(*lines)])

    assert found.category == "python-exception"
    assert "KeyError: 'label' at /home/u/data.py line 7" in found.explanation


def test_what_the_interpreter_ignored_is_no_exception():
    assert names("Exception ignored in: <function Pool.__del__ at 0x7f>", START, OWN, "OSError: closed") == []
    assert names("--- Logging error ---", START, OWN, "ValueError: bad format") == []


def test_a_logged_exception_gives_way_to_the_one_that_ended_the_program():
    lines = ["ERROR:root:sample 12 cannot be read", START, OWN, "RuntimeError: CUDA error: out of memory",
             START, OWN, "KeyError: 'lr'"]  # fmt: skip

    found = diagnose(job(exit_code=1), (), [log(*lines)])

    assert found.category == "python-exception"
    assert "'lr'" in found.explanation


def test_a_logged_exception_alone_is_named_with_little_confidence():
    found = diagnose(job(exit_code=1), (), [log("ERROR:root:failed", START, OWN, "KeyError: 'lr'")])

    assert (found.category, found.confidence <= 0.5) == ("python-exception", True)


def test_the_exceptions_of_a_group_are_read():
    lines = ["  + Exception Group Traceback (most recent call last):", '  |   File "/home/u/a.py", line 3, in <module>',
             "  |     main()", "  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)",
             "  +-+---------------- 1 ----------------", "    | Traceback (most recent call last):",
             '    |   File "/home/u/a.py", line 9, in work', "    |     go()", "    | ValueError: too cold",
             "    +------------------------------------"]  # fmt: skip

    assert names(*lines) == ["ExceptionGroup", "ValueError"]
    assert "too cold at /home/u/a.py line 9" in diagnose(job(exit_code=1), (), [log(*lines)]).explanation


def test_an_exception_named_with_another_one_in_brackets_ends_a_traceback():
    assert names(START, OWN, "ray.exceptions.RayTaskError(ValueError): ray::f()") == [
        "ray.exceptions.RayTaskError(ValueError)"
    ]


def test_a_lost_connection_to_another_rank_gives_way_to_what_that_rank_died_of():
    lines = [f"[rank0]: {text}" for text in (START, OWN, "RuntimeError: Connection reset by peer")]
    lines += [f"[rank1]: {text}" for text in (START, OWN, "AssertionError: labels out of range")]

    assert "labels" in diagnose(job(exit_code=1), (), [log(*lines)]).explanation


def test_a_check_of_the_program_for_a_number_that_is_none_is_a_numeric_failure():
    found = diagnose(job(exit_code=1), (), [log(START, OWN, "    assert torch.isfinite(loss)", "AssertionError")])

    assert found.category == "numeric"


def test_a_program_that_python_could_not_start_is_a_command_that_was_not_found():
    lines = [START, OWN, '    run(["nvcc"])', '  File "/usr/lib/python3.11/subprocess.py", line 1955, in _execute_child',
             "    raise child_exception_type(errno_num, err_msg, err_filename)",
             "FileNotFoundError: [Errno 2] No such file or directory: 'nvcc'"]  # fmt: skip

    found = diagnose(job(exit_code=1), (), [log(*lines)])

    assert found.category == "command-not-found"
    assert "(nvcc)" in found.explanation


def test_a_message_may_begin_on_the_line_behind_the_exceptions_name():
    lines = [START, OWN, "    start()", "AssertionError: ", "The NVIDIA driver on your system is too old (10010).",
             "Ask for another one.", "", "Goodbye"]  # fmt: skip

    assert (
        exceptions(log(*lines))[0].message
        == "The NVIDIA driver on your system is too old (10010). Ask for another one."
    )
    found = diagnose(job(exit_code=1), (), [log(*lines)])
    assert found.category == "cuda-driver"
    assert "too old (10010)" in found.explanation


def test_what_follows_an_exception_without_a_message_is_not_always_its_own():
    for after in ("srun: error: n1: task 0: Exited with exit code 1", "  indented", "KeyError: 'x'", START):
        assert exceptions(log(START, OWN, "AssertionError", after))[0].message == ""
    assert (
        exceptions(log(*(f"[rank1]: {line}" for line in (START, OWN, "KeyError")), "[rank0]: hello"))[0].message == ""
    )
