#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

for i in {1..3}
do
    python train.py
    status=$?
    if [ $status -ne 0 ]; then
        sleep 30
    else
        break
    fi
done
