from __future__ import annotations

import io
import json
import resource
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.scripts.configs import experiment_config
from slurm_agent_tools.scripts.configs.checks import config_checks, schema_check

SCHEMA = {
    "type": "object",
    "required": ["seed", "model"],
    "additionalProperties": False,
    "properties": {
        "seed": {"type": "integer", "description": "One seed for all generators"},
        "lr": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "start": {"type": "string", "format": "date"},
        "optimizer": {"enum": ["adam", "sgd"]},
        "model": {
            "type": "object",
            "additionalProperties": False,
            "properties": {"layers": {"type": "array", "items": {"$ref": "#/$defs/width"}}, "dropout": {"type": "number"}},
        },
        "data": {
            "oneOf": [
                {"type": "string"},
                {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
            ]
        },
    },
    "$defs": {"width": {"type": "integer", "minimum": 1}},
}  # fmt: skip


def against(text: str, schema: object = SCHEMA, suffix: str = ".yaml"):
    config = experiment_config.parse_config(text.encode(), suffix, "configs/x")
    return [
        (c.path, c.line, c.message, c.remedy)
        for c in schema_check.complaints_against(config, json.dumps(schema).encode())
    ]


def test_a_config_that_fits_has_no_complaints():
    assert against("seed: 1\nlr: 0.5\nstart: 2026-01-31\nmodel: {layers: [4, 8]}\ndata: a.csv\n") == []


@pytest.mark.parametrize(
    ("text", "path", "line", "says", "remedy"),
    [
        ("seed: one\nmodel: {}\n", "seed", 1, 'is "one" instead of a whole number', "One seed for all generators"),
        ("seed: 1\nmodel: {}\nlr: 3\n", "lr", 3, "is 3, more than 1", "Write a value that fits."),
        ("seed: 1\nmodel: {}\noptimizer: adamw\n", "optimizer", 3, 'is "adamw", not one of ["adam", "sgd"]', "Write"),
        ("seed: 1\nmodel:\n  layers:\n  - 4\n  - 0\n", "model.layers[1]", 5, "is 0, less than 1", "Write"),
        ("seed: 1\nmodel:\n  dropuot: 0.1\n", "model.dropuot", 3, "is not a known key", "Did you mean dropout?"),
        ("model: {}\n", "seed", 1, "is missing", "One seed for all generators"),
        ("seed: 1\nmodel: {}\ndata:\n  pth: a\n", "data.path", 3, "is missing", "Write `path:`"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_with_its_line_and_the_mend(text, path, line, says, remedy):
    [(where, number, message, mend)] = against(text)

    assert (where, number, message) == (path, line, f"{path} {says}.")
    assert mend.startswith(remedy)


def test_lines_are_known_in_toml_and_json_too():
    assert against('seed = 1\n[model]\ndropout = "x"\n', suffix=".toml")[0][:2] == ("model.dropout", 3)
    assert against('{"seed": 1,\n"model": {\n"dropout": "x"}}', suffix=".json")[0][:2] == ("model.dropout", 3)


def test_of_many_complaints_the_first_fifty_and_a_count_are_told():
    told = against("\n".join(f"k{number}: 1" for number in range(80)) + "\nseed: 1\nmodel: {}\n")

    assert len(told) == 51
    assert told[-1][2].startswith("30 more places")


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        (b"{", "is not JSON"),
        (b"[1]", "instead of a schema"),
        (b'{"properties": {"a": {"type": "whole"}}}', "is not a JSON Schema at properties.a.type"),
        (b'{"$ref": "http://127.0.0.1:9/x.json"}', "refers to 'http://127.0.0.1:9/x.json', which is not in it"),
        (b'{"$ref": "other.json"}', "refers to 'other.json'"),
        (b'{"$ref": "#"}', "refers to itself"),
        (b'{"patternProperties": {"(": {}}}', "is not"),
    ],
)
def test_a_schema_that_cannot_be_used_is_an_error_and_nothing_is_fetched(schema, says):
    with pytest.raises(InputError, match=r"configs/schema\.json") as caught:
        schema_check.complaints_against(experiment_config.parse_config(b"a: 1", ".yaml", "x"), schema)

    assert says in caught.value.message
    assert caught.value.hint


def test_with_a_schema_keys_are_its_business_and_fixed_devices_stay_errors():
    config = experiment_config.parse_config(b"batch_size: many\ndevice: cuda:1\nlearning_rte: 1\n", ".yaml", "x")

    errors, warnings, _ = config_checks.check_config(config, {}, shaped=True)

    assert [c.path for c in errors] == ["device"]
    assert warnings == []


def test_the_schema_in_the_guide_says_what_the_guide_says_of_it():
    guide = (Path(__file__).parents[3] / "docs/guides/configs.md").read_text()
    schema = json.loads(guide.partition("```json\n")[2].partition("```")[0])

    assert against("seed: 1\nlr: 0.1\nslurm: {gpus: 1}\n", schema) == []
    assert against("lrr: 0.1\n", schema) == [
        ("lrr", 1, "lrr is not a known key.", "Did you mean lr?"),
        ("seed", 1, "seed is missing.", "One seed for all generators"),
    ]


# --- as the process of its own answers --------------------------------------------------------------------------------


class Streams:
    """Standard input and output of that process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, config: bytes, schema: bytes) -> None:
        self.written = io.StringIO()
        monkeypatch.setattr(sys, "argv", ["schema_check", ".yaml", str(len(config))])
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(config + schema)))
        monkeypatch.setattr(sys, "stdout", self.written)
        self.bounds: dict[int, tuple[int, int]] = {}
        monkeypatch.setattr(resource, "setrlimit", self.bounds.__setitem__)


@pytest.mark.parametrize(
    ("config", "schema", "answer"),
    [
        (b"a: 1\n", b'{"required": ["a"]}', {"complaints": []}),
        (b"a: 1\n", b'{"type": "nonsense"}', "problem"),
    ],
)
def test_the_process_reads_both_parts_and_answers_in_one_document(monkeypatch, config, schema, answer):
    streams = Streams(monkeypatch, config, schema)
    schema_check.main()
    body = json.loads(streams.written.getvalue())
    assert body == answer if isinstance(answer, dict) else answer in body
    seconds = (schema_check.SECONDS, schema_check.SECONDS)
    assert streams.bounds == {
        resource.RLIMIT_CPU: seconds,
        resource.RLIMIT_AS: (schema_check.MEMORY, schema_check.MEMORY),
    }


def test_the_processes_complaint_names_path_and_line(monkeypatch):
    streams = Streams(monkeypatch, b"seed: x\n", b'{"properties": {"seed": {"type": "integer"}}}')
    schema_check.main()
    (complaint,) = json.loads(streams.written.getvalue())["complaints"]
    assert (complaint["path"], complaint["line"]) == ("seed", 1)
