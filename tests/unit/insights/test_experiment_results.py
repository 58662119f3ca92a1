from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime

import pytest

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.insights import experiment_results
from slurm_agent_tools.models.result import Environment, GitState, ResultRecord, SaveResult, SlurmJobRecord
from slurm_agent_tools.models.shapes import JobShown

NOW = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
ENVIRONMENT = Environment(git=GitState(), python_version="3.11.2", platform="Linux")


def record(name: str = "base", config: dict[str, object] | None = None, baseline: ResultRecord | None = None, **facts):
    ask = SaveResult(name=name, status="success", **facts)
    return experiment_results.build_result(
        ask, config=config, baseline_record=baseline, environment=ENVIRONMENT, now=NOW, run_id="r1"
    )


def test_a_record_holds_what_was_given_and_the_difference_to_its_baseline():
    base = record(config={"lr": 0.1, "model": {"layers": [1, 2]}, "old": 1}, metrics={"loss": 0.5})
    found = record("next", {"lr": 0.2, "model": {"layers": [1, 3]}}, base, metrics={"loss": 0.4}, notes="better")

    assert found.config_diff == {
        "lr": {"baseline": 0.1, "target": 0.2},
        "model.layers[1]": {"baseline": 2, "target": 3},
        "old": {"baseline": 1, "target": None},
    }
    assert (found.baseline_experiment, found.run_id, found.notes) == ("base", "r1", "better")


def test_a_record_survives_writing_and_reading():
    config = {"day": date(2026, 1, 2), "limit": math.inf, 7: {"x": (1, 2)}, "text": "ü"}
    found = record(config=config, metrics={"loss": 0.5, "why": "NaN"})  # type: ignore[arg-type]

    data = found.model_dump_json(indent=2).encode()

    assert json.loads(data)["config"] == {"day": "2026-01-02", "limit": "inf", "7": {"x": [1, 2]}, "text": "ü"}
    assert experiment_results.parse_record(data, "results/x.json") == found


@pytest.mark.parametrize(
    ("field", "facts"),
    [
        ("metrics.loss", {"metrics": {"loss": math.nan}}),
        ("metrics.a.b[1]", {"metrics": {"a": {"b": [1, -math.inf]}}}),
        ("notes", {"notes": "\udce9"}),
        ("name", {"name": ""}),
        ("name", {"name": "../up"}),
        ("name", {"name": ".."}),
        ("name", {"name": "/etc/passwd"}),
        ("name", {"name": "two\nlines"}),
        ("name", {"name": "x" * 101}),
        ("name", {"name": "///"}),
    ],
)
def test_what_a_record_cannot_hold_is_refused_by_its_field(field, facts):
    with pytest.raises(InputError) as caught:
        record(**facts)
    assert caught.value.field == field
    assert caught.value.hint


def test_a_configuration_without_end_is_refused():
    endless: dict[str, object] = {}
    endless["x"] = endless
    with pytest.raises(InputError, match="deeper"):
        record(config=endless)


def test_a_file_is_named_by_time_and_name_and_numbered_from_the_second_on():
    assert experiment_results.file_name(NOW, "base", 1) == "2026-03-01_12-00-05_base.json"
    assert experiment_results.file_name(NOW, "a b/c|é", 2) == "2026-03-01_12-00-05_a-b-c-2.json"


def test_the_newest_result_of_an_experiment_is_found():
    names = [
        "2026-03-01_12-00-05_base.json",
        "2026-03-01_12-00-05_base-2.json",
        "2026-03-02_12-00-05_base-line.json",
        "2026-03-03_12-00-05_other.json",
        "base.json",
    ]
    assert experiment_results.find_result(names, "base") == "2026-03-01_12-00-05_base-2.json"
    assert experiment_results.find_result(names, "base-line") == "2026-03-02_12-00-05_base-line.json"


def test_a_name_that_is_not_there_is_answered_with_few_that_are_the_nearest_first():
    names = [f"2026-03-0{day}_12-00-05_run{day}.json" for day in range(1, 8)]
    strange = ["notes.json", "2026-03-09_12-00-05_do this.json", "2026-03-01_12-00-05_run1-2.json"]

    found = experiment_results.choice([*names, *strange], "2run")

    assert found == "Name a file or an experiment: run7, run6, run5, run4, run3 and 2 more."
    assert experiment_results.choice([*names, *strange], "run1x").startswith("Name a file or an experiment: run1, ")
    assert "none is saved there yet" in experiment_results.choice(["notes.json"], "run")


def test_an_earlier_result_of_the_same_name_is_named_and_no_other():
    names = ["2026-03-01_12-00-05_base.json", "2026-03-02_12-00-05_base.json", "2026-03-03_12-00-05_base-line.json"]

    told = experiment_results.saved_before(names, f"results/{names[1]}", "base")

    assert told.startswith(f" An earlier result of that name stays in results/{names[0]}:")
    assert experiment_results.saved_before(names, f"results/{names[2]}", "base-line") == ""


@pytest.mark.parametrize(("count", "end"), [(5, "m4."), (8, "m4 and 3 more.")])
def test_metrics_of_one_result_only_are_few_and_the_others_are_counted(count, end):
    base, target = record(metrics={"x": 1}), record("next", metrics={"x": 1} | {f"m{n}": n for n in range(count)})
    changes, _ = experiment_results.compare_metrics(base, target, metrics_only=True)

    told = experiment_results.told(changes, "base", "next")

    assert told == f"1 metric compared: next against base. In one of them only: m0, m1, m2, m3, {end}"


def test_an_experiment_whose_name_ends_in_a_number_is_not_taken_for_a_second_save():
    names = ["2026-03-01_12-00-05_base.json", "2026-03-02_12-00-05_base-2.json"]

    assert experiment_results.find_result(names, "base") == "2026-03-01_12-00-05_base.json"
    assert experiment_results.find_result(names, "base-2") == "2026-03-02_12-00-05_base-2.json"
    with pytest.raises(LookupError):
        experiment_results.find_result(names, "bas")


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b"\xff", b'{"experiment_name": "x", "more": 1}'])
def test_a_file_that_is_no_result_is_named(data):
    with pytest.raises(InputError, match=r"results/x\.json"):
        experiment_results.parse_record(data, "results/x.json")


def test_what_is_calculated_of_metrics_is_told_to_six_digits():
    base, target = record(metrics={"acc": 0.7, "big": 1e308}), record("next", metrics={"acc": 0.8, "big": -1e308})
    changes, _ = experiment_results.compare_metrics(base, target, metrics_only=True)

    assert (changes["acc"].change, changes["acc"].percent) == (0.1, 14.2857)
    assert (changes["big"].change, changes["big"].percent) == (None, None)


def test_metrics_are_compared_where_both_are_numbers():
    base = record(metrics={"loss": 0.5, "acc": 0, "note": "a", "gone": 1, "ok": True, "deep": {"f1": -2.0}})
    target = record("next", metrics={"loss": 0.25, "acc": 1, "note": "b", "new": 2, "ok": False, "deep": {"f1": -1.0}})

    changes, config_diff = experiment_results.compare_metrics(base, target, metrics_only=False)
    shown = {name: (change.change, change.percent) for name, change in changes.items()}

    assert shown == {
        "loss": (-0.25, -50.0),
        "acc": (1.0, None),
        "note": (None, None),
        "gone": (None, None),
        "ok": (None, None),
        "deep.f1": (1.0, 50.0),
        "new": (None, None),
    }
    assert changes["gone"].target is None
    assert config_diff is None


@pytest.mark.parametrize(
    ("status", "facts", "why"),
    [
        ("success", None, None),
        ("success", {"state": "COMPLETED", "exit_code": 0}, None),
        ("success", {"state": "UNKNOWN"}, None),
        ("success", {"state": "TIMEOUT"}, "it was saved as success, but Slurm says of job 7: TIMEOUT"),
        ("success", {"state": "FAILED", "exit_code": 3}, "Slurm says of job 7: FAILED (exit code 3)"),
        ("success", {"state": "COMPLETED", "derived_exit_code": 1}, "COMPLETED, and a step of it failed"),
        ("success", {"state": "RUNNING"}, "job 7 had not ended when it was saved: it was RUNNING"),
        ("failed", None, "it was saved as failed"),
        ("cancelled", {"state": "COMPLETED"}, "it was saved as cancelled"),
    ],
)
def test_a_result_that_is_no_normal_one_is_named_with_the_reason(status, facts, why):
    job = None if facts is None else SlurmJobRecord(job=JobShown(job_id="7", name="train", **facts))
    found = record().model_copy(
        update={"status": status, "environment": ENVIRONMENT.model_copy(update={"slurm_job": job})}
    )

    assert (experiment_results.doubt(found) or "").endswith(why or "")
    assert (experiment_results.doubt(found) is None) is (why is None)
    assert experiment_results.not_normal([record(), found, found]).count("base (") == (0 if why is None else 1)


def test_configurations_are_compared_unless_only_metrics_are_wanted():
    base, target = record(config={"lr": 1, "amp": True}), record("next", {"lr": 1.0, "amp": 1})

    assert experiment_results.compare_metrics(base, target, metrics_only=False)[1] == {
        "amp": {"baseline": True, "target": 1}
    }
    assert experiment_results.compare_metrics(base, target, metrics_only=True)[1] is None
