"""Commands that go, or go in a plainer form; what cannot be mended from the text alone is left out whole."""

from __future__ import annotations

import pytest

from slurm_agent_tools.policy.rules import script_mending

BAD = r"\bsbatch\b"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("sbatch b.sh; python a.py", "python a.py"),
        ("python a.py; sbatch b.sh", "python a.py"),
        ("python a.py && sbatch b.sh && echo done", "python a.py && echo done"),
        ("sbatch b.sh || echo no", "echo no"),
        ("  sbatch b.sh && echo yes", "  echo yes"),
        ("if sbatch b.sh; then echo yes; fi", "if :; then echo yes; fi"),
        ("echo 'sbatch; sbatch'; python a.py", "python a.py"),
        ('echo "a; b"; sbatch b.sh', 'echo "a; b"'),
        ("sbatch b.sh", ""),
        ("python a.py; python b.py", ""),  # it is not in there: nothing is known to be harmless
        ("SUBMIT=sbatch; $SUBMIT b.sh", ""),  # what uses the name would stay
        ("export SUBMIT=sbatch; $SUBMIT b.sh", ""),
        ("python a.py \\\n; sbatch b.sh", ""),
    ],
)
def test_a_command_is_taken_out_of_its_line_and_the_others_stay(text, left):
    assert script_mending.drop(text, BAD) == left


@pytest.mark.parametrize(
    ("text", "work"),
    [
        ("until python a.py; do sleep 9; done", "python a.py"),
        ("while ! python a.py --resume; do sleep 9; done", "python a.py --resume"),
        ("until python a.py \\\n  --fast\ndo\n  sleep 9\ndone", "python a.py --fast"),
        ("for n in 1 2 3; do if python a.py; then break; fi; done", "python a.py"),
        ("for n in 1 2 3; do python a.py && break; sleep 9; done", "python a.py"),
        ("for n in 1 2 3\ndo\n  echo $n\n  python a.py\ndone", "python a.py"),
        ("while (( n < 3 )); do (( n++ )); python a.py; done", "python a.py"),
        ("while [ $n -lt 3 ]; do n=$((n+1)); if [ $n = 2 ]; then python a.py; fi; done", ""),
        ("for n in 1 2 3; do sleep 9; done", ""),
    ],
)
def test_the_work_of_a_loop_that_tries_again_is_run_once(text, work):
    assert script_mending.once(text) == work
