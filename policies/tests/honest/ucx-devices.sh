#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

export UCX_NET_DEVICES=mlx5_0:1 NCCL_IB_HCA=mlx5_0:1,mlx5_1:1
export NCCL_SOCKET_IFNAME=ib0
srun ./bench
