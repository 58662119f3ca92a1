#!/bin/bash
#SBATCH --gpus=1 --mem=16G
#SBATCH --signal=B:USR1@300
#SBATCH --time=10:00:00
save() {
  echo "time is nearly up, saving"
  kill -USR1 "$PID"
  wait "$PID"
  cp -v ckpt/last.pt "$HOME/ckpt/$SLURM_JOB_ID.pt"
  exit 0
}
trap save USR1 TERM
python train.py --ckpt ckpt/last.pt &
PID=$!
wait "$PID"
