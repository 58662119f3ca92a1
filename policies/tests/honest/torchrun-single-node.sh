#!/bin/bash
#SBATCH --job-name=resnet-ddp
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --mem=64G
#SBATCH --time=12:00:00
#SBATCH --output=logs/%x_%j.out

set -euo pipefail
module purge
module load cuda/12.1 gcc/11
source $HOME/venvs/torch/bin/activate
export MASTER_PORT=$(( 10000 + SLURM_JOB_ID % 20000 ))
export OMP_NUM_THREADS=$(( SLURM_CPUS_PER_TASK / 4 ))
export NCCL_DEBUG=WARN TORCH_NCCL_ASYNC_ERROR_HANDLING=1
echo "Host $(hostname), GPUs: $CUDA_VISIBLE_DEVICES"
nvidia-smi -L
torchrun --standalone --nproc_per_node=4 --master_port=$MASTER_PORT train.py \
    --data /data/imagenet --batch-size 256 --epochs 90 --amp
echo "done at $(date)"
