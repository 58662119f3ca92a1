#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

relion_refine_mpi --o Class2D/run --i particles.star --K 50 --iter 25 --gpu "" --j 4 --pool 30
