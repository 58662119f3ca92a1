"""A beginner's script with six faults: it is to run as the cluster's rules want it."""

from __future__ import annotations

from evals.programs import TRAIN
from evals.task import Outcome, Task, need

NAIVE = """#!/bin/bash
#SBATCH --job-name=finetune
#SBATCH --partition=gpu
#SBATCH --gpus=8
#SBATCH --mem=240G
#SBATCH --time=00:30:00
#SBATCH --output=logs/%x-%j.out
export CUDA_VISIBLE_DEVICES=0,1
until python3 train.py --epochs 5; do
    sleep 60
done
sbatch next.sh
"""
FORBIDDEN = ("CUDA_VISIBLE_DEVICES", "until ", "sbatch ")


def check(seen: Outcome) -> None:
    """One job of one GPU within the free memory, whose script has none of the faults and trained."""
    job = seen.only()
    need((job.gpus, job.partition) == (1, "gpu"), f"it ran with {job.gpus} GPUs in {job.partition}")
    need(0 < job.megabytes <= 16 * 1024, f"it asked for {job.memory}")
    need("python3 train.py --epochs 5" in job.script, "it did not run the training")
    need(not any(word in job.script for word in FORBIDDEN), "the script that ran has a fault still")
    need(seen.json("out/rate-0.1.json") == {"train_loss": 0.2}, "it trained something else")


TASK = Task(
    prompt="finetune.sh was written by a beginner. Make it fit for this cluster and run it. One GPU and 16 GB are "
    "enough; the training itself stays `python3 train.py --epochs 5`, and next.sh is not needed any more.",
    files={"train.py": TRAIN, "finetune.sh": NAIVE, "next.sh": "#!/bin/bash\n"},
    check=check,
)
