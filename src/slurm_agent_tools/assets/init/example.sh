#!/bin/bash
#SBATCH --job-name=example
#SBATCH --output=logs/slurm/%x-%j.out
#SBATCH --time=00:05:00
#SBATCH --cpus-per-task=1
#SBATCH --mem=200M

# A job of a few seconds, to try the way with: submit, wait, read its metrics, save the result. Put your own program here.
for epoch in 1 2 3; do
    echo "epoch $epoch/3 loss=0.$((9 - 2 * epoch)) accuracy=0.$((5 + epoch))"
    sleep 1
done
