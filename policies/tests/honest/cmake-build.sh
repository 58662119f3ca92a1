#!/bin/bash
#SBATCH -c 16 --mem=16G -t 1:30:00
module load cmake gcc/12 openmpi
cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -DENABLE_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES="80;90"
cmake --build build --parallel $SLURM_CPUS_PER_TASK
ctest --test-dir build --output-on-failure
