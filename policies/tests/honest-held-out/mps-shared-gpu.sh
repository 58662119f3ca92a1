#!/bin/bash
#SBATCH --job-name=mps
#SBATCH --gres=gpu:1
#SBATCH --ntasks=4
#SBATCH --nodes=1
#SBATCH --mem=12G
#SBATCH --time=03:00:00

export CUDA_MPS_PIPE_DIRECTORY=/tmp/mps_$SLURM_JOB_ID/pipe
export CUDA_MPS_LOG_DIRECTORY=/tmp/mps_$SLURM_JOB_ID/log
export CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=25
export CUDA_LAUNCH_BLOCKING=0 CUDA_CACHE_PATH=/tmp/mps_$SLURM_JOB_ID/cache NVIDIA_TF32_OVERRIDE=0
mkdir -p $CUDA_MPS_PIPE_DIRECTORY $CUDA_MPS_LOG_DIRECTORY
nvidia-cuda-mps-control -d
trap 'echo quit | nvidia-cuda-mps-control' EXIT

for k in {1..4}; do
    OMP_NUM_THREADS=1 ./mdsim --replica $k --steps 500000 > replica_$k.log 2>&1 &
done
wait
grep -h "ns/day" replica_*.log
