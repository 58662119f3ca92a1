"""Workers that set CUDA_VISIBLE_DEVICES, mended as the refusal says: on a real Slurm they run beside each other."""

from __future__ import annotations

import re

import anyio
import pytest
from tests.system.faces import Place
from tests.unit.policy.kept_work import mended

SCRIPT = "scripts/job.sh"
HEADS = {
    "memory of each GPU": ("--gpus=2", "--mem-per-gpu=200M"),
    "memory of the node, GPUs by gres": ("--gres=gpu:2", "--mem=400M"),
    "GPUs of each node": ("--gpus-per-node=2", "--mem=400M"),
    "memory of each CPU": ("--gpus=2", "--mem-per-cpu=400M"),
    "CPUs of a task": ("--gpus=2", "--cpus-per-task=4", "--mem=400M"),
}
WORKERS = """
for i in 0 1; do
  CUDA_VISIBLE_DEVICES=$i python3 worker.py --rate 0.$((i+1)) &
done
wait
"""
WORKER = """import os, time
begun = time.time()
time.sleep(3)
print("ran", begun, time.time(), os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
"""


@pytest.mark.parametrize("options", HEADS.values(), ids=list(HEADS))
def test_mended_workers_run_beside_each_other_each_with_a_gpu_of_its_own(fresh: Place, options: tuple[str, ...]):
    lines = ["#!/bin/bash", *(f"#SBATCH {word}" for word in (*options, "--time=5", "--partition=gpu", "--output=log"))]
    text = anyio.run(mended, "\n".join(lines) + WORKERS, SCRIPT)
    assert "CUDA_VISIBLE_DEVICES" not in text
    (fresh.project / "worker.py").write_text(WORKER)
    fresh.own()
    fresh.slurm("sbatch", "--wait", stdin=text.encode())
    log = (fresh.project / "log").read_text()
    (first, second) = sorted(re.findall(r"ran (\S+) (\S+) (\d+)", log))
    assert float(second[0]) < float(first[1]), log
    assert {first[2], second[2]} == {"0", "1"}
