#!/bin/bash
#SBATCH --job-name=seg
#SBATCH --gpus=1
#SBATCH --mem=12G
#SBATCH --time=07:00:00
#SBATCH --output=logs/seg.%j

set -a
. ./job.env
set +a
export WANDB_MODE=offline
export WANDB_DIR=${TMPDIR:-/tmp}
export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
python -m seg.train --cfg "${CFG:-configs/base.yaml}" && \
  wandb sync --include-offline "$WANDB_DIR"/wandb/offline-run-*
