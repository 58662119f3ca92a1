"""The script that measures the diagnosis on labelled logs."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield importlib.import_module("labelled_logs")
    sys.modules.pop("labelled_logs", None)


@pytest.fixture
def folder(tmp_path):
    texts = {
        "full.log": "RuntimeError: CUDA error: out of memory",
        "quiet.log": "Loading data",
        "wrong.log": "ModuleNotFoundError: No module named 'x'",
        "hint.log": "loss: nan",
        "labels.yaml": """\
full.log: gpu-out-of-memory
quiet.log: {expected: [unknown, none], state: FAILED, exit: 3}
wrong.log: network
hint.log: network
""",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_right_wrong_and_named_are_counted_apart(script, folder):
    found = script.judged(folder)
    assert script.figures(found) == {"right": 50.0, "wrong above 0.5": 25.0, "named": pytest.approx(100 / 3)}


def test_the_report_names_each_error_with_its_line_the_sure_ones_first(script, folder, capsys):
    (folder / "left.log").write_text("")
    assert script.main([str(folder)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "wanted: at least 92 %" in lines[0]
    assert lines[3].startswith("WRONG  wrong.log: expected network, said missing-module (0.7), 1: ModuleNotFoundError")
    assert lines[4].startswith("missed hint.log: expected network, said numeric (")
    assert lines[5:] == ["not labelled: left.log"]


def test_all_right_ends_with_0_and_shows_every_log_when_asked(script, folder, capsys):
    (folder / "labels.yaml").write_text("full.log: gpu-out-of-memory\n")
    assert script.main([str(folder), "--all"]) == 0
    assert "right  full.log" in capsys.readouterr().out


def test_slurms_facts_are_part_of_the_case(script, tmp_path):
    (tmp_path / "a.out").write_text("")
    (tmp_path / "a.err").write_text("Killed")
    (tmp_path / "labels.yaml").write_text(
        "a.out: {expected: host-out-of-memory, state: OUT_OF_MEMORY, exit: 0, signal: 9, mem: 4G, rss: 4G,"
        " stderr: a.err, step: {state: OUT_OF_MEMORY, exit: 0, signal: 9}}\n"
    )
    (found,) = script.judged(tmp_path)
    assert (found.right, found.said.confidence) == (True, 0.95)


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ("full.log: gpu-oom", "'gpu-oom'"),
        ("full.log: []", "nothing is no category"),
        ("full.log: {expected: numeric, stat: FAILED}", "unknown fields ['stat']"),
        ("gone.log: numeric", "gone.log: No such file"),
        ("full.log: {state: FAILED}", "'expected'"),
    ],
)
def test_labels_that_cannot_be_used_end_with_2_and_the_reason(script, folder, capsys, labels, told):
    (folder / "labels.yaml").write_text(labels)
    assert script.main([str(folder)]) == 2
    assert told in capsys.readouterr().err
