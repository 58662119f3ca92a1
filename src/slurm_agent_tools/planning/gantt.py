"""A schedule as an SVG picture: a row for each GPU of each pool, a bar for each job, time from left to right."""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from slurm_agent_tools.planning.schedule import JobSchedule, PlacedJob
from slurm_agent_tools.text.svg_parts import picture, rule, safe, words
from slurm_agent_tools.units import format_duration

_WIDTH, _LEFT, _TOP, _ROW = 960, 110, 34, 22

_LABEL = 7
"""Pixels that one letter of a bar's name takes."""

_MARKS = 8


def gantt(schedule: JobSchedule, title: str) -> str:
    """The picture as SVG text. Names of jobs are data: control characters are made visible, markup is escaped."""
    rows = _rows(schedule)
    height = _TOP + _ROW * max(1, len(rows)) + 30
    whole = schedule.makespan or 1.0
    parts = [words(_LEFT, 18, title, font_size=13), *_scale(whole, height)]
    for number, (label, bars) in enumerate(rows):
        top = _TOP + _ROW * number
        parts.append(words(4, top + 15, label))
        for one, place, of in bars:
            parts.append(_bar(one, top + place * (_ROW - 4) / of, (_ROW - 4) / of, whole))
    return picture(parts, _LEFT + _WIDTH + 20, height, title, size=11)


def _rows(schedule: JobSchedule) -> list[tuple[str, list[tuple[PlacedJob, int, int]]]]:
    """(label, bars of (job, its place in the row, of how many)); those without GPUs fill rows of their pool."""
    rows: list[tuple[str, list[tuple[PlacedJob, int, int]]]] = []
    for pool in schedule.pools:
        mine = [one for one in schedule.placed if one.pool == pool.name]
        numbers = sorted({number for one in mine for number in one.gpus})
        for number in numbers:
            held = [one for one in mine if number in one.gpus]
            rows.append((f"{pool.name[:9]} GPU {number}", _beside(held)))
        lanes: list[list[PlacedJob]] = []
        for one in (one for one in mine if not one.gpus):
            lane = next((lane for lane in lanes if lane[-1].end <= one.start), None)
            if lane is None:
                lanes.append([one])
            else:
                lane.append(one)
        rows += [(f"{pool.name[:9]} CPU", [(one, 0, 1) for one in lane]) for lane in lanes]
    return rows


def _beside(held: list[PlacedJob]) -> list[tuple[PlacedJob, int, int]]:
    """Shares of one GPU that run at the same time are drawn one below the other."""
    lanes: list[float] = []
    places = []
    for one in held:
        place = next((number for number, end in enumerate(lanes) if end <= one.start), len(lanes))
        lanes[place : place + 1] = [one.end]
        places.append((one, place))
    return [(one, place, len(lanes)) for one, place in places]


def _scale(whole: float, height: int) -> Iterator[str]:
    for mark in range(_MARKS + 1):
        x = _LEFT + _WIDTH * mark / _MARKS
        yield rule((x, _TOP - 6), (x, height - 24), stroke="#ddd")
        yield words(x, height - 10, format_duration(round(whole * mark / _MARKS)), anchor="middle", fill="#555")


def _bar(one: PlacedJob, top: float, high: float, whole: float) -> str:
    x, width = _LEFT + _WIDTH * one.start / whole, max(0.5, _WIDTH * (one.end - one.start) / whole)
    hue = crc32(one.job.name.encode("utf-8", "backslashreplace")) % 360
    edge = "#c00" if one.late else "#fff"
    times = f"{format_duration(round(one.start))} to {format_duration(round(one.end))}"
    about = safe(f"{one.name}: {times}{', after its deadline' if one.late else ''}")
    room = int(width / _LABEL)
    label = words(x + 3, top + 13, one.name[:room]) if room >= 3 and high >= 11 else ""
    return (
        f'<g><title>{about}</title><rect x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{high:.1f}"'
        f' fill="hsl({hue},60%,78%)" stroke="{edge}"/>{label}</g>'
    )
