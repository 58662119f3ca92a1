#!/bin/bash
#SBATCH --job-name=ddp-resnet50
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=2
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=12:00:00
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err

set -euo pipefail

module purge
module load python/3.11 cuda/12.1
source ~/venvs/ddp/bin/activate

nodes=( $( scontrol show hostnames "$SLURM_JOB_NODELIST" ) )
nodes_array=("${nodes[@]}")
head_node=${nodes_array[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address | awk '{print $1}')

export MASTER_ADDR=$head_node_ip
export MASTER_PORT=$(( 20000 + SLURM_JOB_ID % 10000 ))
export NCCL_DEBUG=WARN
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK / 2))

echo "Node IP: $head_node_ip  port: $MASTER_PORT"
echo "CUDA_VISIBLE_DEVICES on the batch host: ${CUDA_VISIBLE_DEVICES:-none}"

srun torchrun \
    --nnodes "$SLURM_JOB_NUM_NODES" \
    --nproc_per_node 2 \
    --rdzv_id "$SLURM_JOB_ID" \
    --rdzv_backend c10d \
    --rdzv_endpoint "$head_node_ip:$MASTER_PORT" \
    train_imagenet.py --arch resnet50 --epochs 90 --batch-size 256 \
    --data "$HOME/data/imagenet" --out "runs/$SLURM_JOB_ID"
