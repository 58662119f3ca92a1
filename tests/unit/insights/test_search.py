"""Finding remembered jobs by tag, text and likeness."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.insights.records import ASKED, GIB, NOW, record

from slurm_agent_tools.insights.job_search import likeness, merged, search, similar, tags
from slurm_agent_tools.models.job import Usage
from slurm_agent_tools.models.job_resources import Resources

FAILED = record(3, state="FAILED", category="missing-module", run_id="sweep-7", partition="gpu")
TRAIN = record(2, partition="cpu")
EVAL = record(1, name="evaluate", script_path="scripts/eval_train.sh", run_id="Sweep-8")
ALL = [FAILED, TRAIN, EVAL]


def test_the_tags_are_what_is_known_each_once():
    assert tags(FAILED) == ("slurm", "job", "3", "gpu", "failed", "sweep-7", "missing-module")
    assert tags(EVAL) == ("slurm", "job", "1", "completed", "Sweep-8")
    assert tags(record(state="TIMEOUT", category="timeout")) == ("slurm", "job", "1", "timeout", "failed")
    assert tags(record(state="CANCELLED")) == ("slurm", "job", "1", "cancelled")


@pytest.mark.parametrize(("wanted", "match_all", "found"), [
    ((), True, ["3", "2", "1"]),
    (("job",), True, ["3", "2", "1"]),
    (("GPU", "Failed"), True, ["3"]),
    (("gpu", "completed"), True, []),
    (("gpu", "completed"), False, ["3", "2", "1"]),
    (("sweep-8", "missing-module"), False, ["3", "1"]),
    (("sweep",), False, []),
])  # fmt: skip
def test_tags_are_whole_words_all_of_them_or_any(wanted, match_all, found):
    assert [one.job_id for one in search(ALL, tags=wanted, match_all=match_all)] == found


@pytest.mark.parametrize(("query", "found"), [
    ("", ["3", "2", "1"]),
    ("TRAIN", ["3", "2", "1"]),
    ("train missing", ["3"]),
    ("eval", ["1"]),
    ("sweep failed", ["3"]),
    ("sweep", ["3", "1"]),
    ("nothing", []),
    ("train nothing", []),
    (".*", []),
])  # fmt: skip
def test_every_word_of_a_text_is_somewhere_and_a_name_counts_most(query, found):
    assert [one.job_id for one in search(ALL, query=query)] == found


def test_the_best_match_comes_first_and_the_limit_holds():
    within = record(9, name="retrain")
    assert [one.job_id for one in search([within, TRAIN, EVAL], query="train")] == ["2", "9", "1"]
    assert [one.job_id for one in search(ALL, limit=1)] == ["3"]


class TestLikeness:
    def test_the_same_request_is_one_and_nothing_in_common_is_nought(self):
        assert likeness(TRAIN, ASKED) == 1
        assert likeness(TRAIN, ASKED, name="train", script_path="train.sh") == 1
        assert likeness(record(requested=Resources(partition="cpu")), Resources(gpus=4)) == 0
        assert likeness(record(requested=Resources()), Resources()) == 0

    def test_it_is_the_weighted_mean_of_ratios(self):
        half = replace(ASKED, memory_bytes=8 * GIB)
        assert likeness(TRAIN, half) == pytest.approx((2 * 0.5 + 2 + 2 + 1 + 1) / 8)
        assert likeness(TRAIN, ASKED, name="other") == pytest.approx(8 / 10)
        assert likeness(TRAIN, replace(ASKED, gpus=1)) == pytest.approx(8 / 11, abs=1e-4)
        assert likeness(TRAIN, replace(ASKED, time_limit_seconds=-1)) == pytest.approx(6 / 8)

    def test_the_same_script_comes_before_the_same_numbers(self):
        near = record(5, name="other", script_path="other.sh")
        own = record(6, requested=replace(ASKED, memory_bytes=4 * GIB))
        found = similar([near, own], ASKED, name="train", script_path="train.sh")
        assert [one.job_id for _, one in found] == ["6", "5"]
        assert len(similar([near, own], ASKED, limit=1)) == 1

    def test_the_partition_that_slurm_chose_counts_where_none_was_asked_for(self):
        chosen = record(requested=replace(ASKED, partition=None), partition="cpu")
        assert likeness(chosen, ASKED) == 1


class TestMerging:
    def test_the_accounting_completes_what_the_ledger_began(self):
        ours = record(7, state="RUNNING", run_id="r1", requested=ASKED)
        usage = Usage(elapsed_seconds=5)
        theirs = record(
            7, name="forged", state="FAILED", exit_code=1, usage=usage, tasks=3, managed=False, script_path=""
        )
        (one,) = merged([ours], [theirs])
        assert (one.name, one.run_id, one.script_path, one.managed) == ("train", "r1", "train.sh", True)
        assert (one.state, one.exit_code, one.usage, one.tasks) == ("FAILED", 1, usage, 3)

    def test_what_was_diagnosed_and_measured_stays(self):
        ours = record(7, state="FAILED", category="missing-module", usage=Usage(elapsed_seconds=5), started=NOW)
        (one,) = merged([ours], [record(7, state="FAILED", category="host-out-of-memory")])
        assert (one.category, one.usage, one.started) == ("missing-module", Usage(elapsed_seconds=5), NOW)

    @pytest.mark.parametrize(("ours", "theirs", "told"), [(200, 72, 200), (72, 72, 72), (3, 72, 72), (None, 72, 72)])
    def test_the_ledger_keeps_the_exit_code_of_which_the_accounting_has_seven_bits(self, ours, theirs, told):
        (one,) = merged([record(7, exit_code=ours)], [record(7, state="FAILED", exit_code=theirs)])
        assert one.exit_code == told

    def test_jobs_of_either_alone_are_there_newest_first(self):
        assert [one.job_id for one in merged([record(1), record(5)], [record(3)])] == ["5", "3", "1"]
