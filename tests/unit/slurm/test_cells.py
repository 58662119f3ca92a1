"""What Slurm prints in one cell, and what it means: what it has not to tell is None, and its silence is no answer."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.unit.slurm.answers import done
from tests.unit.slurm.clocks import LOOKED, START, queued

from slurm_agent_tools.errors import SlurmGarbled, SlurmUnreachable
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.slurm.commands import columns, squeue
from slurm_agent_tools.units import UNLIMITED

MOMENT = datetime.fromtimestamp(START, UTC)
LATER = str(START + 300)
LONG_AGO = datetime.fromtimestamp(1_600_000_300, UTC)


def job(state: str = "RUNNING", **changes: object):
    [found] = squeue.parse(done(queued("5", state, **changes)), LOOKED)
    return found


# --- squeue's cells -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "raw", "field", "value"),
    [
        ("elapsed", "1-02:03:04", "elapsed_seconds", 93_784),
        ("elapsed", "0:00", "elapsed_seconds", 0),
        ("elapsed", "INVALID", "elapsed_seconds", None),
        ("elapsed", "N/A", "elapsed_seconds", None),
        ("nodes", "", "nodes", None),
        ("nodes", "gpu[1-2]", "nodes", "gpu[1-2]"),
        ("required_nodes", "(null)", "required_nodes", None),
        ("required_nodes", "gpu1", "required_nodes", "gpu1"),
        ("dependency", "(null)", "dependency", None),
        ("dependency", "afterok:4(unfulfilled)", "dependency", "afterok:4(unfulfilled)"),
        ("comment", "(null)", "comment", None),
        ("comment", " agent:1 ", "comment", "agent:1"),
        ("reason", "None", "reason", None),
        ("reason", "", "reason", None),
        ("submitted", "N/A", "submitted", None),
        ("submitted", START, "submitted", MOMENT),
        ("start", "Unknown", "started", None),
        ("start", START, "started", MOMENT),
        ("again", "5", "raw_id", 5),
    ],
)
def test_a_cell_of_squeue_is_what_it_says_or_not_known(cell, raw, field, value):
    assert getattr(job(**{cell: raw}), field) == value


@pytest.mark.parametrize(
    ("cell", "raw", "field", "value"),
    [
        ("node_count", "2-4", "nodes", 2),
        ("node_count", "3", "nodes", 3),
        ("cpus", "16", "cpus", 16),
        ("limit", "UNLIMITED", "time_limit_seconds", UNLIMITED),
        ("limit", "1:30:00", "time_limit_seconds", 5400),
        ("limit", "NOT_SET", "time_limit_seconds", None),
        ("limit", "Partition_Limit", "time_limit_seconds", None),
        ("partition", "a,b", "partition", "a,b"),
    ],
)
def test_what_a_job_holds_is_what_its_cells_say(cell, raw, field, value):
    resources = job(**{cell: raw}).resources
    assert isinstance(resources, Resources)
    assert getattr(resources, field) == value


def test_a_start_in_the_future_is_expected_only_of_a_job_that_waits():
    waiting = job("PENDING", start=LATER, elapsed="0:00")
    assert (waiting.started, waiting.elapsed_seconds) == (None, None)
    assert waiting.expected_start == datetime.fromtimestamp(START + 300, UTC)
    assert job(start=START).expected_start is None


@pytest.mark.parametrize(
    ("state", "end", "ended"),
    [
        ("COMPLETED", 1_600_000_300, LONG_AGO),
        ("CANCELLED", 1_600_000_300, LONG_AGO),
        ("COMPLETED", START + 86_400, LOOKED),
        ("COMPLETED", START + 86_401, None),  # an estimate: the time limit
        ("RUNNING", 1_600_000_300, None),
        ("SUSPENDED", 1_600_000_300, None),
        ("CONFIGURING", 1_600_000_300, None),
        ("STOPPED", 1_600_000_300, None),
        ("COMPLETED", "N/A", None),
    ],
)
def test_an_end_is_told_of_what_is_over_and_never_as_a_guess(state, end, ended):
    assert job(state, end=end).ended == ended


# --- cells of every command ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "word"),
    [("CANCELLED by 1001", "CANCELLED"), ("CANCELLED+", "CANCELLED"), ("FAILED", "FAILED"), ("", "UNKNOWN")],
)
def test_a_state_is_its_first_word(raw, word):
    assert columns.state_word(raw) == word


@pytest.mark.parametrize(
    ("raw", "status"),
    [("7:0", (7, None)), ("0:9", (0, 9)), ("1:15", (1, 15)), ("3", (3, None)), ("", (None, None)), ("N/A", (None, None)), ("(null)", (None, None))],
)  # fmt: skip
def test_an_exit_status_is_a_code_and_a_signal(raw, status):
    assert columns.exit_status(raw) == status


@pytest.mark.parametrize("raw", ["", "NOT_SET", "INVALID", "N/A", "Partition_Limit"])
def test_a_time_limit_that_slurm_does_not_tell_is_not_known(raw):
    assert columns.time_limit(raw) is None


@pytest.mark.parametrize(
    ("raw", "state", "started", "reason"),
    [
        ("Priority", "PENDING", False, "Priority"),
        ("Priority", "RUNNING", True, "Priority"),
        ("Priority", "COMPLETED", True, None),  # left from its waiting
        ("TimeLimit", "TIMEOUT", True, "TimeLimit"),
        ("RaisedSignal:11(Segmentation_fault)", "FAILED", True, "RaisedSignal:11(Segmentation_fault)"),
        ("Dependency", "CANCELLED", False, "Dependency"),
        ("None", "PENDING", False, None),
        ("", "PENDING", False, None),
    ],
)
def test_the_reason_of_a_wait_is_no_word_about_an_end(raw, state, started, reason):
    assert columns.reason(raw, state, started=started) == reason


# --- commands that end badly --------------------------------------------------------------------------------------

SILENCE = [
    "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
    "squeue: error: slurm_receive_msg: Socket timed out on send/recv operation",
    "sacct: error: Connection refused",
    "sacct: error: Connection timed out",
    "squeue: error: Connection reset by peer",
    "scontrol: error: Zero Bytes were transmitted or received",
    "sacct: error: slurm_persist_conn_open_without_init: failed to open persistent connection",
    "sacct: error: slurmdbd: Sending PersistInit msg: Connection refused",
    "squeue: error: Transport endpoint is not connected",
    "sinfo: error: Protocol authentication error",
    "squeue: fatal: Could not establish a configuration source",
    "squeue: error: Communication connection failure",
    "sinfo: error: Message connect failure",
    "squeue: error: Unable to establish control machine address",
    "sinfo: error: Resource temporarily unavailable",
    "squeue: error: No route to host",
]


@pytest.mark.parametrize("said", SILENCE)
def test_every_way_of_slurm_to_be_silent_is_told_from_an_answer(said):
    silent = done(b"", said.encode(), 1)
    assert columns.silent(silent)
    with pytest.raises(SlurmUnreachable, match="does not answer") as caught:
        columns.check(silent)
    assert "scontrol ping" in (caught.value.hint or "")


def test_a_time_limit_and_words_that_are_no_silence_are_told_apart():
    with pytest.raises(SlurmUnreachable, match="did not answer within") as caught:
        columns.check(done(b"", b"", None))
    assert "scontrol ping" in (caught.value.hint or "")
    with pytest.raises(SlurmGarbled, match="exit code 1: no message") as garbled:
        columns.check(done(b"", b"", 1))
    assert "scontrol ping" in (garbled.value.hint or "")
    columns.check(done(b"", SILENCE[0].encode(), 0))  # it ended well, whatever it said on the way


def test_a_message_is_one_line_of_at_most_500_signs():
    assert columns.message(done(b"", b"error:  a\n b\n")) == "error: a b"
    assert len(columns.message(done(b"", b"x" * 600))) == 500


# --- tables -------------------------------------------------------------------------------------------------------

NAMES = ("first", "second", "third")


def table(text: str):
    return columns.table(done(text.encode()), NAMES, lambda cell: tuple(cell.items()))


def test_rows_are_read_though_a_middle_cell_holds_a_newline():
    rows = table("a\x1fb\nc\x1fd\ne\x1ff\x1fg\n")
    assert [tuple(value for _, value in row) for row in rows] == [("a", "b\nc", "d"), ("e", "f", "g")]
    assert [name for name, _ in rows[0]] == list(NAMES)
    assert table("") == table("\n") == ()


@pytest.mark.parametrize("text", ["a\n", "a\x1fb\n", "a\x1fb\x1fc\x1fd\n"])
def test_a_row_that_does_not_fit_is_an_error_with_the_row_in_it(text):
    with pytest.raises(SlurmGarbled, match="a"):
        table(text)
