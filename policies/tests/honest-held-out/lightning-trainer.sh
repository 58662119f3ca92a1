#!/bin/bash -l
#SBATCH --nodes=1             # This needs to match Trainer(num_nodes=...)
#SBATCH --gres=gpu:2
#SBATCH --ntasks-per-node=2   # This needs to match Trainer(devices=...)
#SBATCH --cpus-per-task=6
#SBATCH --mem=32G
#SBATCH --time=0-12:00:00
#SBATCH --job-name=lit-unet
#SBATCH --output=logs/lit-%j.out

# activate conda env
source activate $1

# debugging flags (optional)
export NCCL_DEBUG=INFO
export PYTHONFAULTHANDLER=1

# on your cluster you might need these:
# set the network interface
# export NCCL_SOCKET_IFNAME=^docker0,lo

# might need the latest CUDA
# module load NCCL/2.4.7-1-cuda.10.0

# run script from above
srun python3 train.py --trainer.devices 2 --trainer.num_nodes 1 --trainer.strategy ddp
