"""Metrics of a trial from what it wrote, and whether it passed: whatever was written, within limits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slurm_agent_tools.campaigns.trial_metrics import LARGEST, log_pattern, metrics_of, passed
from slurm_agent_tools.models.campaign_file import CampaignStage

pytestmark = pytest.mark.proves("campaign-metrics-bounded")


def stage(**more: Any) -> CampaignStage:
    document = {"name": "train", "kind": "cpu", "command": ["x"], "resources": {"time_limit": "1h"}, **more}
    return CampaignStage.model_validate(document)


PATTERN = stage(metrics={"pattern": {"loss": r"val_loss=([-+0-9.e]+)", "acc": r"\bacc[:=] ?([0-9.]+)"}})


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"loss": 0.5, "steps": 3}', {"loss": 0.5, "steps": 3.0}),
        ('{"eval": {"loss": 1e-3, "deep": {"x": -1}}}', {"eval.loss": 0.001, "eval.deep.x": -1.0}),
        ('{"loss": NaN, "up": Infinity, "huge": 1e999, "big": %s}' % ("9" * 400), {}),
        ('{"yes": true, "text": "1", "none": null, "list": [1]}', {}),
        ('{"a\\u0007": 1, "": 2, "b": 3}', {"b": 3.0}),
        ("[1, 2]", {}),
        ("5", {}),
        ('{"loss": 0.5', {}),
        ("", {}),
        ("[" * 100_000, {}),
    ],
)
def test_a_json_object_tells_its_finite_numbers(text: str, found: dict[str, float]) -> None:
    assert metrics_of(stage(), text, "json") == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("epoch,loss\n1,0.9\n2,0.5\n", {"epoch": 2.0, "loss": 0.5}),
        ("epoch,loss\r\n1,0.9\r\n\r\n", {"epoch": 1.0, "loss": 0.9}),
        ("epoch,loss\n1,0.9\n2", {"epoch": 1.0, "loss": 0.9}),
        ("epoch;loss\n1;-.5e-1", {"epoch": 1.0, "loss": -0.05}),
        ("epoch\tloss\n1\tnan", {"epoch": 1.0}),
        ('name,"the loss"\n"a,b", 3 \n', {"the loss": 3.0}),
        ("epoch,loss\n", {}),
        ("", {}),
        ("a" * 200_000 + "\n1", {}),
        ('"' + "a\n" * 1000, {}),
    ],
)
def test_a_csv_file_tells_its_last_whole_line(text: str, found: dict[str, float]) -> None:
    assert metrics_of(stage(), text, "csv") == found


def test_of_very_many_metrics_the_first_are_kept() -> None:
    text = json.dumps({f"m{index}": index for index in range(1000)})
    found = metrics_of(stage(), text, "json")
    assert len(found) == 200
    assert found["m199"] == 199.0
    assert metrics_of(stage(), f'{{"a": 1, "b": "{"x" * LARGEST}"}}', "json") == {}


def test_the_last_line_of_a_log_that_fits_counts() -> None:
    log = "val_loss=0.9 acc: 0.1\n10%|#  | val_loss=0.7\rval_loss=oops\nval_loss=nan\nacc=0.25\nno more\n"
    assert metrics_of(PATTERN, log, "log") == {"loss": 0.7, "acc": 0.25}
    assert metrics_of(stage(), log, "log") == {}


@pytest.mark.parametrize("pattern", [r"x*x*x*loss (\d)", r"loss .*.*.*(?:ab|ac)(\d)", r"a?a?a?a?a?loss\s*\s*\s*=(\d)"])
def test_a_hostile_log_is_given_up_on(pattern: str) -> None:
    known = stage(metrics={"pattern": {"loss": pattern}})
    for text in ("x" * 390 + "loss \n", "loss " + "a" * 400 + "\n", "a" * 200 + "loss" + " " * 300 + "\n"):
        assert metrics_of(known, text * 2000, "log") == {}


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(", "regular expression"),
        ("loss", "0 groups"),
        (r"(loss)=(\d)", "2 groups"),
        (r"(\d+)", "a word beside"),
        (r"a(?:b)?(\d+)", "a word beside"),
        (r"loss=(\d+)+", "repeats a group"),
        (r"loss=(?:a+)*(\d)", "repeats a group"),
        (r"(?i)loss=(\d)", "sets a flag"),
        (r"(?<=loss)=(\d)", "looks around"),
        (r"loss=(?P<x>\d)", "names a group"),
        (r"loss=(\d)\1", "not known here"),
        (r"loss=(\d)|x", "outside of a group"),
        (r"loss=(\d).*.*.*.*", "any length"),
        (r"loss=.{0,400}.{1,}.*x*(\d)", "any length"),
        (r"a?b?c?d?e?f?g?loss=(\d)", "may or may not"),
        ("x" * 300 + r"(\d)", "200 characters"),
    ],
)
def test_a_pattern_whose_search_has_no_bound_is_refused(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        log_pattern(pattern)


@pytest.mark.parametrize(
    ("pattern", "word"),
    [
        (r"loss=([-0-9.e+]+)", "loss="),
        (r"Final (?:train|val) loss: +(\d+\.\d{1,3})", " loss: "),
        (r"los+s=(\d)", "los"),
        (r"colou?r\[(\d)\]", "colo"),
        (r"\bacc\s*=\s*([\d.]+)%", "acc"),
    ],
)
def test_what_every_line_of_it_holds_is_known(pattern: str, word: str) -> None:
    assert log_pattern(pattern).word == word


DEMANDS = stage(passes={"finite": ["acc"], "files": ["runs/{trial}.pt"], "at_least": {"speed": 10.0}})


@pytest.mark.parametrize(
    ("metrics", "files", "smoke", "why"),
    [
        ({"acc": 1.0, "loss": 2.0, "speed": 10.0}, ["runs/{trial}.pt"], False, None),
        ({"loss": 2.0, "speed": 10.0}, ["runs/{trial}.pt"], False, "acc"),
        ({"acc": 1.0, "speed": 10.0}, ["runs/{trial}.pt"], False, "loss"),
        ({"acc": 1.0, "loss": float("nan"), "speed": 10.0}, ["runs/{trial}.pt"], False, "loss"),
        ({"acc": 1.0, "loss": 2.0, "speed": 10.0}, [], False, "runs/{trial}.pt"),
        ({"acc": 1.0, "loss": 2.0, "speed": 9.0}, ["runs/{trial}.pt"], False, "at least 10"),
        ({"acc": 1.0, "loss": 2.0}, ["runs/{trial}.pt"], False, "speed"),
        ({"acc": 1.0, "loss": 2.0}, ["runs/{trial}.pt"], True, None),
    ],
)
def test_a_run_passes_by_what_its_stage_demands(
    metrics: dict[str, float], files: list[str], smoke: bool, why: str | None
) -> None:
    told = passed(DEMANDS, smoke, metrics, files, objective="loss")
    assert told is None if why is None else why in (told or "")


def test_without_demands_a_run_that_ended_well_has_passed() -> None:
    assert passed(stage(), False, {}, []) is None


@pytest.mark.parametrize("value", ["1e160", "-1.7e308", "1e999"])
def test_a_value_beyond_all_measure_is_no_finite_one(value: str) -> None:
    trained = stage()
    found = metrics_of(trained, f'{{"loss": {value}, "other": 1}}', "json")
    assert found == {"other": 1.0}
    assert passed(trained, False, {"loss": float(value)}, (), objective="loss") == "it told no finite value of loss"
