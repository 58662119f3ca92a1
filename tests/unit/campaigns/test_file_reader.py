"""Reading a campaign's file: what is right, and of what is wrong the line, the field, the value and the mend."""

from __future__ import annotations

import json
from typing import Any

import pytest

from slurm_agent_tools.campaigns.file_reader import LARGEST, checked_name, problems_of, read_campaign
from slurm_agent_tools.errors import ConfigError, InputError

pytestmark = pytest.mark.proves("campaign-file-told")

GOOD: dict[str, Any] = {
    "campaign": 1,
    "objective": {"metric": "loss", "direction": "minimize"},
    "stages": [
        {
            "name": "prepare",
            "kind": "cpu",
            "script": "jobs/prepare.sh",
            "parameters": {"chunk": {"default": 100, "environment": "CHUNK"}},
            "resources": {"cpus": 4, "memory": "4G", "time_limit": "1h"},
        },
        {
            "name": "train",
            "kind": "gpu",
            "command": ["python3", "train.py", "--config", "{config}", "--out", "runs/{trial}.json"],
            "config_file": "train.yaml",
            "parameters": {
                "lr": {"default": 0.1, "argument": "--lr"},
                "size": {"default": 16, "config": "data.size"},
                "mode": {"default": "fast", "argument": "mode="},
                "steps": {"default": 100, "argument": "--steps", "length": True},
            },
            "resources": {"cpus": 4, "memory": "8G", "gpus": 1, "time_limit": "2h"},
            "smoke": {"change": {"steps": 10}, "time_limit": "10min"},
            "passes": {"finite": ["loss"], "files": ["runs/{trial}.json"]},
            "metrics": {"file": "runs/{trial}.json"},
        },
    ],
    "rounds": [
        {"kind": "smoke"},
        {
            "kind": "grid",
            "hypothesis": "Larger learns faster.",
            "stages": ["train"],
            "vary": {"lr": [0.1, 0.2], "gpus": [1, 2]},
        },
        {"kind": "scale_up", "hypothesis": "It stays.", "stages": ["train"], "change": {"steps": 1000}},
    ],
    "limits": {"cpu_hours": 100, "gpu_hours": 10},
    "fixes": [{"failure": "gpu-out-of-memory", "multiply": {"size": 0.5}}],
}


def changed(place: str, value: object) -> dict[str, Any]:
    """The good file with another value; REMOVED takes the key away."""
    made = json.loads(json.dumps(GOOD))
    here = made
    *above, last = [int(part) if part.isdigit() else part for part in place.split("/")]
    for part in above:
        here = here[part]
    if value == "REMOVED":
        del here[last]
    elif isinstance(here, list) and last == len(here):
        here.append(value)
    else:
        here[last] = value
    return made


def found(document: object) -> list[ConfigError]:
    return list(problems_of(json.dumps(document).encode(), "campaigns/one.json"))


def test_a_right_file_is_read_from_json_and_from_yaml() -> None:
    assert found(GOOD) == []
    file = read_campaign(json.dumps(GOOD).encode(), "campaigns/one.yaml")  # JSON is YAML
    assert file.stage("train").resources.memory == 8 * 2**30
    assert file.stage("prepare").resources.time_limit == 3600
    assert file.fixes[0].on == "gpu-out-of-memory"


TRAIN = "stages/1"

BAD: list[tuple[str, object, str, str]] = [
    # what is changed, to what, the field that the error names, words of the error
    ("campaign", 2, "campaign", "1"),
    ("colour", 1, "colour", "not known"),
    ("title", "two\nlines", "title", "one line"),
    ("objective", {"metric": "loss"}, "objective", "direction"),
    ("objective", {"metric": "x", "direction": "up"}, "objective.direction", "minimize"),
    ("objective", {"metric": "x", "direction": "minimize", "wall_clock": "x"}, "objective", "either"),
    ("objective", {"wall_clock": "a day", "target": -5.0}, "objective.target", "above 0"),
    ("stages", [], "stages", "at least 1"),
    ("stages/0/name", "train", "stages[1].name", "twice"),
    ("stages/0/name", "a b", "stages[0].name", "pattern"),
    ("stages/0/kind", "tpu", "stages[0].kind", "cpu"),
    ("stages/0/script", "/etc/passwd", "stages[0].script", "inside the project"),
    ("stages/0/script", "../other.sh", "stages[0].script", "inside the project"),
    ("stages/0/script", "a b.sh", "stages[0].script", "letters"),
    ("stages/0/script", "fit.R", "stages[0].script", "program that reads it"),
    (
        "stages/0/parameters/campaign_trial",
        {"default": 1, "argument": "-c"},
        "stages[0].parameters.campaign_trial",
        "its own",
    ),
    ("stages/0/script", "{trial}.sh", "stages[0].script", "placeholder"),
    ("stages/0/command", ["x"], "stages[0]", "either script or command"),
    ("stages/0/resources/gpus", 1, "stages[0].resources.gpus", "kind cpu"),
    ("stages/0/resources/memory", 4, "stages[0].resources.memory", "80G"),
    ("stages/0/resources/memory", "much", "stages[0].resources.memory", "memory"),
    ("stages/0/resources/time_limit", "REMOVED", "stages[0].resources.time_limit", "required"),
    ("stages/0/resources/time_limit", 3600, "stages[0].resources.time_limit", "24h"),
    ("stages/0/resources/cpus", 0, "stages[0].resources.cpus", "1"),
    ("stages/0/parameters/chunk", {"default": 1}, "stages[0].parameters.chunk", "exactly one"),
    ("stages/0/parameters/chunk/environment", "PATH", "stages[0].parameters.chunk.environment", "decides"),
    ("stages/0/parameters/chunk/environment", "LD_PRELOAD", "stages[0].parameters.chunk.environment", "decides"),
    ("stages/0/parameters/chunk/default", [1], "stages[0].parameters.chunk.default", "number"),
    ("stages/0/parameters/chunk/default", "--rm", "stages[0].parameters.chunk.default", "dash"),
    ("stages/0/parameters/chunk/default", "a\tb", "stages[0].parameters.chunk.default", "printed"),
    ("stages/0/parameters/chunk/default", "1e-3", "stages[0].parameters.chunk.default", "write 0.001"),
    ("stages/0/parameters/chunk/default", 10**30, "stages[0].parameters.chunk.default", "digits"),
    ("stages/0/parameters/cpus", {"default": 1, "argument": "-c"}, "stages[0].parameters.cpus", "resource"),
    (f"{TRAIN}/resources/gpus", 0, "stages[1].resources.gpus", "kind gpu"),
    (f"{TRAIN}/command", [], "stages[1].command", "empty"),
    (f"{TRAIN}/command/0", "rm -rf", "stages[1].command[0]", "program"),
    (f"{TRAIN}/command/3", "{conf}", "stages[1].command[3]", "{conf}"),
    (f"{TRAIN}/config_file", "REMOVED", "stages[1].parameters.size.config", "config_file"),
    (f"{TRAIN}/config_file", "train.ini", "stages[1].config_file", ".yaml"),
    (f"{TRAIN}/parameters/lr/argument", "--steps", "stages[1].parameters.lr.argument", "another"),
    (f"{TRAIN}/parameters/lr/argument", "--lr;x", "stages[1].parameters.lr.argument", "pattern"),
    (f"{TRAIN}/parameters/steps/default", "all", "stages[1].parameters.steps.default", "length"),
    (f"{TRAIN}/smoke/change", {"lr": 1.0}, "stages[1].smoke.change.lr", "no length"),
    (f"{TRAIN}/smoke/change", {"epochs": 1}, "stages[1].smoke.change.epochs", "no parameter"),
    (f"{TRAIN}/smoke/time_limit", "3h", "stages[1].smoke.time_limit", "above"),
    (f"{TRAIN}/passes/files/0", "../x", "stages[1].passes.files[0]", "inside the project"),
    (f"{TRAIN}/metrics/file", "x.txt", "stages[1].metrics.file", ".csv"),
    (f"{TRAIN}/metrics/file", "runs/last.json", "stages[1].metrics.file", "{trial}"),
    (f"{TRAIN}/metrics", {"pattern": {"loss": "("}}, "stages[1].metrics.pattern.loss", "regular expression"),
    (f"{TRAIN}/metrics", {"pattern": {"loss": "loss=(a+)+"}}, "stages[1].metrics.pattern.loss", "repeats a group"),
    (f"{TRAIN}/metrics", {"pattern": {"loss": "loss"}}, "stages[1].metrics.pattern.loss", "one, around"),
    ("rounds/0/kind", "smok", "rounds[0]", "grid"),
    ("rounds/1/hypothesis", "REMOVED", "rounds[1].hypothesis", "required"),
    ("rounds/1/stages", ["eval"], "rounds[1].stages[0]", "no stage"),
    ("rounds/1/stages", [], "rounds[1].stages", "empty"),
    ("rounds/1/vary", {"rate": [1, 2]}, "rounds[1].vary.rate", "no parameter"),
    ("rounds/1/vary", {"lr": "x"}, "rounds[1].vary.lr", "list"),
    ("rounds/1/vary", {"lr": [0.1, 0.1]}, "rounds[1].vary.lr[1]", "twice"),
    ("rounds/1/vary", {"lr": [0.1, "big"]}, "rounds[1].vary.lr[1]", "a number"),
    ("rounds/1/vary", {"lr": [0.1, {}]}, "rounds[1].vary.lr[1]", "number"),
    ("rounds/1/vary", {"steps": [1, 2]}, "rounds[1].vary.steps", "length"),
    ("rounds/1/vary", {"memory": [8, 16]}, "rounds[1].vary.memory[0]", '"8G"'),
    ("rounds/1/vary", {"gpus": [0.5]}, "rounds[1].vary.gpus[0]", "whole"),
    ("rounds/1/vary", {"lr": [0.1], "mode": ["a"], "size": [1]}, "rounds[1].vary", "3 factors"),
    ("rounds/2/change", {"lr": 1.0}, "rounds[2].change.lr", "no length"),
    ("rounds", [{"kind": "smoke"}, {"kind": "scale_up", "hypothesis": "x"}], "rounds[1].kind", "best of"),
    ("limits", {"gpu_hours": 1}, "limits.cpu_hours", "required"),
    ("limits", {"cpu_hours": 1}, "limits.gpu_hours", "required"),
    ("limits/rounds", 2, "limits.rounds", "3 rounds"),
    ("limits/trials", 5, "limits.trials", "6 trials"),
    ("limits/same_failure", 1, "limits.same_failure", "2"),
    ("fixes/0/failure", "bad-luck", "fixes[0].failure", "host-out-of-memory"),
    ("fixes/0/multiply", {"lr2": 0.5}, "fixes[0].multiply.lr2", "no parameter"),
    ("fixes/0/multiply", {"mode": 0.5}, "fixes[0].multiply.mode", "no number"),
    ("fixes/0/multiply", {"steps": 0.5}, "fixes[0].multiply.steps", "length"),
    ("fixes/0/multiply", {"size": 1}, "fixes[0].multiply.size", "changes nothing"),
    ("fixes/0", {"failure": "gpu-out-of-memory"}, "fixes[0]", "what is done"),
    ("fixes/0", {"failure": "gpu-out-of-memory", "memory": "1G"}, "fixes[0].memory", "not above"),
    ("fixes/0", {"failure": "time-limit", "change": {"lr": "x"}}, "fixes[0].change.lr", "a number"),
    ("fixes/0/stages", ["nowhere"], "fixes[0].stages[0]", "no stage"),
]


@pytest.mark.parametrize(("place", "value", "field", "words"), BAD)
def test_a_bad_file_is_told_by_field_words_and_mend(place: str, value: object, field: str, words: str) -> None:
    problems = found(changed(place, value))
    named = [one for one in problems if one.field == field]
    assert named, [(one.field, one.message) for one in problems]
    told = " ".join(f"{one.message} {one.hint}" for one in named)
    assert words in told
    assert "campaigns/one.json" in told


VARIED: list[tuple[dict[str, object], str, str]] = [
    ({"vary": {"lr": {"low": 1}}, "trials": 3}, "vary.lr.high", "required"),
    ({"vary": {"lr": {"low": 2, "high": 1}}, "trials": 3}, "vary.lr", "below high"),
    ({"vary": {"lr": {"low": 0, "high": 1, "log": True}}, "trials": 3}, "vary.lr", "above 0"),
    ({"vary": {"mode": {"low": 0, "high": 1}}, "trials": 3}, "vary.mode", "range"),
    ({"vary": {"memory": {"low": 1, "high": 2}}, "trials": 3}, "vary.memory", "range"),
    ({"vary": {"cpus": {"low": 1, "high": 2}}, "trials": 3}, "vary.cpus", "whole: true"),
    ({"vary": {"lr": {"low": 0.1, "high": 0.9, "whole": True}}, "trials": 3}, "vary.lr", "no whole number"),
    ({"vary": {"lr": {"low": 1, "high": 1e30, "whole": True}}, "trials": 3}, "vary.lr", "18 digits"),
    ({"vary": {"lr": {"low": -1e308, "high": 1e308}}, "trials": 3}, "vary.lr", "wider"),
    ({"stages": None, "vary": {"gpus": {"low": 1, "high": 2, "whole": True}}, "trials": 3}, "vary.gpus", "kind cpu"),
    ({"vary": {"lr": {"low": 1, "high": 9, "log": True, "step": 1}}, "trials": 3}, "vary.lr.step", "beside log"),
    ({"vary": {"lr": 3}, "trials": 3}, "vary.lr", "a range with low and high"),
    ({"vary": {"lr": [0.1]}, "trials": 0}, "trials", "1"),
    ({"vary": {"lr": [0.1]}}, "trials", "required"),
]


@pytest.mark.parametrize(("fields", "field", "words"), VARIED)
def test_a_bad_range_is_told(fields: dict[str, object], field: str, words: str) -> None:
    one = {"kind": "random", "hypothesis": "By chance.", "stages": ["train"], **fields}
    problems = found(changed("rounds/1", one))
    assert words in " ".join(f"{p.message} {p.hint}" for p in problems if p.field == f"rounds[1].{field}"), problems


def test_a_list_of_trials_has_two_factors_at_most_and_each_once() -> None:
    one = {"kind": "list", "hypothesis": "These.", "stages": ["train"]}
    trials = [{"lr": 0.1, "mode": "a"}, {"size": 3}, {"lr": 0.1, "mode": "a"}]
    told = {p.field: p.message for p in found(changed("rounds/1", {**one, "trials": trials}))}
    assert "3 factors" in told["rounds[1].trials"]
    assert "twice" in told["rounds[1].trials[2]"]


def test_many_factors_are_refused_with_their_names_and_the_way_out() -> None:
    vary = {"lr": [0.1], "mode": ["a"], "size": [1]}
    (one,) = found(changed("rounds/1/vary", vary))
    assert "lr, mode, size" in one.message
    assert "kind: search" in one.hint
    search = {"kind": "search", "hypothesis": "All.", "stages": ["train"], "vary": vary, "trials": 5}
    assert found(changed("rounds/1", search)) == []
    (named,) = found(changed("rounds/1", {**search, "sampler": "tpe"}))
    assert named.field == "rounds[1].sampler"


def test_halving_needs_a_length_and_an_order() -> None:
    one = {
        "kind": "halving", "hypothesis": "x", "stages": ["train"], "vary": {"lr": [0.1, 0.2]}, "trials": 4,
        "length": "steps", "from": 10, "to": 90,
    }  # fmt: skip
    assert found(changed("rounds/1", one)) == []
    assert "below to" in found(changed("rounds/1", {**one, "from": 90}))[0].message
    assert "whole" in found(changed("rounds/1", {**one, "from": 1.5}))[0].message
    assert "no length of the stage train" in found(changed("rounds/1", {**one, "length": "lr"}))[0].message
    assert {p.field for p in found(changed("rounds/1", {**one, "stages": None}))} == {"rounds[1].length"}


YAML = b"""campaign: 1
objective: {metric: loss, direction: minimize}
stages:
  - name: train
    kind: cpu
    command: [python3, train.py]
    parameters:
      lr: {default: 0.1, argument: --lr, colour: red}
    resources: {cpus: zero, time_limit: 1h}
rounds:
  - {kind: smoke}
limits: {cpu_hours: 1}
"""


def test_all_problems_are_told_at_once_each_with_its_line() -> None:
    with pytest.raises(ConfigError) as raised:
        read_campaign(YAML, "campaigns/one.yaml")
    said = raised.value.message
    assert "2 problems" in said
    assert "stages[0].parameters.lr.colour" in said
    assert "line 8" in said
    assert "stages[0].resources.cpus: 'zero'" in said
    assert "line 9" in said


def test_more_problems_than_can_be_shown_are_counted() -> None:
    document = changed("fixes", [{"failure": f"none-{index}", "memory": "64G"} for index in range(60)])
    with pytest.raises(ConfigError, match=r"has 60 problems"):
        read_campaign(json.dumps(document).encode(), "one.json")
    with pytest.raises(ConfigError, match=r"and \d+ more"):
        read_campaign(json.dumps(document).encode(), "one.json")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"a: [", "YAML"),
        (b"a: 1\na: 2\n", "twice"),
        (b"\xff\xfe", "UTF-8"),
        (b"- 1\n", "mapping"),
        (b"campaign: !!python/object:os.system 1\n", "tag"),
        (b"fixes:\n  - on: x\n", "'on' is read as a bool"),
        (b"x" * (LARGEST + 1), "larger than"),
    ],
)
def test_what_is_no_document_is_told(data: bytes, words: str) -> None:
    problems = list(problems_of(data, "campaigns/one.yaml"))
    assert words in " ".join(one.message for one in problems)


def test_a_name_is_small_letters_digits_and_dashes() -> None:
    assert checked_name("learning-rate_2") == "learning-rate_2"
    for bad in ("", "../x", "A", "a b", "x" * 42, "a/b", "-a"):
        with pytest.raises(InputError):
            checked_name(bad)


ODD: list[object] = [
    None,
    True,
    -1,
    10**400,
    1.5,
    "",
    "x",
    "1e-3",
    [],
    [[]],
    {},
    {"a": 1},
    {"low": 1, "high": 2},
    ["x", 1],
]


def places(value: object, above: str = "") -> list[str]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [one for key, item in inner for one in (f"{above}{key}", *places(item, f"{above}{key}/"))]


def test_whatever_stands_anywhere_is_read_or_told() -> None:
    for place in places(GOOD):
        for value in ODD:
            document = changed(place, value)
            problems = found(document)
            if not problems:
                read_campaign(json.dumps(document).encode(), "one.json")
            assert all(one.message and one.hint for one in problems)
