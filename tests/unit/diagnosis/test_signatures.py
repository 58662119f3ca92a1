from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.unit.diagnosis.records import TRACEBACK, log, wrote

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.excerpt import clean, split_rank
from slurm_agent_tools.diagnosis.harmless_lines import harmless, passing
from slurm_agent_tools.diagnosis.log_figures import errors
from slurm_agent_tools.diagnosis.signatures import (
    Signature,
    by_id,
    compiled,
    ere,
    matching,
    shortest,
    signatures,
    words,
)

CATEGORIES = {
    "host-out-of-memory", "gpu-out-of-memory", "time-limit", "cancelled", "preempted", "node-failure", "missing-module",
    "missing-file", "permission", "disk-full", "script-error", "command-not-found", "module-load", "shared-library",
    "cuda-driver", "cuda-error", "nccl-timeout", "port-in-use", "segmentation-fault", "bus-error", "python-exception",
    "numeric", "license", "network", "mpi-abort", "dependency", "limit",
    "storage-fault", "container-start", "deadline", "node-unavailable",
}  # fmt: skip
SAMPLES = [(signature.id, text) for signature in signatures() for text in signature.samples]
NEAR_MISSES = [(signature.id, text) for signature in signatures() for text in signature.near_misses]


def test_every_promised_category_has_a_signature():
    assert set(by_id()) == CATEGORIES
    assert len(signatures()) == len(CATEGORIES)


@pytest.mark.proves("categories-have-samples")
@pytest.mark.parametrize("signature", signatures(), ids=lambda signature: signature.id)
def test_every_signature_has_two_different_samples_and_a_near_miss(signature):
    assert len(set(signature.samples)) >= 2
    assert signature.near_misses
    assert not set(signature.samples) & set(signature.near_misses)


@pytest.mark.proves("categories-have-samples")
@pytest.mark.parametrize(("category", "text"), SAMPLES)
def test_every_sample_is_recognised_among_all_signatures(category, text):
    assert diagnose(None, (), [log("starting", text)]).category == category


@pytest.mark.proves("categories-have-samples")
@pytest.mark.parametrize(("category", "text"), NEAR_MISSES)
def test_no_near_miss_matches(category, text):
    assert not [line for line in clean(text.encode()) if by_id()[category].match(split_rank(line)[1])]


def test_every_pattern_of_slurms_own_words_has_a_sample_or_decides_nothing():
    for signature in signatures():
        said = [text for text in signature.samples if (found := signature.match(text)) and _certain(signature, found)]
        assert bool(signature.certain) == bool(said), signature.id


def _certain(signature, found):
    return signature.strength(found) == "certain"


def test_a_failed_job_with_a_sample_in_its_log_gets_that_category():
    for category, text in SAMPLES:
        if "state=FAILED" not in by_id()[category].contradicts and "*** JOB" not in text:  # of that, the record tells
            assert diagnose(wrote(log(text), exit_code=1), (), [log(text)]).category == category, text


def test_a_hint_is_never_said_with_confidence():
    for signature in signatures():
        for text in signature.samples:
            found = signature.match(split_rank(text)[1])
            if found is not None and signature.strength(found) in {"weak", "last", "effect"}:
                assert diagnose(None, (), [log(text)]).confidence <= 0.5, text


@pytest.mark.parametrize("signature", signatures(), ids=lambda signature: signature.id)
def test_whatever_a_pattern_matches_holds_one_of_the_words(signature):
    @settings(
        max_examples=tries(30), derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(
        st.one_of(
            [
                st.from_regex(pattern)
                for pattern in compiled(
                    (*signature.certain, *signature.causes, *signature.patterns, *signature.weak, *signature.last)
                )
            ]
        )
    )
    def holds(line):
        assert signature.concerns(line.lower())
        if "\n" not in line and signature.match(line) is not None:
            assert signature in [one for _, one, _ in matching([line])]

    holds()


@pytest.fixture(name="tried")
def _tried(monkeypatch) -> list[str]:
    """The lines that are held against a signature, once for each that they are held against."""
    tried: list[str] = []

    def search(signature: Signature, line: str) -> re.Match[str] | None:
        tried.append(line)
        return actual(signature, line)

    actual = Signature.search
    monkeypatch.setattr(Signature, "search", search)
    return tried


def test_lines_of_information_are_held_against_no_signature_for_the_beginning_of_that_word(tried):
    found = matching(["2026-03-01 12:00:00 INFO step 7 lr=1e-4", "[INFO] step 8", "INFO step 9 loss: inf"])

    assert [(index, signature.id) for index, signature, _ in found] == [(2, "numeric")]
    assert set(tried) == {"INFO step 9 loss: inf"}


def test_the_errors_that_are_shown_are_found_by_what_the_diagnosis_has_asked_already(tried):
    texts = [log("starting", *TRACEBACK, "ValueError: loss is nan", "[Errno 28] No space left on device")]
    diagnose(None, (), texts)
    asked = len(tried)

    shown = errors(texts)

    assert [line.line for line in shown] == [2, 7, 8]
    assert 0 < asked == len(tried)


def test_a_pattern_is_compiled_when_a_line_is_first_held_against_its_signature(monkeypatch):
    found = []

    def compiling(patterns: Iterable[str]) -> list[re.Pattern[str]]:
        found.extend(patterns)
        return compiled(patterns)

    read = signatures.__wrapped__()
    monkeypatch.setattr("slurm_agent_tools.diagnosis.signatures.compiled", compiling)

    assert not found
    assert read[0].match("slurmstepd: error: Detected 1 oom-kill event(s)") is not None
    assert set(found) == {*read[0].certain, *read[0].unless}


def test_the_shortest_of_texts_are_those_that_hold_no_other_one():
    assert shortest(["port in use", "in use", "a port", "use", "us", "port"]) == {"us", "port"}
    assert shortest(["killed", "nan", "killed"]) == {"killed", "nan"}


def test_words_are_small_letters_as_grep_compares_them():
    assert all(word == word.lower() and "\n" not in word for word in words())


def test_grep_with_the_words_lets_every_sample_through_and_ordinary_lines_not():
    ordinary = ["epoch 3/10 loss=0.41 lr=3e-4", "Loading data", "step 12 of 90", "All 4 workers are up"]
    lines = [text for _, text in SAMPLES]

    done = subprocess.run(
        ["grep", "-a", "-n", "-i", "-E", "-e", "|".join(ere())],
        input="\n".join([*lines, *ordinary]).encode(),
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        check=True,
    )

    assert not done.stderr
    numbers = [int(line.partition(b":")[0]) for line in done.stdout.splitlines()]
    assert numbers == list(range(1, len(lines) + 1))


def test_words_find_the_lines_that_signatures_would_match_one_by_one():
    lines = [text for _, text in (*SAMPLES, *NEAR_MISSES)]
    slow = [(i, s.id) for i, line in enumerate(lines) for s in signatures() if s.match(line) is not None]

    assert [(index, signature.id) for index, signature, _ in matching(lines)] == slow


def test_warnings_are_harmless_and_exceptions_are_not():
    assert harmless("/x/y.py:3: UserWarning: CUDA out of memory")
    assert harmless("2026-01-01 INFO something failed")
    assert not harmless("RuntimeError: NCCL failed, run with NCCL_DEBUG=INFO")
    assert not harmless("ValueError: the warning: was right")
    assert not harmless("gpu01:1:2 [0] NCCL WARN Cuda failure 'out of memory'")


@pytest.mark.parametrize(
    "text",
    [
        "Connection to data.example.org timed out, retrying in 5 s",
        "download attempt 2/5 failed: connection reset",
        "libfoo.so: cannot open shared object file, falling back to the slow path",
        "loss is nan, skipping this batch",
        "E external/xla/stream_executor/cuda/cuda_blas.cc:1407] Unable to register cuBLAS factory: already registered",
        "bash: warning: setlocale: LC_ALL: cannot change locale (en_GB.UTF-8)",
        "test_out_of_memory PASSED",
        "solver exit codes: 1 out of memory, 2 file not found, 3 permission denied",
        "Could not load library libcudnn_ops_infer.so.8, running on CPU instead",
        "cannot open last.pt: No such file or directory, starting from scratch",
        "NOTE: Process `A (5)` terminated with an error exit status (137) -- Execution is retried (1)",
    ],
)
def test_what_a_program_got_over_is_no_failure(text):
    assert passing(text)
    assert diagnose(None, (), [log(text)]).category == "none"


def test_the_last_of_several_attempts_is_not_got_over():
    assert not passing("download attempt 5/5 failed: connection reset")
