"""The readers meet what nobody would write: no text may make them fail or run on.

SOAK_SECONDS is how long all of it takes together; without it, a short form.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.check_script import everyday
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from tests.unit.scripts.project import ROOT, MemoryFiles
from tests.watchdog import ends

from slurm_agent_tools.models.decision import decision_shown
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.programs.languages.python_program import read_python
from slurm_agent_tools.scripts.directive_lines import read_directives
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.scripts.reading_state import scan

SECONDS = float(os.environ.get("SOAK_SECONDS", "15"))
LOADED = load(shipped())
RICH = rb"""#!/bin/bash -l
#SBATCH --job-name="a b" --gpus-per-node=2 # JUSTIFIED: large
#SBATCH -N1 -n 4 -c8 -t 0-02:00:00 --mem=16G --array=1-9%2
#SBATCH hetjob
module load cuda/12 && source "$HOME/env/bin/activate"
eval "$(conda shell.bash hook)"; export OMP_NUM_THREADS=${SLURM_CPUS_PER_TASK:-1}
files=(a b "c d"); for f in "${files[@]}"; do python train.py "$f" || exit 1; done
train() { srun --gpus=1 python -u train.py "$@"; }; train --lr 0.1 | tee -a log.txt
until squeue -h -j "$1" | grep -q .; do sleep 5; done
[[ $? -ne 0 ]] && echo failed >&2; case "$x" in a|b) bash lib.sh;; *) ((n+=1));; esac
cat > run.sh <<'E'
export CUDA_VISIBLE_DEVICES=0
E
bash run.sh; python - <<E
import os; os.system("sbatch $0")
E
timeout 5 env A=1 bash -c 'scontrol requeue "$SLURM_JOB_ID"'; trap 'echo $?' EXIT
"""
SAMPLES = [
    RICH,
    everyday(60),
    *(
        path.read_bytes()
        for path in sorted((Path(__file__).parents[2] / "policies" / "tests").rglob("*.sh"))
        if path.stat().st_size < 20_000
    ),
]

WORDS = st.sampled_from(
    """
    sbatch salloc srun scontrol requeue bash -c sh eval python python3 -m ssh env exec xargs timeout 5 nohup time find
    -exec ; echo printf %s cat train.py lib.sh ./run.sh "$x" $x ${x} ${x:-y} ${x[@]} "${x[@]}" "$@" $# $? $1 $(x) `x`
    $((1+x)) <(x) 'a b' "a b" $'\\x73' \\s {a,b} * ? ~ [ ] [[ ]] ! CUDA_VISIBLE_DEVICES=0 export declare -n local read
    set -- trap alias retry parallel watch su flock accelerate launch --multi-prog cuda:1 /dev/stdin - -- = == -eq 0 | &
    && || x=1 x+=2 x=(a b) x[0]=1 >f <f >>f 2>&1 <<<x # while until for do done if then else elif fi case in esac ;; ( )
    { } function f f()
    """.split()  # noqa: SIM905 - words of the shell, one list
)
PYTHON_WORDS = st.sampled_from(
    """
    import os subprocess submitit torch . run system ( ) [ ] { } , : = == + % * ** "sbatch x" 'cuda:1' f"{x}" x y 1 0
    os.environ ["CUDA_VISIBLE_DEVICES"] def f lambda return for in if else while try except eval exec b64decode decode
    format join split " " None True cuda device to await async with as class @ ; -> := ... ~ not and or is
    """.split()  # noqa: SIM905 - words of Python, one list
)
SEPARATORS = st.sampled_from([" ", " ", " ", "\n", ";", "", "\t", "\\\n", "\n    "])


def joined(words: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Words with something between them."""
    return st.lists(st.tuples(words, SEPARATORS), max_size=40).map(lambda pairs: "".join(map("".join, pairs)))


def nested() -> st.SearchStrategy[str]:
    """Programs with the shell's own shape."""
    simple = st.lists(WORDS.filter(lambda word: word.isalnum() or word[0] in "$\"'-"), min_size=1, max_size=5).map(
        " ".join
    )
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from([" | ", " && ", " || ", "; ", " & ", "\n"]), inner).map("".join),
            st.tuples(
                st.sampled_from(
                    [
                        "if {0}; then {0}; fi",
                        "while {0}; do {0}; done",
                        "for x in a b; do\n{0}\ndone",
                        "( {0} )",
                        "f() {{ {0}; }}",
                        "x=$({0})",
                        'echo "$({0})"',
                        "case $x in a) {0};; esac",
                        "{{ {0}; }} > f.sh",
                        "bash <<'E'\n{0}\nE",
                        "python - <<E\n{0}\nE",
                        "! {0}",
                        "cat > run.sh <<E\n{0}\nE\nbash run.sh",
                        "bash -c '{0}'",
                        'eval "{0}"',
                        "until {0}; do {0}; done",
                        "bash <({0})",
                        "coproc {0}",
                    ]
                ),
                inner,
            ).map(lambda pair: pair[0].format(pair[1])),
        ),
        max_leaves=12,
    )


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """One of the shipped cases with pieces of it cut, doubled, swapped or replaced."""
    data = bytearray(draw(st.sampled_from(SAMPLES)))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        size = draw(st.integers(0, 40))
        piece = data[at : at + size]
        data[at : at + size] = draw(
            st.sampled_from([b"", bytes(piece * 3), bytes(piece[::-1]), b"\x00", b"\xff", b"'", b"$(", b"<<E\n", b"\n"])
        )
    return bytes(data)


def scripts() -> st.SearchStrategy[bytes]:
    """Bytes, changed scripts, words of the shell and programs, most of them as a batch script begins."""
    heads = st.sampled_from([b"#!/bin/bash\n"] * 6 + [b"#!/usr/bin/env python3\n", b"#!/bin/csh\n", b"#!", b""])
    options = st.lists(
        st.one_of(joined(st.sampled_from(["--mem=1G", "--gpus", "2", "-c4", "-t1:", "hetjob", "--array=1-9%2", "--x", "-G8", "'\"", "#", "\\", "--export=A"])), st.text(max_size=12)),
        max_size=3,
    ).map(lambda lines: "".join(f"#SBATCH {line}\n" for line in lines))  # fmt: skip
    bodies = st.one_of(
        st.binary(max_size=200),
        st.text(max_size=100).map(_encoded),
        joined(WORDS).map(_encoded),
        nested().map(_encoded),
    )
    python = joined(PYTHON_WORDS).map(lambda text: _encoded(f"python - <<'E'\n{text}\nE\n"))
    whole = st.tuples(heads, options.map(_encoded), st.one_of(bodies, python)).map(b"".join)
    return st.one_of(whole, changed())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def soak(test: Callable[..., None], strategy: st.SearchStrategy[object], seconds: float) -> int:
    """Rounds of examples, each with another seed, until the time is over; how many there were."""
    count = 0

    def counted(value: object) -> None:
        nonlocal count
        count += 1
        test(value)

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        checked = settings(
            max_examples=40, deadline=None, database=None, phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )(given(strategy)(counted))  # fmt: skip
        seed(random.getrandbits(64))(checked)()
    return count


def test_no_script_makes_the_reader_or_the_decision_fail():
    import anyio  # noqa: PLC0415 - the only test here that waits

    files = MemoryFiles(
        {
            f"{ROOT}/lib.sh": b"bash run.sh\nexport x\n",
            f"{ROOT}/train.py": b"import torch\n",
            f"{ROOT}/run.sh": b"\xff\xfe$(x",
        }
    )

    def check(data: object) -> None:
        assert isinstance(data, bytes)
        with ends():
            reading = anyio.run(lambda: read_script(data, "job.sh", project=ROOT, files=files))
            decision = decision_shown(evaluate(reading, EvaluationContext(LOADED, ROOT)))
        decision.model_dump_json()

    assert soak(check, scripts(), SECONDS * 0.7) > 0


def test_no_python_makes_its_reader_fail():
    def check(text: object) -> None:
        assert isinstance(text, str)
        assert read_python(text).findings is not None

    texts = st.one_of(joined(PYTHON_WORDS), st.text(max_size=200))
    assert soak(check, texts, SECONDS * 0.1) > 0


def test_no_directives_make_their_reader_fail():
    def check(data: object) -> None:
        assert isinstance(data, bytes)
        header = read_directives(data, "job.sh")
        assert all(directive.evidence.line > 0 for directive in header.directives)

    assert soak(check, scripts(), SECONDS * 0.1) > 0


def test_no_text_makes_the_search_for_words_fail():
    def check(text: object) -> None:
        assert isinstance(text, str)
        assert all(line > 0 for _, _, line in scan(text))

    assert soak(check, st.one_of(joined(WORDS), st.text(max_size=200)), SECONDS * 0.1) > 0
