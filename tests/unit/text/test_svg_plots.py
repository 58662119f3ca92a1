"""Plots: what is measured is drawn where it belongs, and no text becomes markup."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from slurm_agent_tools.text.svg_parts import picture, rule, words
from slurm_agent_tools.text.svg_plots import (
    HEIGHT,
    WIDTH,
    PlotPoint,
    TimeBar,
    curves,
    growing,
    parallel_coordinates,
    scatter,
    stacked_bars,
    what_ran_when,
)

SVG = "{http://www.w3.org/2000/svg}"

HOSTILE = '<script>alert("x")</script>&'


def elements(svg: str, name: str) -> list[ET.Element]:
    return list(ET.fromstring(svg).iter(f"{SVG}{name}"))  # noqa: S314 - our own text


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in elements(svg, "text")]


def centres(svg: str) -> list[tuple[float, float]]:
    return [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in elements(svg, "circle")]


def test_each_run_is_a_dot_and_more_stands_higher_and_further_right() -> None:
    svg = scatter([PlotPoint(1, 10), PlotPoint(2, 20), PlotPoint(3, 15)], title="t", x="batch", y="loss")
    (x1, y1), (x2, y2), (x3, y3) = centres(svg)
    assert x1 < x2 < x3
    assert y2 < y3 < y1
    assert all(0 < x < WIDTH and 0 < y < HEIGHT for x, y in centres(svg))


def test_values_far_apart_are_drawn_by_their_magnitude() -> None:
    svg = scatter([PlotPoint(10.0**power, 1) for power in (-4, -3, -2)], title="t", x="rate", y="loss")
    (first, _), (second, _), (third, _) = centres(svg)
    assert second - first == pytest.approx(third - second, abs=0.2)
    assert {"0.0001", "0.001", "0.01"} <= set(texts(svg))


def test_values_that_are_no_numbers_have_their_names_on_the_axis() -> None:
    points = [PlotPoint(0, 1), PlotPoint(1, 2)]
    assert {"adam", "sgd"} <= set(texts(scatter(points, title="t", x="optimizer", y="loss", ordered=["adam", "sgd"])))


def test_a_value_that_is_not_finite_is_left_out_and_nothing_measured_is_said() -> None:
    svg = scatter([PlotPoint(1, float("nan")), PlotPoint(2, 3)], title="t", x="x", y="y")
    assert len(centres(svg)) == 1
    assert any("nothing was measured" in text for text in texts(scatter([], title="loss", x="x", y="y")))


def test_no_name_becomes_markup() -> None:
    pictures = [
        scatter([PlotPoint(1, 1, HOSTILE, HOSTILE)], title=HOSTILE, x=HOSTILE, y=HOSTILE),
        stacked_bars([(HOSTILE, {HOSTILE: 2.0})], title=HOSTILE, unit=HOSTILE),
        parallel_coordinates([HOSTILE, "loss"], [([HOSTILE, 1.0], 1.0)], title=HOSTILE, best_is_high=True),
        growing([(1, 2)], title=HOSTILE, x=HOSTILE, y=HOSTILE, limit=3),
    ]
    for svg in pictures:
        assert not elements(svg, "script")
        assert any(text.startswith("<script>") for text in texts(svg))


def test_signs_that_are_not_seen_are_made_visible_in_every_picture() -> None:
    hidden = "loss\u202e\x1b[31m\x00"
    pictures = [
        scatter([PlotPoint(1, 1, hidden, hidden)], title=hidden, x=hidden, y=hidden),
        stacked_bars([(hidden, {hidden: 2.0})], title=hidden, unit=hidden),
        parallel_coordinates([hidden, "loss"], [([hidden, 1.0], 1.0)], title=hidden, best_is_high=True),
        growing([(1, 2)], title=hidden, x=hidden, y=hidden, limit=3),
    ]
    for svg in pictures:
        assert not {"\u202e", "\x1b", "\x00"} & set(svg)
        assert elements(svg, "text")  # it is well formed


def test_a_drawing_of_its_own_is_white_and_says_what_it_is() -> None:
    svg = picture(
        [words(1, 2, "a < b", anchor="end", font_size=9), rule((0, 0), (3, 4), stroke="#ddd")], 10, 20, "A & B"
    )
    (line,), (text,) = elements(svg, "line"), elements(svg, "text")
    assert (line.attrib["x2"], line.attrib["y2"], line.attrib["stroke"]) == ("3.0", "4.0", "#ddd")
    assert (text.text, text.attrib["text-anchor"], text.attrib["font-size"]) == ("a < b", "end", "9")
    assert [title.text for title in elements(svg, "title")] == ["A & B"]
    assert elements(svg, "path")[0].attrib["fill"] == "#fff"


def test_the_parts_of_a_bar_stand_one_behind_the_other_to_one_scale() -> None:
    svg = stacked_bars([("a", {"queue": 10.0, "run": 30.0}), ("b", {"queue": 20.0, "run": 0.0})], title="t", unit="s")
    bars = [bar for bar in elements(svg, "rect") if bar.attrib["height"] == "16"]
    widths = [float(bar.attrib["width"]) for bar in bars]
    assert widths[1] == pytest.approx(3 * widths[0], rel=0.02)
    assert float(bars[1].attrib["x"]) == pytest.approx(float(bars[0].attrib["x"]) + widths[0], abs=0.2)
    assert widths[2] == pytest.approx(2 * widths[0], rel=0.02)
    assert {"40", "20"} <= set(texts(svg))


@pytest.mark.parametrize(("high", "last"), [(True, 3.0), (False, 1.0)])
def test_the_best_configuration_is_drawn_last_and_stands_out(high: bool, last: float) -> None:
    lines: list[tuple[list[float | str], float]] = [([1.0, 1.0], 1.0), ([2.0, 2.0], 2.0), ([3.0, 3.0], 3.0)]
    svg = parallel_coordinates(["rate", "score"], lines, title="t", best_is_high=high)
    drawn = elements(svg, "polyline")
    strokes = [line.attrib["stroke"] for line in drawn]
    assert strokes[-1] not in strokes[:-1]
    height = {3.0: min, 1.0: max}[last]
    ends = [float(line.attrib["points"].split(",")[-1]) for line in drawn]
    assert ends[-1] == height(ends)


def test_what_was_spent_grows_in_steps_below_the_line_of_the_limit() -> None:
    svg = growing([(0.0, 1.0), (1.0, 3.0)], title="t", x="hours", y="GPU hours", limit=4.0)
    limit = next(line for line in elements(svg, "line") if "stroke-dasharray" in line.attrib)
    path = elements(svg, "path")[0].attrib["d"]
    heights = [float(pair.split()[1]) for pair in path.replace("M", "L").split("L")[1:]]
    assert heights == sorted(heights, reverse=True)
    assert min(heights) > float(limit.attrib["y1"])
    assert "limit 4" in texts(svg)


def test_a_curve_goes_through_its_points_and_a_single_sample_is_a_dot() -> None:
    svg = curves({"memory": [(0, 0), (10, 50), (20, 100)], "CPU": [(10, 100)], HOSTILE: []},
                 title=HOSTILE, x="minutes", y="%", most=100)  # fmt: skip
    (line, *_) = [element.attrib["points"].split() for element in elements(svg, "polyline")]
    points = [tuple(map(float, pair.split(","))) for pair in line]
    assert [x for x, _ in points] == sorted({x for x, _ in points})
    assert points[0][1] - points[1][1] == pytest.approx(points[1][1] - points[2][1])
    ((x, y),) = centres(svg)
    assert (x, y) == (points[1][0], points[2][1])
    assert HOSTILE in texts(svg)
    assert not elements(svg, "script")
    assert "nothing was measured" in curves({"memory": []}, title="t", x="x", y="y")


def test_what_ran_when_has_a_row_for_each_run_and_bars_as_long_as_their_time() -> None:
    rows = [
        ("r1-t1", [TimeBar(0, 1, "waited"), TimeBar(1, 3, "passed", HOSTILE)]),
        ("r1-t2", [TimeBar(2, 4, "failed")]),
    ]
    svg = what_ran_when(rows, title="t", unit="hours")
    bars = [{name: float(element.attrib[name]) for name in ("x", "y", "width")} for element in elements(svg, "rect")]
    waited, passed, failed, *legend = bars
    assert passed["width"] == failed["width"] == pytest.approx(2 * waited["width"], abs=0.2)
    assert passed["x"] == pytest.approx(waited["x"] + waited["width"], abs=0.2)
    assert waited["y"] == passed["y"] < failed["y"]
    assert len(legend) == 3
    assert {"r1-t1", "r1-t2", "hours", "waited", "passed", "failed"} <= set(texts(svg))
    assert not elements(svg, "script")
    assert "nothing was measured" in what_ran_when([], title="t", unit="hours")
