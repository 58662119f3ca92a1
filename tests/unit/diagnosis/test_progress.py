from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import log

from slurm_agent_tools.diagnosis.program_progress import progress


@pytest.mark.parametrize(
    ("lines", "done"),
    [
        (["Epoch 37/100 loss 0.4"], 0.36),
        (["Epoch [37/100], Step [10/90]"], 0.36),
        (["epoch: 37 of 100"], 0.36),
        (["step 1200/5000 loss=0.3"], 0.24),
        (["step 1,200 of 5,000"], 0.24),
        (["iteration   1200/   5000 | lm loss"], 0.24),
        ([" 45%|####5     | 450/1000 [10:00<12:13,  1.33s/it]"], 0.45),
        (["[ 12/48 ] processing"], 0.25),
        (["12.5% complete"], 0.125),
        (["round 2/4", "round 3/4"], 0.5),
    ],
)
def test_the_last_counter_with_a_total_tells_what_was_done(lines, done):
    assert progress([log(*lines)]).done == pytest.approx(done)


def test_a_counter_of_epochs_goes_before_the_bar_of_one_epoch():
    lines = ["Epoch 1/10", "100%|##| 9/9 [00:01<00:00]", "Epoch 2/10", " 50%|#5   | 4/9 [00:01<00:01]"]

    assert progress([log(*lines)]).done == pytest.approx(0.1)


@pytest.mark.parametrize(
    "lines",
    [
        ["100%|##| 9/9 [00:01<00:00]", " 50%|#5   | 4/9 [00:01<00:01]"],
        ["step 90/100", "step 10/100"],
        ["step 100/100"],
        ["epoch 3", "loss 0.5/1"],
        ["accuracy 45%", "version 3/4 of the tool"],
        ["step 7/5"],
        [],
    ],
)
def test_what_starts_again_or_is_full_or_has_no_total_tells_nothing(lines):
    assert progress([log(*lines)]) is None


def test_a_stated_time_left_counts_where_there_is_no_counter():
    assert progress([log("iter 300 eta: 1 day, 2:00:30")]).left == 93630
    assert progress([log("ETA: 0:10:00")]).left == 600
    assert progress([log("Epoch 3/4 ETA: 0:10:00")]).left is None


def test_the_slower_of_two_counters_decides():
    assert progress([log("job 3/4", kind="stdout"), log("sample 10/100")]).done == pytest.approx(0.1)
