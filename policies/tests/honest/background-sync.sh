#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

(
  while sleep 600; do
    rsync -a logs/ "$HOME/logs/$SLURM_JOB_ID/"
  done
) &
SYNC=$!
python train.py --logdir logs
kill $SYNC
rsync -a logs/ "$HOME/logs/$SLURM_JOB_ID/"
