"""Windows without use: labelled series made by a rule each, every window found and none that is not there."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.fleet.looks import NOW

from slurm_agent_tools.fleet.use_windows import KeptLooks, UseSample, idle_now, idle_windows

LEAST = 600.0
MINUTE = 60

# What a series is made of: letters for spans of use, minutes behind each. B busy, I idle, N a little noise that is no
# use, s one short burst, w half used, gap nothing measured, ? measured as not known.
SPANS = {"B": 0.9, "I": 0.0, "N": 0.008, "w": 0.4, "l": 0.02}
LABELLED: list[tuple[str, list[tuple[str, int]]]] = [
    # held-but-empty
    ("I11", [("held-empty", 11)]), ("I60", [("held-empty", 60)]), ("I600", [("held-empty", 600)]),
    ("N20", [("held-empty", 20)]), ("I12 N12", [("held-empty", 24)]), ("I15 B1", [("held-empty", 15)]),
    ("I30 B30", [("held-empty", 30)]), ("I20 B5 B5", [("held-empty", 20)]), ("I11 l5", [("held-empty", 11)]),
    ("I45 w30", [("held-empty", 45)]), ("N11 B60", [("held-empty", 11)]), ("I13 B2 I5", [("held-empty", 13)]),
    # idle after activity
    ("B10 I11", [("idle-after-activity", 11)]), ("B600 I20", [("idle-after-activity", 20)]),
    ("B1 I120", [("idle-after-activity", 120)]), ("w30 I15", [("idle-after-activity", 15)]),
    ("l60 I30", [("idle-after-activity", 30)]), ("B30 N30", [("idle-after-activity", 30)]),
    ("B5 I20 B5", [("idle-after-activity", 20)]), ("B5 I5 B5 I20", [("idle-after-activity", 20)]),
    ("B20 I15 B20 I15", [("idle-after-activity", 15), ("idle-after-activity", 15)]),
    ("B20 I15 B1 I15 B1 I15", [("idle-after-activity", 15)] * 3), ("B1 I11 B1", [("idle-after-activity", 11)]),
    ("B1440 I60", [("idle-after-activity", 60)]), ("w5 l5 I12 N12", [("idle-after-activity", 24)]),
    ("B3 N6 I6 B3", [("idle-after-activity", 12)]),
    # both
    ("I20 B20 I20", [("held-empty", 20), ("idle-after-activity", 20)]),
    ("I12 B1 I12 B1", [("held-empty", 12), ("idle-after-activity", 12)]),
    ("N11 w5 N11", [("held-empty", 11), ("idle-after-activity", 11)]),
    ("I60 B1 I5 B1 I30", [("held-empty", 60), ("idle-after-activity", 30)]),
    # none: used, or not for long enough
    ("B60", []), ("w600", []), ("l60", []), ("I9", []), ("B5 I9", []), ("I9 B1 I9 B1 I9", []), ("B1 I5 B1 I5 B1", []),
    ("I5 B5 I5", []), ("N9 B60", []), ("B60 I3", []), ("l5 I5 l5 I5 l5", []), ("w1 I8 w1 I8 w1", []), ("B1", []), ("I1", []),
    ("B2 l30 B2", []), ("I9 s1 I9", []), ("B30 I9 s1 I9", []), ("s1 I9 s1", []),
    # the measuring is interrupted: nobody knows what was in between
    ("I6 gap30 I6", []), ("B5 I6 gap30 I6", []), ("I15 gap60 B5", [("held-empty", 15)]),
    ("B5 I15 gap60 I15", [("idle-after-activity", 15), ("idle-after-activity", 15)]),
    ("I6 ?5 I6", []), ("B5 I6 ?5 I6", []), ("I15 ?5 I15", [("held-empty", 15), ("idle", 15)]),
    ("?30 I15", [("idle", 15)]), ("gap40 I15", [("idle", 15)]), ("gap40 B5 I15", [("idle-after-activity", 15)]), ("?60", []),
    ("gap40 I9", []), ("I15 ?1 B5 I15", [("held-empty", 15), ("idle-after-activity", 15)]),
]  # fmt: skip


def made(text: str) -> list[UseSample]:
    """A sample a minute from NOW on, as the words tell."""
    series: list[UseSample] = []
    minute = 0
    for word in text.split():
        kind = "gap" if word.startswith("gap") else word[0]
        length = int(word.removeprefix(kind))
        for index in range(length + (kind in {"I", "N"})):
            at = NOW + timedelta(minutes=minute + index)
            if kind == "?":
                series.append(UseSample(at, None))
            elif kind == "s":
                series.append(UseSample(at, 1.0))
            elif kind != "gap":
                series.append(UseSample(at, SPANS[kind]))
        minute += length + (kind in {"I", "N"})
    return series


def test_there_are_more_than_fifty_labelled_series_of_each_fate() -> None:
    assert len(LABELLED) >= 50
    kinds = [kind for _, windows in LABELLED for kind, _ in windows]
    assert (
        min(kinds.count("held-empty"), kinds.count("idle-after-activity")),
        sum(not one for _, one in LABELLED),
    ) >= (10, 10)


@pytest.mark.proves("idle-windows-are-found")
@pytest.mark.parametrize(("text", "label"), LABELLED, ids=[text for text, _ in LABELLED])
def test_every_window_is_found_and_none_false(text: str, label: list[tuple[str, int]]) -> None:
    found = idle_windows(made(text), LEAST, held_since=NOW)
    assert [one.kind for one in found] == [kind for kind, _ in label]
    for one, (_, minutes) in zip(found, label, strict=True):
        assert abs(one.seconds - minutes * MINUTE) <= 2 * MINUTE


@given(st.lists(st.floats(0.02, 1), max_size=200))
def test_what_is_used_all_the_time_has_no_window(uses: list[float]) -> None:
    series = [UseSample(NOW + timedelta(minutes=index), use) for index, use in enumerate(uses)]
    assert idle_windows(series, LEAST, held_since=NOW) == []


@given(st.permutations(made("B5 I20 B5 I15")))
def test_the_order_of_samples_changes_nothing(series: list[UseSample]) -> None:
    assert idle_windows(series, LEAST) == idle_windows(made("B5 I20 B5 I15"), LEAST)


def test_samples_from_before_the_job_do_not_count() -> None:
    begun = NOW + timedelta(minutes=30)
    (one,) = idle_windows(made("B30 I30"), LEAST, held_since=begun)
    assert (one.kind, one.start) == ("held-empty", begun)


def test_only_a_window_that_lasts_until_now_is_idle_now() -> None:
    end = NOW + timedelta(minutes=26)
    assert idle_now(made("B5 I20"), LEAST, end) is not None
    assert idle_now(made("I20 B5"), LEAST, end) is None
    assert idle_now(made("B5 I20"), LEAST, end + timedelta(hours=1)) is None
    assert idle_now([], LEAST, end) is None


def test_looks_at_cpu_time_tell_since_when_a_job_is_quiet() -> None:
    looks = KeptLooks()
    for minute, seconds in enumerate([0, 50, 100, 100, 100.01, 100.02]):
        looks.keep(7, NOW + timedelta(minutes=minute), seconds)
    assert looks.quiet_since(7, 0.005) == NOW + timedelta(minutes=2)
    assert looks.quiet_since(8, 0.005) is None
    looks.keep(7, NOW + timedelta(minutes=6), 3)
    assert looks.quiet_since(7, 0.005) is None
