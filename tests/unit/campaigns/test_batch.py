"""Trials as jobs: what is written passes the guard, and hands each program its own values as words of their own."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.scripts.project import MemoryFiles

from slurm_agent_tools.backends import stages
from slurm_agent_tools.campaigns.batch import MOST_TASKS, Batch, batches, is_length, needed_texts
from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.campaign import Setting, Trial, TrialId, TrialPurpose, TrialRequest
from slurm_agent_tools.models.campaign_file import CampaignFile
from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.scripts.reader import read_script

pytestmark = pytest.mark.proves("campaign-values-are-words")

ROOT = "/project"

REQUEST = TrialRequest(cpus=2, memory_bytes=2 * 2**30, gpus=0, nodes=None, time_limit_seconds=1200)

SHOW = """import json, os, sys
print(json.dumps({"words": sys.argv[1:], "env": {k: v for k, v in os.environ.items() if k.startswith(("CAMPAIGN", "RATE"))}}))
"""

STAGE: dict[str, Any] = {
    "name": "train",
    "kind": "cpu",
    "command": ["python3", "show.py", "--out", "runs/{trial}.json"],
    "parameters": {
        "lr": {"default": 0.1, "argument": "--lr"},
        "mode": {"default": "fast", "argument": "mode="},
        "rate": {"default": 1, "environment": "RATE"},
        "quick": {"default": True, "argument": "--quick="},
        "epochs": {"default": 5, "argument": "--epochs", "length": True},
    },
    "resources": {"cpus": 2, "memory": "2G", "time_limit": "20min"},
    "passes": {"files": ["runs/{trial}.json"]},
}


def campaign(stage: Mapping[str, Any] = STAGE, **more: Any) -> CampaignFile:
    document = {
        "campaign": 1,
        "objective": {"metric": "loss", "direction": "minimize"},
        "stages": [stage],
        "rounds": [{"kind": "smoke"}],
        "limits": {"cpu_hours": 100, "gpu_hours": 100},
        **more,
    }
    return read_campaign(json.dumps(document).encode(), "one.json")


def trial(
    number: int, *, at: int = 1, purpose: TrialPurpose = "trial", request: TrialRequest = REQUEST, **settings: Setting
) -> Trial:
    return Trial(TrialId(at, number), "train", purpose, "arm", f"identity-{number}", settings, request)


def written(project: Path, batch: Batch) -> Path:
    for path, text in {batch.script_path: batch.script_text, **batch.files}.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    (project / "show.py").write_text(SHOW)
    return project


def ran(project: Path, batch: Batch, task: int | None = None) -> dict[str, Any]:
    """What the program was told, with bash for real."""
    done = subprocess.run(
        ["/bin/bash", batch.script_path, *batch.arguments.get("args", [])],  # type: ignore[misc]
        cwd=project, capture_output=True, text=True, timeout=30, check=False,
        env={"PATH": "/usr/bin:/bin", **({} if task is None else {"SLURM_ARRAY_TASK_ID": str(task)})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def reading_of(batch: Batch, files: Mapping[str, str] | None = None) -> ScriptReading:
    held = {"show.py": SHOW, batch.script_path: batch.script_text, **batch.files, **(files or {})}
    there = MemoryFiles({f"{ROOT}/{path}": text.encode() for path, text in held.items()})
    return await read_script(batch.script_text.encode(), batch.script_path, project=ROOT, files=there)


def test_a_single_trial_gets_its_values_as_arguments_of_the_job(tmp_path: Path) -> None:
    (one,) = batches("my-lr", campaign(), [trial(3, lr=0.01, rate=7)], 4)
    assert one.task_ids is None
    assert one.at_once is None
    assert "--array" not in one.script_text
    told = ran(written(tmp_path, one), one)
    assert told["words"] == [
        "--out", "runs/r1-t3.json", "--lr", "0.01", "mode=fast", "--quick=true", "--epochs", "5",
    ]  # fmt: skip
    assert told["env"] == {
        "CAMPAIGN": "my-lr", "CAMPAIGN_STAGE": "train", "CAMPAIGN_TRIAL": "r1-t3", "CAMPAIGN_REPEAT": "1",
        "RATE": "7",
    }  # fmt: skip
    assert (tmp_path / "runs").is_dir()


def test_equal_trials_are_one_array_whose_tasks_are_told_apart(tmp_path: Path) -> None:
    (one,) = batches("my-lr", campaign(), [trial(n, lr=n / 10) for n in (5, 2, 9)], 2)
    assert one.trials == (TrialId(1, 2), TrialId(1, 5), TrialId(1, 9))
    assert one.task_ids == (1, 2, 3)
    assert one.at_once == 2
    assert "#SBATCH --array=1-3%2\n" in one.script_text
    written(tmp_path, one)
    for task, number in zip(one.task_ids, (2, 5, 9), strict=True):
        told = ran(tmp_path, one, task)
        assert told["words"][:4] == ["--out", f"runs/r1-t{number}.json", "--lr", str(number / 10)]
        assert told["env"]["CAMPAIGN_TRIAL"] == f"r1-t{number}"


HOSTILE = [
    "$(touch hit)",
    "`touch hit`",
    "; touch hit",
    "a b",
    "a'b\"c",
    "*",
    "\\",
    "x=y",
    "&& touch hit",
    "${HOME}",
    "é✓",
    "#x",
]


def test_values_are_words_whatever_they_hold(tmp_path: Path) -> None:
    trials = [trial(n, mode=value, rate=value) for n, value in enumerate(HOSTILE, start=1)]
    (array,) = batches("one", campaign(), trials, 4)
    written(tmp_path, array)
    for task, value in enumerate(HOSTILE, start=1):
        told = ran(tmp_path, array, task)
        assert told["words"][4:5] == [f"mode={value}"]
        assert told["env"]["RATE"] == value
    for one, value in zip(trials, HOSTILE, strict=True):
        (single,) = batches("one", campaign(), [one], 4)
        assert ran(written(tmp_path, single), single)["words"][4] == f"mode={value}"
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("value", ["--rm", "a\tb", "a\nb", "\x1b[0m", float("nan"), 10**20, "x" * 500, " x", ""])
def test_a_value_that_is_not_handed_over_is_an_error_that_names_it(value: Setting) -> None:
    with pytest.raises(InputError, match=r"r1-t1\.mode"):
        batches("one", campaign(), [trial(1, mode=value)], 4)


def test_the_same_trials_are_the_same_bytes_whatever_stands_beside_them() -> None:
    wide = TrialRequest(cpus=4, memory_bytes=2**30, gpus=0, nodes=None, time_limit_seconds=60)
    some = [trial(n, lr=n / 10) for n in range(1, 4)]
    other = [trial(n, request=wide) for n in range(4, 7)]
    together = batches("one", campaign(), [*other, *some], 2)
    assert [len(batch.trials) for batch in together] == [3, 3]
    assert together[0] == batches("one", campaign(), some, 2)[0]
    assert together[1] == batches("one", campaign(), list(reversed(other)), 2)[0]
    assert together[0].key.startswith("one/r1/b1-")
    changed = batches("one", campaign(), [trial(1, lr=0.9), *some[1:]], 2)[0]
    assert changed.key != together[0].key


def test_only_trials_of_one_stage_request_purpose_and_round_share_an_array() -> None:
    longer = TrialRequest(cpus=2, memory_bytes=2 * 2**30, gpus=0, nodes=None, time_limit_seconds=2400)
    some = [
        trial(1, purpose="baseline"), trial(2), trial(3), trial(4, request=longer), trial(1, at=2), trial(2, at=2),
    ]  # fmt: skip
    found = batches("one", campaign(), some, 4)
    assert [[str(one) for one in batch.trials] for batch in found] == [
        ["r1-t1"], ["r1-t2", "r1-t3"], ["r1-t4"], ["r2-t1", "r2-t2"],
    ]  # fmt: skip
    assert len({batch.key for batch in found}) == len({batch.script_path for batch in found}) == 4


def test_more_tasks_than_an_array_may_have_are_several() -> None:
    found = batches("one", campaign(), [trial(n) for n in range(1, MOST_TASKS + 3)], 4)
    assert [len(batch.trials) for batch in found] == [MOST_TASKS, 2]
    assert "--array=1-1000%4" in found[0].script_text
    assert found[1].task_ids == (1, 2)


def test_the_throttle_is_left_out_where_it_says_nothing() -> None:
    (one,) = batches("one", campaign(), [trial(1), trial(2)], 8)
    assert "#SBATCH --array=1-2\n" in one.script_text
    assert one.at_once == 2


GPU = TrialRequest(cpus=16, memory_bytes=8 * 2**30, gpus=2, nodes=2, time_limit_seconds=3600, partition="gpu")

STAGES: dict[str, dict[str, Any]] = {
    "arguments": STAGE,
    "no parameters": {**STAGE, "parameters": {}},
    "a setup": {**STAGE, "setup": ["module load python", "source env/bin/activate"]},
    "odd words": {**STAGE, "command": ["python3", "show.py", "a b", "$HOME;x", "it's {trial}", '"{trial}`x`']},
    "a script": {k: v for k, v in {**STAGE, "script": "jobs/train.sh"}.items() if k != "command"},
    "a Python script": {k: v for k, v in {**STAGE, "script": "show.py"}.items() if k != "command"},
    "a config file": {
        **STAGE, "config_file": "train.yaml", "command": ["python3", "show.py", "--config={config}"],
        "parameters": {**STAGE["parameters"], "size": {"default": 3, "config": "data.size"}},
    },
    "metrics": {**STAGE, "metrics": {"file": "out/{trial}/metrics.csv"}, "passes": {"files": ["a.txt", "x/y/{trial}"]}},
}  # fmt: skip

TEXTS = {"jobs/train.sh": '#!/bin/bash\n#SBATCH --qos=normal\n#SBATCH --mem=99G\n\npython3 show.py "$@"\n', "train.yaml": "a: 1\n", "show.py": SHOW}  # fmt: skip


@pytest.mark.parametrize("request_", [REQUEST, GPU], ids=["CPU", "GPU"])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("kind", STAGES)
async def test_every_script_passes_the_guard_without_a_word(kind: str, count: int, request_: TrialRequest) -> None:
    stage = {**STAGES[kind], "kind": "gpu", "resources": {"gpus": 1, "time_limit": "1h"}}
    trials = [trial(n, request=request_) for n in range(1, count + 1)]
    (one,) = batches("guarded", campaign(stage), trials, 2, texts=TEXTS)
    reading = await reading_of(one, TEXTS)
    decision = evaluate(reading, EvaluationContext(load(shipped()), ROOT))
    assert decision.verdict == "allow"
    said = {rule.id: rule.message for rule in decision.rules if rule.outcome not in {"pass", "not_evaluated"}}
    assert said == {}


def test_what_is_asked_for_stands_in_the_directives() -> None:
    (one,) = batches("one", campaign(), [trial(1, request=GPU)], 4)
    for line in (
        "--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=8", "--gpus-per-node=1", "--mem=8G", "--time=01:00:00",
        "--partition=gpu", "--output=logs/slurm/%x-%j.out",
    ):  # fmt: skip
        assert f"#SBATCH {line}\n" in one.script_text
    assert "\nsrun python3 show.py" in one.script_text


def test_a_script_of_the_user_keeps_the_directives_that_the_campaign_does_not_state(tmp_path: Path) -> None:
    file = campaign(STAGES["a script"])
    assert needed_texts(file) == ("jobs/train.sh",)
    (one,) = batches("one", file, [trial(1, lr=0.5)], 4, texts=TEXTS)
    assert "#SBATCH --qos=normal\n" in one.script_text
    assert "99G" not in one.script_text
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.sh").write_text(TEXTS["jobs/train.sh"])
    assert ran(written(tmp_path, one), one)["words"] == ["--lr", "0.5", "mode=fast", "--quick=true", "--epochs", "5"]


@pytest.mark.parametrize(
    "line",
    [
        "--exclusive", "--gpus-per-socket=4", "--tres-per-task=gres/gpu:4", "--mincpus=64", "--threads-per-core=1",
        "--hint=nomultithread", "--core-spec=2", "-B 2:8",
    ],
)  # fmt: skip
def test_a_script_of_the_user_asks_for_nothing_that_no_limit_counts(line: str) -> None:
    texts = {"jobs/train.sh": f"#!/bin/bash\n#SBATCH --qos=normal\n#SBATCH {line}\npython3 show.py\n"}
    with pytest.raises(InputError, match=r"stages\.train\.script") as caught:
        batches("one", campaign(STAGES["a script"]), [trial(1)], 4, texts=texts)
    assert "that no limit of the campaign counts: --" in caught.value.message
    assert "--qos" not in caught.value.message


def test_lines_that_make_a_job_no_larger_are_kept() -> None:
    lines = [
        "--account=lab",
        "--licenses=matlab:1",
        "--mail-type=END",
        "--export=ALL,X=1",
        "--signal=B:USR1@60",
        "--no-requeue",
    ]
    text = "\n".join(["#!/bin/bash", *(f"#SBATCH {line}" for line in [*lines, "--gres=gpu:8", "--quiet"]), "true"])
    (one,) = batches("one", campaign(STAGES["a script"]), [trial(1)], 4, texts={"jobs/train.sh": text})
    kept = [row for row in one.script_text.splitlines() if row.startswith("#SBATCH")]
    assert not any("gres" in row or "quiet" in row for row in kept)
    assert [row.partition("=")[0] for row in kept[-len(lines) :]] == [
        f"#SBATCH {line.partition('=')[0]}" for line in lines
    ]


async def test_trials_that_differ_in_lengths_alone_are_one_configuration_to_the_ladder() -> None:
    async def parts(made: Trial) -> dict[str, str]:
        (one,) = batches("one", campaign(), [made], 4)
        reading = await reading_of(one)
        args = [str(word) for word in one.arguments["args"]]  # type: ignore[attr-defined]
        return stages.parts_of(
            one.script_text, reading.request, args, layout={"nodes": 1}, files={}, environment={}
        )  # fmt: skip

    smoke = await parts(trial(1, at=0, purpose="smoke", lr=0.1, epochs=1))
    assert smoke == await parts(trial(7, purpose="scale_up", lr=0.1, epochs=500))
    assert stages.differing(smoke, await parts(trial(7, lr=0.2, epochs=500))) == ["the arguments"]


def test_a_name_that_says_where_a_job_runs_is_never_declared_as_a_length() -> None:
    assert is_length("epochs")
    assert not is_length("batch_size")
    stage = {**STAGE, "parameters": {"batch_count": {"default": 3, "argument": "-b", "length": True}}}
    (one,) = batches("one", campaign(stage), [trial(1)], 4)
    assert stages.declared(one.script_text).lengths == ("campaign_round", "campaign_trial", "campaign_repeat")
    assert stages.declared(one.script_text).problem is None


CONFIGS = {
    "c.yaml": "# a comment\ndata: {size: 1, kind: small}\nrate: 0.5\n",
    "c.json": '{"data": {"size": 1, "kind": "small"}, "rate": 0.5}',
    "c.toml": 'rate = 0.5\nwhen = 2026-01-01\nlist = [{a = 1}, "x"]\n[data]\nsize = 1\nkind = "sm\\"all"\n["odd key"]\nx = true\n',
}


@pytest.mark.parametrize("path", CONFIGS)
def test_each_trial_has_its_own_settings(tmp_path: Path, path: str) -> None:
    parameters = {
        "size": {"default": 3, "config": "data.size"}, "name": {"default": "x", "config": "new.deep.name"},
        "quick": {"default": False, "config": "quick"},
    }  # fmt: skip
    stage = {**STAGE, "parameters": parameters, "config_file": path, "command": ["python3", "show.py", "{config}"]}
    trials = [trial(1, size=8, name='a"b\\é'), trial(2, size=9)]
    (one,) = batches("one", campaign(stage), trials, 4, texts=CONFIGS)
    suffix = path[1:]
    read = {".yaml": yaml.safe_load, ".json": json.loads, ".toml": tomllib.loads}[suffix]
    before = read(CONFIGS[path])
    first = read(one.files[f"campaigns/one/configs/r1-t1{suffix}"])
    assert first == {
        **before, "data": {**before["data"], "size": 8}, "new": {"deep": {"name": 'a"b\\é'}}, "quick": False,
    }  # fmt: skip
    assert ran(written(tmp_path, one), one, 2)["words"] == [f"campaigns/one/configs/r1-t2{suffix}"]


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "is not there"), ("- 1\n", "not a mapping"), ("data: 1\n", "has to lie in a mapping"), ("data: {size: [1]}", "single"), ("a: [", "YAML")],
)  # fmt: skip
def test_a_config_file_that_cannot_be_changed_is_an_error(text: str | None, words: str) -> None:
    stage = {
        **STAGE, "config_file": "c.yaml", "command": ["python3", "show.py", "{config}"],
        "parameters": {"size": {"default": 3, "config": "data.size"}},
    }  # fmt: skip
    with pytest.raises(InputError, match=words):
        batches("one", campaign(stage), [trial(1)], 4, texts={} if text is None else {"c.yaml": text})


def test_the_arguments_are_those_of_submit_job() -> None:
    (one,) = batches("one", campaign(justification="A paper is due."), [trial(1)], 4)
    assert one.arguments["script"] == one.script_path
    assert one.arguments["idempotency_key"] == one.key
    assert one.arguments["justification"] == "A paper is due."
    (array,) = batches("one", campaign(), [trial(1), trial(2)], 4)
    assert set(array.arguments) == {"script", "idempotency_key", "run_id"}


def test_repeats_are_told_apart_so_that_each_can_have_its_own_seed(tmp_path: Path) -> None:
    stage = {**STAGE, "command": ["python3", "show.py", "--seed={repeat}"], "parameters": {}}
    trials = [replace(trial(number), repeat=number) for number in (1, 2)]
    (one,) = batches("one", campaign(stage), trials, 4)
    written(tmp_path, one)
    assert [ran(tmp_path, one, task)["words"] for task in (1, 2)] == [["--seed=1"], ["--seed=2"]]


def test_folders_of_what_the_words_name_by_trial_are_made(tmp_path: Path) -> None:
    words = [
        "python3",
        "show.py",
        "--out=runs/a/{trial}.json",
        "b/{trial}/log",
        "/etc/{trial}",
        "../{trial}",
        "{trial}",
    ]
    (one,) = batches("one", campaign({**STAGE, "command": words, "passes": {}}), [trial(1)], 4)
    assert 'mkdir -p runs/a "b/${CAMPAIGN_TRIAL}"\n' in one.script_text
    ran(written(tmp_path, one), one)
    assert (tmp_path / "b" / "r1-t1").is_dir()
