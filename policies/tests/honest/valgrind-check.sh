#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
for t in tests/bin/*; do valgrind --error-exitcode=2 "$t" || echo "$t leaks" >> leaks.txt; done
