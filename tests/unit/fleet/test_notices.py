"""Which alerts are due to whom: once, over quiet hours, failures and restarts."""

from __future__ import annotations

import json
from datetime import time

import pytest

from slurm_agent_tools.cli.commands import watch_command
from slurm_agent_tools.fleet.notices import AWAY, KEPT, LONGEST, MOST, REMEMBERED, NoticeBook, is_quiet, message
from slurm_agent_tools.models.shapes import Alert

pytestmark = pytest.mark.proves("told-once")


def alert(
    code: str = "gpus-idle", severity: str = "high", job: str | None = "7", text: str = "GPUs do nothing."
) -> Alert:
    return Alert(severity=severity, code=code, message=text, job_id=job)


def due(
    book: NoticeBook, target: str = "a", now: float = 0, least: str = "medium", *, quiet: bool = False
) -> list[str]:
    return [key.split("\0")[0] for key in book.due(target, now, least=least, quiet=quiet)]


def tell(book: NoticeBook, target: str, now: float) -> list[str]:
    found = book.due(target, now, least="medium", quiet=False)
    book.sent(target, found)
    return [key.split("\0")[0] for key in found]


def test_each_target_is_told_once_of_each_alert_whatever_its_words():
    book = NoticeBook()
    for minute in range(100):
        words = alert(text=f"GPUs do nothing since {minute} minutes.")
        book.see([words, alert("nodes-down", "medium", None)], ["a", "b"], minute * 60)
        for target in ("a", "b"):
            assert tell(book, target, minute * 60) == (["gpus-idle", "nodes-down"] if minute == 0 else [])


def test_another_job_and_a_graver_alert_are_new():
    book = NoticeBook()
    book.see([alert()], ["a"], 0)
    tell(book, "a", 0)
    book.see([alert(), alert(job="8"), alert(severity="critical")], ["a"], 60)
    assert len(tell(book, "a", 60)) == 2


def test_what_was_away_for_an_hour_is_told_again_and_what_was_away_shortly_is_not():
    book = NoticeBook()
    book.see([alert()], ["a"], 0)
    tell(book, "a", 0)
    for now, told in ((AWAY - 1, []), (2 * AWAY - 2, [])):
        book.see([alert()], ["a"], now)
        assert tell(book, "a", now) == told
    later = 2 * AWAY - 2 + AWAY + 1
    book.see([], ["a"], later)
    book.see([alert()], ["a"], later + 60)
    assert tell(book, "a", later + 60) == ["gpus-idle"]


def test_a_look_that_failed_makes_nothing_away():
    book = NoticeBook()
    book.see([alert()], ["a"], 0)
    tell(book, "a", 0)
    book.see([], ["a"], 3 * AWAY, whole=False)
    book.see([alert()], ["a"], 3 * AWAY + 60)
    assert tell(book, "a", 3 * AWAY + 60) == []


def test_quiet_hours_hold_all_but_what_is_critical_and_let_it_go_later():
    book = NoticeBook()
    book.see([alert(), alert("job-failed", "critical", "9")], ["a"], 0)
    assert due(book, quiet=True) == ["job-failed"]
    book.sent("a", book.due("a", 0, least="medium", quiet=True))
    book.see([], ["a"], 2 * AWAY)  # it is over by then
    found = book.due("a", 2 * AWAY, least="medium", quiet=False)
    assert "not seen any more for 120 minutes" in message(found, "lab", 2 * AWAY).text
    book.see([], ["a"], KEPT + 1)
    assert due(book, now=KEPT + 1) == []


def test_what_is_below_the_least_is_not_sent():
    book = NoticeBook()
    book.see([alert(), alert("nodes-down", "medium", None), alert("job-failed", "critical")], ["a"], 0)
    assert due(book, least="high") == ["job-failed", "gpus-idle"]
    assert due(book, least="critical") == ["job-failed"]


def test_a_target_that_fails_is_tried_again_later_and_later_and_the_others_are_not_told_twice():
    book = NoticeBook()
    book.see([alert()], ["a", "b"], 0)
    assert tell(book, "b", 0) == ["gpus-idle"]
    pauses, now = [], 0.0
    for _ in range(8):
        assert due(book, "a", now) == ["gpus-idle"]
        again = book.failed("a", now)
        assert due(book, "a", again - 1) == []
        pauses.append(again - now)
        now = again
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert tell(book, "a", now) == ["gpus-idle"]
    assert (due(book, "a", now + 1), due(book, "b", now + 1), book.failing) == ([], [], {})


def test_the_book_outlives_a_restart():
    book = NoticeBook()
    book.see([alert(text="\x1b[31m" + "x" * 5000)], ["a", "b"], 0)
    tell(book, "a", 0)
    book.failed("b", 0)
    again = NoticeBook.read(json.loads(book.document()))
    assert again == book
    assert (due(again, "a", 99), due(again, "b", 30), due(again, "b", 61)) == ([], [], ["gpus-idle"])
    (one,) = again.notices.values()
    assert len(one.text) <= LONGEST
    assert one.text.isprintable()


@pytest.mark.parametrize("told", [None, [], {}, {"format": 2}, {"format": 1, "notices": {"a": {}}, "failing": {}}, 3])
def test_another_file_is_none_of_ours(told: object):
    with pytest.raises(ValueError, match="is"):
        NoticeBook.read(told)


def test_one_message_holds_so_many_and_the_rest_comes_next():
    book = NoticeBook()
    book.see([alert(job=str(number)) for number in range(MOST + 5)], ["a"], 0)
    told = message(book.due("a", 0, least="medium", quiet=False), "lab", 0)
    assert told.title == f"lab: {MOST} alerts, high"
    assert len(told.text.splitlines()) == MOST
    assert (len(tell(book, "a", 0)), len(tell(book, "a", 0)), len(tell(book, "a", 0))) == (MOST, 5, 0)


@pytest.mark.parametrize(
    ("hours", "at", "quiet"),
    [
        ("22:00-07:00", "22:00", True), ("22:00-07:00", "06:59", True), ("22:00-07:00", "07:00", False),
        ("22:00-07:00", "21:59", False), ("12:00-13:00", "12:30", True), ("12:00-13:00", "13:00", False),
        (None, "00:00", False),
    ],
)  # fmt: skip
def test_quiet_hours_may_go_over_midnight(hours: str | None, at: str, quiet: bool):
    assert is_quiet(hours, time.fromisoformat(at)) is quiet


@pytest.mark.proves("text-is-data")
def test_no_name_calls_everybody_in_a_chat_or_hides_where_a_link_leads():
    book = NoticeBook()
    book.see(
        [alert(text="Job 7 (@everyone <!channel> <https://x.example|log> [log](https://x.example)) waits.")], ["a"], 0
    )
    told = message(book.due("a", 0, least="medium", quiet=False), "@here", 0)
    for sign in ("@", "<", ">", "]("):
        assert sign not in told.title + told.text
    assert "https://x.example" in told.text


def test_a_book_of_very_many_alerts_can_be_read_again_and_tells_the_gravest():
    book, told = NoticeBook(), set()
    for minute in range(3):
        many = [alert("pending-long", "medium", str(n), "\u202e" * 90) for n in range(1200)]
        book.see([*many, alert("oom-near", "critical", "1")], ["a" * 16], minute * 60)
        found = [one for key, one in book.notices.items()]
        assert len(found) == REMEMBERED
        assert found[0].severity == "critical"
        told |= set(book.notices)
    assert len(told) == REMEMBERED
    document = book.document()
    assert len(document) < watch_command._LARGEST
    assert NoticeBook.read(json.loads(document)).notices == book.notices
