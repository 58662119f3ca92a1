#!/bin/bash
#SBATCH --job-name=tb-train
#SBATCH --gpus=1
#SBATCH --mem=14G
#SBATCH --time=15:00:00
#SBATCH --output=logs/%x-%j.out

. .venv/bin/activate
tensorboard --logdir runs --host 0.0.0.0 --port 6006 --load_fast=false &> logs/tensorboard.log &
tb=$!
python -m src.train experiment=cifar10 trainer.max_epochs=200 seed=1 hydra.run.dir="runs/$SLURM_JOB_ID"
status=$?
kill $tb; wait $tb 2>/dev/null
exit $status
