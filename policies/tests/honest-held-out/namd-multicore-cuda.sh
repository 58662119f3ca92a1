#!/bin/bash
#SBATCH --job-name=apoa1
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=10
#SBATCH --mem=10G
#SBATCH --time=0-08:00
#SBATCH --output=apoa1_%j.log

# Slurm fills CUDA_VISIBLE_DEVICES; do not export CUDA_VISIBLE_DEVICES=0 here,
# the node is shared and device 0 may belong to somebody else.
module load namd/3.0b6-cuda

echo "Running on $(hostname), GPUs: $CUDA_VISIBLE_DEVICES"
START=$(date +%s)
namd3 +p${SLURM_CPUS_PER_TASK} +setcpuaffinity +idlepoll apoa1.namd > apoa1.log
END=$(date +%s)
echo "elapsed $(( (END - START) / 60 )) min $(( (END - START) % 60 )) s"
grep "Benchmark time" apoa1.log | tail -3
