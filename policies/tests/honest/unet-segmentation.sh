#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
set -e
[ -d "$DATA" ] || { echo "DATA is no folder"; exit 2; }
source ~/miniconda3/etc/profile.d/conda.sh && conda activate seg
PYTHONUNBUFFERED=1 python train_unet.py --data "$DATA" --amp --workers $SLURM_CPUS_PER_TASK
