from __future__ import annotations

from datetime import date

import pytest

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.scripts.configs import experiment_config
from slurm_agent_tools.scripts.configs.checks import config_checks
from slurm_agent_tools.scripts.directive_lines import read_directives


def yaml(text: str) -> experiment_config.Config:
    return experiment_config.parse_config(text.encode(), ".yaml", "configs/x.yaml")


def checked(text: str, present: dict[str, bool] | None = None):
    errors, warnings, _ = config_checks.check_config(yaml(text), present or {})
    return {c.path: c for c in errors}, {c.path: c for c in warnings}


def test_the_three_formats_give_the_same_value_and_lines():
    texts = {
        ".yaml": "seed: 1\nmodel:\n  layers: [4, 8]\n",
        ".toml": "seed = 1\n[model]\nlayers = [4, 8]\n",
        ".json": '{"seed": 1,\n "model": {\n\t"layers": [4, 8]}}',
    }
    for suffix, text in texts.items():
        found = experiment_config.parse_config(text.encode(), suffix, "x")
        assert found.value == {"seed": 1, "model": {"layers": [4, 8]}}, suffix
        assert (found.lines["seed"], found.lines["model"], found.lines["model.layers"]) == (1, 2, 3), suffix


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        (".yaml", b"a: 1\nb: 2\na: 3\n"),
        (".yaml", b"a: [1\n"),
        (".yaml", b"a: 1\n---\nb: 2\n"),
        (".yaml", b"a: !!python/object:os.system x\n"),
        (".yaml", b"a: &a [*a]\n"),
        (".yaml", b"a: 2026-13-45\n"),
        (".yaml", b""),
        (".yaml", b"\xff\xfe"),
        (".yaml", b"[" * 5000),
        (".json", b'{"a": 1, "a": 2}'),
        (".json", b"{'a': 1}"),
        (".json", b" "),
        (".json", b"[" * 100_000),
        (".toml", b"a = 1\na = 2\n"),
        (".toml", b"\n"),
        (".txt", b"a: 1\n"),
    ],
)
def test_what_cannot_be_read_is_an_error_that_names_the_file(suffix, data):
    with pytest.raises(InputError) as caught:
        experiment_config.parse_config(data, suffix, "configs/x")
    assert "configs/x" in caught.value.message
    assert caught.value.hint


def test_a_duplicate_key_is_named_with_its_line():
    with pytest.raises(InputError, match=r"line 3.*'a\.b' occurs twice"):
        yaml("a:\n  b: 1\n  b: 2\n")


def test_aliases_that_unfold_into_a_huge_file_are_refused_quickly():
    levels = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(InputError, match="more than 50000 values"):
        yaml("a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "\n".join(levels) + "\n")


ODD = {
    "a tag of the program": "a: !config x\n", "a tag that makes objects": "a: !!python/object/apply:os.system [id]\n",
    "bytes": "a: !!binary aGVsbG8=\n", "a set": "a: !!set {x, y}\n", "a set as the whole": "!!set {x, y}\n",
    "pairs": "a: !!pairs [x: 1]\n", "an ordered mapping": "a: !!omap [x: 1]\n", "the tag of a default": "a: =\n",
    "no truth": "a: !!bool maybe\n", "no date": "a: !!timestamp soon\n", "no number": "a: !!int x\n",
    "a list that is none": "a: !!seq x\n", "a mapping that is none": "a: !!map x\n",
    "a key that is a truth": "on: x\n", "a key that is nothing": "~: x\n", "a key that is a date": "2026-01-01: x\n",
    "a key that is a broken number": "1.5: x\n", "an endless key": ".inf: x\n", "a key that is a list": "? [a]\n: x\n",
    "a key that is a mapping": "? {a: b}\n: x\n", "a key inside": "a:\n  - yes: 1\n", "merging a number": "a: {<<: 1}\n",
    "two keys of one name": "1: x\n'1': y\n", "no character": 'a: "\\Uffffffff"\n', "half of one": 'a: "\\ud83d"\n',
    "half of one in a key": '"\\ud83d": a\n', "a date that is none": "a: 2026-02-30\n", "a nul": "a: \0\n",
    "a tag of its own": "%TAG ! tag:x,2026:\n---\na: !x 1\n", "an alias of nothing": "a: *b\n",
}  # fmt: skip


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_what_only_yaml_can_say_is_an_error_that_names_the_file(text: str):
    with pytest.raises(InputError, match=r"^config_path: 'configs/x.yaml' is not YAML"):
        yaml(text)


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_half_of_a_character_in_a_configuration_is_an_error_with_its_place(suffix: str):
    with pytest.raises(InputError, match=r"run\.tags\[1\] holds half of a character|line 1: found invalid Unicode"):
        experiment_config.parse_config(b'{"run": {"tags": ["a", "\\udc00"]}}', suffix, "x")


def test_a_key_that_has_to_be_quoted_is_named_with_its_line():
    with pytest.raises(InputError, match=r"line 2.*the key 'on' is read as a bool: put it in quotes"):
        yaml("a: 1\non: 2\n")


def test_numbers_as_keys_dates_as_values_and_endless_numbers_are_read():
    found = yaml("names: {0: cat, 1: dog}\nday: 2026-01-02\nclip: .inf\n").value

    assert found == {"names": {0: "cat", 1: "dog"}, "day": date(2026, 1, 2), "clip": float("inf")}


@pytest.mark.parametrize("written", [".inf", "-.inf", ".nan"])
def test_an_option_of_sbatch_that_is_no_number_is_an_error(written: str):
    assert "slurm.gpus" in checked(f"slurm:\n  gpus: {written}\n")[0]


def test_a_clock_with_a_fraction_is_told_as_one():
    assert "YAML reads 1:30.5 as the number 90.5" in checked("start: 1:30.5\n")[1]["start"].message


def test_merge_keys_and_aliases_are_read():
    assert yaml("base: &b {lr: 0.1}\nrun:\n  <<: *b\n  lr: 0.2\n").value == {"base": {"lr": 0.1}, "run": {"lr": 0.2}}


def test_sensible_numbers_pass():
    text = "lr: 0.001\nbatch_size: 32\nepochs: -1\ndropout: 0\nseed: 0\nnum_workers: 0\nweight_decay: 0.0\nlearning_rate: [0.1, 0.2]\n"

    assert checked(text) == ({}, {})


@pytest.mark.parametrize(
    "line",
    ["lr: 0", "lr: -1", "lr: .nan", "batch_size: 0", "batch_size: 1.5", "batch_size: true", "epochs: 0", "dropout: 1.5",
     "seed: 1.5", "lr: high", "train: {dropout: -0.1}", "learning_rate: [0.1, -0.1]"],
)  # fmt: skip
def test_a_number_out_of_its_range_is_an_error_with_its_line(line):
    errors, _ = checked(f"name: x\n{line}\n")

    (complaint,) = errors.values()
    assert complaint.line == 2
    assert complaint.remedy


def test_a_number_that_yaml_takes_for_text_is_told():
    errors, _ = checked("lr: 1e-4\n")

    assert errors["lr"].remedy == "Write 1.0e-4: YAML takes 1e-4 for text."


def test_a_slip_of_the_keys_is_a_warning_with_the_nearest_known_one():
    _, warnings = checked("learning_rat: 0.1\nmy_own_key: 3\n")

    assert list(warnings) == ["learning_rat"]
    assert "learning_rate" in warnings["learning_rat"].remedy


def test_fixed_devices_are_errors_wherever_they_stand():
    errors, warnings = checked(
        "device: cuda:0\nrun:\n  where: [cpu, 'cuda:1']\nenv:\n  CUDA_VISIBLE_DEVICES: 0\ncmd: HIP_VISIBLE_DEVICES=1 run\n"
        "ok: cuda\ngpu_ids: [0, 1]\n"
    )

    assert set(errors) == {"device", "run.where[1]", "env.CUDA_VISIBLE_DEVICES", "cmd"}
    assert errors["run.where[1]"].line == 3
    assert set(warnings) == {"gpu_ids"}


def test_inputs_that_are_not_there_are_warned_of_and_outputs_are_not():
    text = "data_path: data/train.csv\noutput_dir: results\nurl_path: s3://x/y\nhome_dir: ~/x\ncheckpoint_file: a.pt\n"
    config = yaml(text)

    assert experiment_config.input_paths(config) == ["data/train.csv"]
    assert set(checked(text, {"data/train.csv": False})[1]) == {"data_path"}
    assert checked(text, {"data/train.csv": True})[1] == {}


def test_a_file_that_is_no_mapping_is_an_error():
    errors, _, summary = config_checks.check_config(yaml("[1, 2]"), {})

    assert "instead of keys and values" in errors[0].message
    assert summary == {}


def test_the_slurm_section_becomes_the_header_that_asks_for_the_same():
    section = config_checks.slurm_section(
        yaml(
            'slurm:\n  gpus: 2\n  memory: 16G\n  time: "02:00:00"\n  cpus_per_task: 8\n  job_name: a "b" c\n'
            "  exclusive: true\n  requeue: false\n  nodelist: [n1, n2]\n"
        )
    )
    assert section is not None
    script = config_checks.slurm_script(section)
    read = read_directives(script.encode(), "x")

    assert read.problems == []
    assert {d.option: d.value for d in read.directives} == {
        "gpus": "2", "mem": "16G", "time": "02:00:00", "cpus-per-task": "8", "job-name": 'a "b" c', "exclusive": None,
        "nodelist": "n1,n2",
    }  # fmt: skip


def test_a_section_that_is_missing_or_is_no_mapping_gives_no_header():
    assert config_checks.slurm_section(yaml("a: 1\n")) is None
    assert config_checks.slurm_section(yaml("slurm: 3\n")) is None
    assert set(checked("slurm: 3\n")[0]) == {"slurm"}


def test_what_no_header_can_say_is_an_error_and_never_a_line():
    text = 'slurm:\n  name: "a\\n#SBATCH --mem=900G"\n  env: {X: 1}\n  "bad key!": 1\n  gpus: 1\n'
    errors, _ = checked(text)
    section = config_checks.slurm_section(yaml(text))

    assert set(errors) == {"slurm.name", "slurm.env", "slurm.bad key!"}
    assert section is not None
    assert config_checks.slurm_script(section) == "#!/bin/bash\n#SBATCH --gpus=1\ntrue\n"


def test_a_time_that_yaml_reads_as_a_number_is_told():
    errors, _ = checked("slurm:\n  time: 12:00:00\n")
    _, warnings = checked("budget: 2:00:00\n")

    assert errors["slurm.time"].line == 2
    assert "quotes" in errors["slurm.time"].remedy
    assert "2:00:00" in warnings["budget"].message


@pytest.mark.parametrize(("suffix", "text"), [(".yaml", "a: [0x{}]"), (".toml", "a = [0x{}]")])
def test_a_number_too_large_to_be_written_is_refused(suffix, text):
    with pytest.raises(InputError, match=r"a number .*more than 1000 characters"):
        experiment_config.parse_config(text.format("f" * 9000).encode(), suffix, "x")
