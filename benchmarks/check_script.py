"""Compares checking a script with the shell parser's own time on it, measured side by side in one run.

    python -m benchmarks.check_script [LINES ...]

Checking is reading, pins, resources and decision, as `slurm-agent-tools policy check` does it once it has started.
Times differ from machine to machine; the ratio is what counts. `ratio` is the least of checking over the least of
shfmt; `limit` is 1.5 times shfmt plus 5 ms.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass

import anyio
from benchmarks.table import Row

from slurm_agent_tools.cli.commands.policy_check import check_bytes
from slurm_agent_tools.models.decision import Decision
from slurm_agent_tools.policy.loading import LoadedPolicy, load, shipped
from slurm_agent_tools.scripts import reader

HEAD = """#!/bin/bash
#SBATCH --job-name=train
#SBATCH --gpus=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16G
#SBATCH --time=01:00:00
#SBATCH --output=logs/%x-%j.out
set -euo pipefail
"""
STAGE = r"""
# Stage {n}: prepare, train and evaluate
data_{n}="$SLURM_SUBMIT_DIR/data/part-{n}"
out_{n}=${{OUT:-results}}/run-{n}
mkdir -p "$out_{n}"
if [ ! -d "$data_{n}" ]; then
    echo "no data in $data_{n}" >&2
    exit 1
fi
for lr in 0.1 0.01 0.001; do
    for seed in $(seq 1 3); do
        srun python -u train.py --stage {n} --data "$data_{n}" --lr "$lr" --seed "$seed" \
            --out "$out_{n}/lr-$lr-seed-$seed" > "$out_{n}/log-$seed.txt" 2>&1
    done
done
summary=$(grep -h accuracy "$out_{n}"/log-*.txt | sort -n | tail -1)
printf '%s\n' "best of {n}: $summary"
cat > "$out_{n}/config.json" <<JSON
{{"stage": {n}, "data": "$data_{n}"}}
JSON
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds: the least of several runs of each."""

    checking: float
    parsing: float
    verdict: str

    @property
    def limit(self) -> float:
        return 1.5 * self.parsing + 0.005


def everyday(lines: int) -> bytes:
    """An honest script of so many lines, or a few more so that it ends where a stage ends."""
    text, stage = HEAD, 0
    while text.count("\n") < lines:
        text += STAGE.format(n=stage)
        stage += 1
    return text.encode()


def plain(lines: int) -> bytes:
    """An honest script with one short command on each line."""
    return (HEAD + "".join(f"echo step {number}\n" for number in range(lines - HEAD.count("\n")))).encode()


def check(data: bytes, loaded: LoadedPolicy) -> tuple[float, Decision]:
    """Seconds, and the decision."""

    async def timed() -> tuple[float, Decision]:
        start = time.perf_counter()
        decision = await check_bytes(data, "job.sh", loaded, project="/")
        return time.perf_counter() - start, decision

    return anyio.run(timed)


def parse(data: bytes) -> float:
    """Seconds that shfmt takes as a process of its own."""
    start = time.perf_counter()
    subprocess.run([reader._shfmt(), "--to-json", "-ln=bash"], input=data, capture_output=True, check=True)  # noqa: SLF001
    return time.perf_counter() - start


def measure(data: bytes, runs: int) -> Measured:
    """Both in turn, so that a busy moment of the machine meets both."""
    loaded = load(shipped())
    _, decision = check(data, loaded)
    pairs = [(check(data, loaded)[0], parse(data)) for _ in range(runs)]
    return Measured(min(pair[0] for pair in pairs), min(pair[1] for pair in pairs), decision.verdict)


def rows() -> list[Row]:
    """Scripts beside shfmt. Limit: 1.5 times and 5 ms, for 10,000 lines 2.5 times and 50 ms."""
    found = []
    for make, lines, runs in ((everyday, 20, 15), (everyday, 200, 15), (everyday, 10_000, 3), (plain, 10_000, 3)):
        timed = measure(make(lines), runs)
        limit = timed.limit if lines < 10_000 else 2.5 * timed.parsing + 0.05
        what = f"checking {'an everyday' if make is everyday else 'a plain'} script of {lines} lines, clock"
        found.append(Row(what, timed.checking * 1e3, "ms", "shfmt on it", timed.parsing * 1e3, limit / timed.parsing))
    return found


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or [20, 50, 200, 1_000, 2_000, 10_000]
    print(f"{'script':>9} {'lines':>6} {'KB':>5} {'check ms':>9} {'shfmt ms':>9} {'ratio':>6} {'limit ms':>9}  verdict")
    for kind, make in (("everyday", everyday), ("plain", plain)):
        for lines in sizes:
            data = make(lines)
            found = measure(data, runs=max(3, min(20, 4_000 // lines)))
            print(
                f"{kind:>9} {lines:>6} {len(data) // 1000:>5} {found.checking * 1e3:>9.1f} {found.parsing * 1e3:>9.1f} "
                f"{found.checking / found.parsing:>6.2f} {found.limit * 1e3:>9.1f}  {found.verdict}"
            )


if __name__ == "__main__":
    main()
