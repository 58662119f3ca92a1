from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.diagnosis.records import job, log

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.excerpt import clean, split_rank
from slurm_agent_tools.diagnosis.signatures import by_id, harmless, signatures

CATEGORIES = {
    "host-out-of-memory", "gpu-out-of-memory", "time-limit", "cancelled", "preempted", "node-failure", "missing-module",
    "missing-file", "permission", "disk-full", "script-error", "command-not-found", "module-load", "shared-library",
    "cuda-driver", "cuda-error", "nccl-timeout", "port-in-use", "segmentation-fault", "bus-error", "python-exception",
    "numeric", "license", "network", "mpi-abort", "dependency", "limit",
}  # fmt: skip
SAMPLES = [(signature.id, text) for signature in signatures() for text in signature.samples]
NEAR_MISSES = [(signature.id, text) for signature in signatures() for text in signature.near_misses]


def test_every_promised_category_has_a_signature():
    assert set(by_id()) == CATEGORIES
    assert len(signatures()) == len(CATEGORIES)


@pytest.mark.parametrize(("category", "text"), SAMPLES)
def test_every_sample_is_recognised_among_all_signatures(category, text):
    assert diagnose(None, (), [log("starting", text)]).category == category


@pytest.mark.parametrize(("category", "text"), NEAR_MISSES)
def test_no_near_miss_matches(category, text):
    assert not [line for line in clean(text.encode()) if by_id()[category].match(split_rank(line)[1])]


@pytest.mark.parametrize("signature", signatures(), ids=lambda signature: signature.id)
def test_slurms_own_words_are_among_the_words_a_line_needs(signature):
    said = [text for text in signature.samples if signature.sure(text)]
    assert bool(signature.certain) == bool(said)


def test_a_failed_job_with_a_sample_in_its_log_gets_that_category():
    for category, text in SAMPLES:
        if by_id()[category].decides and not by_id()[category].patterns:
            continue  # Slurm's records decide these, tested on their own
        assert diagnose(job(exit_code=1), (), [log(text)]).category == category, text


@pytest.mark.parametrize("signature", signatures(), ids=lambda signature: signature.id)
def test_whatever_a_pattern_matches_holds_one_of_the_words(signature):
    @settings(max_examples=20, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of([st.from_regex(pattern) for pattern in (*signature.certain, *signature.patterns)]))
    def holds(line):
        assert signature.concerns(line.lower())

    holds()


def test_warnings_are_harmless_and_exceptions_are_not():
    assert harmless("/x/y.py:3: UserWarning: CUDA out of memory")
    assert harmless("2026-01-01 INFO something failed")
    assert not harmless("RuntimeError: NCCL failed, run with NCCL_DEBUG=INFO")
    assert not harmless("ValueError: the warning: was right")
