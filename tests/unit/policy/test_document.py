from __future__ import annotations

import hashlib

import pytest

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.policy.loading import load, shipped

GIB = 2**30


def layered(*texts: str):
    return load(shipped(), [(f"policies/{number}.yaml", text.encode()) for number, text in enumerate(texts)])


def test_the_shipped_policy_is_the_one_that_was_promised():
    loaded = load(shipped())
    limits = loaded.policy.limits

    assert (limits.memory_per_gpu.free, limits.memory_per_gpu.justify) == (16 * GIB, 24 * GIB)
    assert (limits.memory_without_gpus.free, limits.memory_without_gpus.justify) == (16 * GIB, 24 * GIB)
    assert (limits.gpus.free, limits.time_limit.free) == (4, 24 * 3600)
    assert limits.max_concurrent_jobs == 4
    assert loaded.policy.status_max_age_seconds == 600
    assert loaded.sha256 == hashlib.sha256(shipped()).hexdigest()
    assert loaded.notes == ()
    assert not {"exclusive", "mincpus", "bbf", "export-file", "requeue", "wrap"} & set(loaded.policy.allowed_options)
    assert not [name for name in loaded.policy.pass_environment if "VISIBLE" in name or name.startswith("SBATCH")]


def test_a_copy_of_the_shipped_policy_in_the_project_changes_nothing():
    assert load(shipped(), [("policies/default.yaml", shipped())]) == load(shipped())


def test_a_layer_tightens_what_it_states_and_nothing_else():
    loaded = layered("limits: {max_concurrent_jobs: 2, memory_per_gpu: {free: 8G}, gpu_hours_per_job: 10.0}")
    base = load(shipped()).policy

    assert loaded.policy.limits.max_concurrent_jobs == 2
    assert loaded.policy.limits.memory_per_gpu.free == 8 * GIB
    assert loaded.policy.limits.memory_per_gpu.justify == 24 * GIB
    assert loaded.policy.limits.gpu_hours_per_job == 10.0
    assert loaded.policy.allowed_options == base.allowed_options
    assert loaded.notes == ()
    assert loaded.source == "shipped + policies/0.yaml"
    assert loaded.sha256 != load(shipped()).sha256


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("limits: {memory_per_gpu: {free: 20G}}", "from 16G to 20G"),
        ("limits: {time_limit: {free: '2-00:00:00'}}", "from 1-00:00:00 to 2-00:00:00"),
        ("limits: {max_concurrent_jobs: 9}", "from 4 to 9"),
    ],
)
def test_a_note_writes_sizes_and_times_as_the_file_does(text: str, words: str):
    assert words in layered(text).notes[0]


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("limits: {max_concurrent_jobs: 9}", "limits.max_concurrent_jobs"),
        ("limits: {memory_per_gpu: {free: 20G}}", "limits.memory_per_gpu.free"),
        ("allowed_options: [mem, exclusive]", "allowed_options"),
        ("options_by_person: [exclusive, mincpus]", "options_by_person"),
        ("write: {save_result: {folders: [results, src]}}", "write.save_result.folders"),
        ("log_folders: [/scratch]", "log_folders"),
        ("pass_environment: [HOME, CUDA_VISIBLE_DEVICES]", "pass_environment"),
        ("status_max_age_seconds: 86400", "status_max_age_seconds"),
        ("justification_min_characters: 1", "justification_min_characters"),
    ],
)
def test_an_attempt_to_loosen_is_noted_and_ignored(text: str, field: str):
    loaded = layered(text)

    assert len(loaded.notes) == 1
    assert loaded.notes[0].startswith(f"policies/0.yaml: `{field}` cannot be loosened")
    assert "exclusive" not in loaded.policy.allowed_options
    assert loaded.policy.limits == load(shipped()).policy.limits
    assert loaded.policy.log_folders == ()
    assert loaded.policy.justification_min_characters == 8


def test_a_layer_cannot_undo_the_one_before_it():
    loaded = layered("limits: {max_concurrent_jobs: 1}", "limits: {max_concurrent_jobs: 3}\nprotected: [data/*]")

    assert loaded.policy.limits.max_concurrent_jobs == 1
    assert {"data/*", "policies/*"} <= set(loaded.policy.protected)


def test_folders_of_two_layers_leave_what_both_allow():
    loaded = layered("write: {save_result: {folders: [results/a]}}", "write: {save_result: {folders: [results]}}")

    assert loaded.policy.write.save_result.folders == ("results/a",)


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("name: x\nlimits:\n  max_jobs: 3", "limits.max_jobs", ["is not a field of a policy", "line 3"]),
        ("limits:\n  gpus: {free: 1, free: 2}", "policy", ["line 2", "'free' occurs twice"]),
        ("limits: {max_concurrent_jobs: 0}", "limits.max_concurrent_jobs", ["line 1"]),
        ("limits: {max_concurrent_jobs: true}", "limits.max_concurrent_jobs", ["line 1"]),
        ("limits: {time_limit: {free: 24:00:00}}", "limits.time_limit.free", ["quotes", "line 1"]),
        ("limits: {memory_per_gpu: {free: 16}}", "limits.memory_per_gpu.free", ["unit", "line 1"]),
        ("limits: {time_limit: {free: '0'}}", "limits.time_limit.free", ["UNLIMITED"]),
        ("limits: {gpus: {free: 4, justify: 2}}", "limits.gpus", ["`justify` must not be below `free`"]),
        ("write: {save_result: {folders: [../up]}}", "write.save_result.folders.0", ["inside the project"]),
        ("a: &x [1]\nb: *x", "policy", ["line 2", "aliases"]),
        ("a: [1", "policy", ["line 1"]),
        ("- one", "policies/0.yaml", ["is not a mapping"]),
        ("1: one", "policy", ["a key must be a plain word"]),
        ("a: !!python/object/apply:os.getcwd []", "policy", ["line 1"]),
        ("[" * 5000, "policy", ["cannot be read"]),
        ("\x00", "policy", ["cannot be read"]),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_names_the_place(text: str, field: str, words: list[str]):
    with pytest.raises(ConfigError) as caught:
        layered(text)

    assert caught.value.field == field
    assert all(word in caught.value.message for word in words), caught.value.message
    assert "policies/0.yaml" in caught.value.message + caught.value.hint
    assert caught.value.hint


def test_a_file_that_is_not_text_or_too_large_is_an_error():
    for content in (b"\xff\xfe\x00", b"#" * 300_000):
        with pytest.raises(ConfigError):
            load(shipped(), [("policies/x.yaml", content)])


def test_an_empty_layer_changes_nothing():
    assert layered("# nothing yet\n").policy == load(shipped()).policy


def test_the_limits_can_be_said_in_a_few_words():
    brief = layered("limits: {gpu_hours_per_job: 100.0}").limits_in_brief()

    assert brief["max_concurrent_jobs"] == 4
    assert brief["memory_per_gpu"] == "16G free, 24G with a written reason, more by a person"
    assert brief["gpu_hours_per_job"] == "100"
    assert "cpu_hours_per_job" not in brief
