import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_agent_tools import units
from slurm_agent_tools.units import UNLIMITED, ArraySpec, JobId

M, G, T = 2**20, 2**30, 2**40


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0), ("1", M), ("512", 512 * M), ("512M", 512 * M), ("16G", 16 * G), ("16g", 16 * G), ("16GB", 16 * G),
        ("1T", T), ("1024K", M), ("1K", M), ("1025K", 2 * M), (" 4G ", 4 * G), ("1099511627776", 2**60),
    ],
)  # fmt: skip
def test_memory_is_read_as_sbatch_reads_it(text, size):
    assert units.parse_memory(text) == size


@pytest.mark.parametrize(
    "text", ["", " ", "G", "1.5G", "-1", "1 G", "16X", "16GiB", "0x10", "1e3", "16G,", "1099511627777", "9" * 30]
)
def test_a_memory_that_sbatch_would_not_read_so_is_refused(text):
    with pytest.raises(ValueError, match="memory size"):
        units.parse_memory(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0"), (M, "1M"), (1500 * M, "1500M"), (16 * G, "16G"), (T, "1T"), (100 * 1024, "100K"), (1, "1K")],
)
def test_memory_is_written_short_and_exact(size, text):
    assert units.format_memory(size) == text


@given(st.integers(0, 2**30))
def test_memory_in_whole_megabytes_survives_writing_and_reading(number):
    assert units.parse_memory(units.format_memory(number * M)) == number * M


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1K"),
        (1536, "1.5K"),
        (16 * G, "16G"),
        (16399 * M, "16G"),
        (3000 * T, "3000T"),
        (2000 * G, "2000G"),
        (2048 * G, "2T"),
        (1500 * M, "1500M"),
        (1536 * M, "1.5G"),
        (5734 * M, "5.6G"),
        (1500 * M + 1024, "1.5G"),
        (1500 * 1024, "1.5M"),
        (9999 * G, "9999G"),
        (10001 * G, "9.8T"),
    ],
)
def test_memory_for_people_has_one_decimal_at_most_and_keeps_what_was_written(size, text):
    assert units.human_memory(size) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1", 60), ("90", 5400), ("1:30", 120), ("0:01", 60), ("2:00:00", 7200), ("2:00:01", 7260), ("1-0", 86400),
        ("1-2", 93600), ("1-2:30", 95400), ("1-02:30:00", 95400), ("0-0:5", 300), ("UNLIMITED", UNLIMITED),
        ("infinite", UNLIMITED), ("-1", UNLIMITED), ("0", UNLIMITED), ("0:0", UNLIMITED), (" 10 ", 600),
    ],
)  # fmt: skip
def test_a_time_limit_is_read_as_sbatch_reads_it(text, seconds):
    assert units.parse_time_limit(text) == seconds


@pytest.mark.parametrize("text", ["", "-", "1h", "10 min", "1:2:3:4", "1-", "-5", "1-2:3:4:5", "1.5", ":30", "²"])
def test_a_time_limit_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="time limit"):
        units.parse_time_limit(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "00:00:00"), (59, "00:00:59"), (3661, "01:01:01"), (86399, "23:59:59"), (86400, "1-00:00:00"),
     (180001, "2-02:00:01"), (UNLIMITED, "UNLIMITED")],
)  # fmt: skip
def test_a_duration_is_written_as_slurm_writes_it(seconds, text):
    assert units.format_duration(seconds) == text


@given(st.integers(1, 10**6))
def test_a_duration_in_whole_minutes_survives_writing_and_reading(minutes):
    assert units.parse_time_limit(units.format_duration(minutes * 60)) == minutes * 60


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0:05", 5), ("01:05", 65), ("1:00:00", 3600), ("1-02:03:04", 93784), ("00:01.250", 1.25), ("00:00:00", 0),
     ("", None), ("INVALID", None), ("Unknown", None)],
)  # fmt: skip
def test_an_elapsed_time_is_read(text, seconds):
    assert units.parse_elapsed(text) == seconds


@pytest.mark.parametrize("text", ["5", "1h", "1:2:3:4", "-1:00", "lorem"])
def test_an_elapsed_time_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="elapsed"):
        units.parse_elapsed(text)


def test_a_moment_is_utc_or_absent():
    found = units.parse_time("1800000000")
    assert found is not None
    assert found.isoformat() == "2027-01-15T08:00:00+00:00"
    assert [units.parse_time(text) for text in ("", "Unknown", "N/A", "None", "(null)")] == [None] * 5
    with pytest.raises(ValueError, match="yesterday"):
        units.parse_time("yesterday")


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", {}),
        ("cpu=4", {"cpu": "4"}),
        ("cpu=4,mem=16G,gres/gpu:a100=2", {"cpu": "4", "mem": "16G", "gres/gpu:a100": "2"}),
        ("billing=4,", {"billing": "4"}),
    ],
)
def test_a_tres_list_is_read(text, pairs):
    assert units.parse_tres(text) == pairs


@pytest.mark.parametrize("text", ["cpu", "cpu=1,mem", "lorem ipsum"])
def test_a_tres_list_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="TRES"):
        units.parse_tres(text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100", 100 * M),
        ("16G", 16 * G),
        ("2.50G", 2560 * M),
        ("1500M", 1500 * M),
        ("12K", 12288),
        ("1P", 2**50),
        ("0", 0),
    ],
)
def test_the_memory_of_a_tres_is_read(text, size):
    assert units.tres_memory(text) == size


@pytest.mark.parametrize("text", ["", "G", "16Gn", "-1", "x"])
def test_the_memory_of_a_tres_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="TRES memory"):
        units.tres_memory(text)


@pytest.mark.parametrize(
    ("text", "count", "limit", "first", "last", "at_once"),
    [
        ("0-99", 100, None, 0, 99, 100), ("0-99%4", 100, 4, 0, 99, 4), ("5", 1, None, 5, 5, 1),
        ("1,3,5-7", 5, None, 1, 7, 5), ("0-20:5", 5, None, 0, 20, 5), ("0-9%20", 10, 20, 0, 9, 10),
        ("[2-50%4]", 49, 4, 2, 50, 4), ("[2-50]%4", 49, 4, 2, 50, 4), ("0-3%0", 4, None, 0, 3, 4),
        ("1,1,2-3,3", 3, None, 1, 3, 3),
    ],
)  # fmt: skip
def test_an_array_is_counted(text, count, limit, first, last, at_once):
    spec = units.parse_array(text)
    assert spec == ArraySpec(text, count, limit, first, last)
    assert spec.concurrency == at_once


@pytest.mark.parametrize(
    "text",
    [
        "0-9%2%100",
        "[0-9%2]%3",
        "",
        "a",
        "1-",
        "-1",
        "5-1",
        "0-9:0",
        "1,,2",
        "1-2-3",
        "0-9%",
        "0-9%x",
        "0-2000000",
        "0-99999999999",
        "1;2",
    ],
)
def test_an_array_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="array"):
        units.parse_array(text)


@pytest.mark.parametrize(
    ("text", "job_id"),
    [
        ("1", JobId(1)),
        ("123_0", JobId(123, task=0)),
        ("123+1", JobId(123, component=1)),
        ("9_[2-50%4]", JobId(9, tasks="2-50%4")),
        ("9_[1,3,...]", JobId(9, tasks="1,3,...")),
    ],
)
def test_a_job_id_is_read_and_written_back(text, job_id):
    assert units.parse_job_id(text) == job_id
    assert str(job_id) == text
    assert job_id.whole == JobId(job_id.base)


@pytest.mark.parametrize(
    "text",
    ["", "0", "-1", "007", "12.batch", "12 ", "12\n", "12_", "12+", "12_x", "12_[x]", "12;13", "12,13", "\uff11\uff12", "1" * 11,
     "12_1+1", "--all", "12_1_2"],
)  # fmt: skip
def test_a_job_id_that_is_none_is_refused(text):
    with pytest.raises(ValueError, match="not a job id"):
        units.parse_job_id(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300), ("2h", 7200), ("90min", 5400), ("1h30m", 5400), ("1h 30m", 5400), ("5400s", 5400), ("2d", 172800),
        ("1d12h", 129600), ("2 hours", 7200), ("60", 3600), ("01:00:00", 3600), ("1-00", 86400), ("3H", 10800),
    ],
)  # fmt: skip
def test_a_span_is_read_as_people_write_it_and_as_slurm_does(text: str, seconds: int):
    assert units.parse_span(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "0s", "0h0m", "5x", "1.5h", "30m1h", "-5s", "5m5m", "\u00b2s", "soon"])
def test_a_span_that_is_none_is_refused(text: str):
    with pytest.raises(ValueError, match="time"):
        units.parse_span(text)


@pytest.mark.parametrize(
    ("size", "whole"), [(1, 2**20), (2**20, 2**20), (120.5 * 2**20, 121 * 2**20), (8 * 2**30 + 1, 9 * 2**30)]
)
def test_a_size_to_ask_for_is_whole(size: float, whole: int):
    assert units.whole_memory(size) == whole


@pytest.mark.parametrize(("count", "said"), [(0, "0 jobs"), (1, "1 job"), (2, "2 jobs")])
def test_a_count_has_its_noun_in_the_right_number(count: int, said: str):
    assert units.how_many(count, "job") == said


def test_tasks_that_are_named_twice_count_once_and_of_many_it_is_told():
    """Sixty lines of a million tasks each, of which the last one counts, kept a site's service for nine seconds."""
    assert units.parse_array("1-3,2-5:2").count == 4
    spec = units.parse_array("0-499999,500000-999999:5%4")
    assert (spec.count, spec.first, spec.last, spec.limit) == (600_000, 0, 999_995, 4)
    for text in ("0-1000000", "0-600000,600001-1100000", "0-1500,0-1500"):
        with pytest.raises(ValueError, match="too large"):
            units.parse_array(text)
