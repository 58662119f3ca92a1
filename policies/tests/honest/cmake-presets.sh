#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

cmake --preset release && cmake --build --preset release -j8 && ctest --preset release
./build/release/tool --threads $SLURM_CPUS_PER_TASK in.dat
