#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

avail=$(df --output=avail -BG "$SCRATCH" | tail -1 | tr -dc '0-9')
if (( avail < 50 )); then
  echo "only ${avail}G left" >&2
  exit 1
fi
./simulate
