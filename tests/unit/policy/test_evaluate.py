"""One evaluation for everybody who asks, and what a check without a cluster leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.unit.policy.plans import live

from slurm_agent_tools.api.rule_examples import PROJECT
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.decision import decision_shown
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import Pin, ScriptReading
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.transport.local import LocalFiles

LOADED = load(shipped())
GIB = 2**30
CHECK = """
import json, sys
from slurm_agent_tools.cli.main import main
code = main(["policy", "check", "--json", "job.sh"])
print(json.dumps([code, sorted(name for name in sys.modules if name.startswith("slurm_agent_tools"))]))
"""
CPU = Partition(name="cpu", state="UP", default=True, nodes=2, max_time_seconds=3600, default_time_seconds=None)


def reading(*lines: str) -> ScriptReading:
    data = "\n".join(["#!/bin/bash", *lines, ""]).encode()
    return anyio.run(lambda: read_script(data, "train.sh", project="/", files=LocalFiles()))


def test_checking_a_script_loads_neither_slurm_nor_the_store(tmp_path: Path):
    (tmp_path / "job.sh").write_text("#!/bin/bash\n#SBATCH --mem=1G --time=5\ntrue\n")

    done = subprocess.run([sys.executable, "-c", CHECK], cwd=tmp_path, capture_output=True, check=True, timeout=60)

    code, loaded = json.loads(done.stdout.splitlines()[-1])
    rooms = tuple(f"slurm_agent_tools.{room}" for room in ("slurm", "store", "services"))
    assert code == 0
    assert "slurm_agent_tools.policy.evaluate" in loaded
    assert [name for name in loaded if name.startswith(rooms)] == []


def test_a_decision_holds_the_very_request_that_was_judged():
    made = evaluate(reading("#SBATCH --gpus=1", "true"), EvaluationContext(LOADED, PROJECT))

    pinned = {pin.option.partition("=")[0] for pin in made.pinned}
    assert pinned == {"--mem-per-gpu", "--time"}
    assert made.request.memory_per_gpu == made.resources.memory_per_gpu_bytes
    assert made.resources.time_limit_seconds == made.request.time_limit
    assert {directive.source for directive in made.request.directives} == {"script", "pinned"}


def test_what_slurm_made_of_a_request_is_judged_in_place_of_what_was_asked():
    script = reading("#SBATCH --gpus=1", "true")
    asked = EvaluationContext(LOADED, PROJECT)
    first = evaluate(script, asked)
    grown = Resources(gpus=1, memory_bytes=900 * GIB, memory_per_gpu_bytes=900 * GIB, time_limit_seconds=60)

    again = evaluate(script, replace(asked, numbers=grown, pinned=first.pinned))

    assert first.verdict == "allow"
    assert again.verdict == "approve"
    assert (again.pinned, again.request) == (first.pinned, first.request)
    assert [rule.id for rule in again.rules if rule.outcome == "approve"] == ["memory-per-gpu"]


def test_partitions_without_facts_of_the_moment_shape_what_is_added():
    script = reading("true")
    alone = evaluate(script, EvaluationContext(LOADED, PROJECT))
    known = evaluate(script, EvaluationContext(LOADED, PROJECT, partitions={"cpu": CPU}))

    assert Pin("--time=01:00:00", "no time limit stated, and the partition allows no more") in known.pinned
    assert alone.pinned != known.pinned
    assert {rule.outcome for rule in known.rules if rule.id == "status-first"} == {"not_evaluated"}


def test_with_facts_of_the_moment_a_rule_that_lacks_one_denies():
    script = reading("#SBATCH --mem=1G --time=5", "true")
    known = EvaluationContext(LOADED, PROJECT, live=live(), request_sha256="r")

    assert evaluate(script, known).verdict == "allow"
    assert evaluate(script, replace(known, request_sha256=None)).verdict == "deny"


def test_a_priority_that_is_not_offered_is_bad_input_and_not_a_lower_one():
    with pytest.raises(InputError, match="is not offered by this policy"):
        evaluate(reading("true"), EvaluationContext(LOADED, PROJECT, priority="high"))


def test_a_file_that_a_tool_writes_is_judged_without_a_script():
    context = EvaluationContext(LOADED, PROJECT, tool="save_result", path=f"{PROJECT}/results/a.json", size=1)

    assert evaluate(None, context).verdict == "allow"
    assert evaluate(None, replace(context, path_exists=True)).verdict == "deny"


def test_an_answer_shows_a_decision_with_every_rule_and_its_evidence():
    made = evaluate(reading("#SBATCH --gpus=1 --mem=900G", "true"), EvaluationContext(LOADED, PROJECT))
    shown = decision_shown(made)

    assert (shown.verdict, shown.id) == (made.verdict, made.id)
    assert [rule.id for rule in shown.rules] == [rule.id for rule in made.rules]
    (rule,) = (rule for rule in shown.rules if rule.id == "memory-per-gpu")
    assert rule.evidence[0].line == 2
