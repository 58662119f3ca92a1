#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
cmake --preset release && cmake --build --preset release -j8 && ctest --preset release
./build/release/tool --threads $SLURM_CPUS_PER_TASK in.dat
