#!/bin/bash
#SBATCH --job-name=cubench
#SBATCH --gres=gpu:1
#SBATCH --mem=4G
#SBATCH --time=0:30:00
#SBATCH --constraint=a100|v100
#SBATCH --output=bench_%j.txt

module load cuda/12.2
CC=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
nvcc -O3 -arch=sm_$CC -lineinfo -o reduce reduce.cu
for n in $((1<<20)) $((1<<22)) $((1<<24)) $((1<<26)); do
    for rep in {1..5}; do ./reduce $n; done | awk -v n=$n '{s+=$1} END {printf "%12d %8.3f GB/s\n", n, s/NR}'
done
nsys profile -o prof_$SLURM_JOB_ID --force-overwrite true --trace=cuda,nvtx ./reduce $((1<<24))
ncu --set basic -k regex:reduce -c 3 ./reduce $((1<<24)) || true
