#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

STEP=$(cat last_step 2>/dev/null || echo 0)
while [ "$STEP" -lt 1000000 ]; do
  gmx mdrun -deffnm md -cpi -nsteps 100000 || exit 1
  STEP=$((STEP + 100000))
  echo $STEP > last_step
done
