"""The published schema of a campaign's file, and the packaged examples."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import jsonschema
import pytest
import yaml

from slurm_agent_tools.campaigns.file_reader import problems_of, schema

ASSETS = Path(str(resources.files("slurm_agent_tools"))) / "assets" / "campaigns"

KINDS = ("learning-rate", "pipeline", "list", "search")


def test_the_published_schema_is_that_of_the_models() -> None:
    path = ASSETS / "campaign.schema.json"
    made = json.dumps(schema(), indent=2) + "\n"
    if os.environ.get("UPDATE_REFERENCE"):
        path.write_text(made)
    assert path.read_text() == made


def test_the_schema_is_one_and_describes_what_it_holds() -> None:
    found = schema()
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["additionalProperties"] is False
    assert "from" in found["$defs"]["HalvingRound"]["properties"]
    assert "failure" in found["$defs"]["Fix"]["properties"]
    assert found["$defs"]["StageResources"]["properties"]["time_limit"]["type"] == "string"
    assert "What is varied" in found["$defs"]["GridRound"]["properties"]["hypothesis"]["description"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_is_right_by_the_reader_and_by_the_schema(kind: str) -> None:
    data = (ASSETS / f"{kind}.yaml").read_bytes()
    assert list(problems_of(data, f"campaigns/{kind}.yaml")) == []
    jsonschema.validate(yaml.safe_load(data), schema())
    assert data.startswith(b"# yaml-language-server: $schema=campaign.schema.json\n")


def test_the_schema_knows_what_the_reader_refuses() -> None:
    document = yaml.safe_load((ASSETS / "learning-rate.yaml").read_bytes())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "colour": 1}, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "rounds": [{"kind": "grid"}]}, schema())


def test_the_training_learns_and_tells_its_metrics(tmp_path: Path) -> None:
    losses = []
    for rate in ("0.001", "0.1"):
        out = tmp_path / f"{rate}.json"
        program = [sys.executable, str(ASSETS / "programs" / "train.py"), "--lr", rate, "--epochs", "2"]
        done = subprocess.run([*program, "--out", str(out)], capture_output=True, text=True, check=True, timeout=60)
        assert "epoch 2/2 val_loss=" in done.stdout
        losses.append(json.loads(out.read_text())["val_loss"])
    assert losses[1] < losses[0]


@pytest.mark.parametrize("stage", ["fetch", "preprocess", "train"])
def test_each_stage_of_the_pipeline_runs(tmp_path: Path, stage: str) -> None:
    out = tmp_path / "out.json"
    program = [sys.executable, str(ASSETS / "programs" / "pipeline.py"), stage, "--rows", "1000"]
    subprocess.run([*program, "--chunk-size", "100", "--out", str(out)], capture_output=True, check=True, timeout=60)
    assert json.loads(out.read_text())["rows_per_second"] > 0
