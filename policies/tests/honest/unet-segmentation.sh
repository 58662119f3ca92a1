#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

set -e
[ -d "$DATA" ] || { echo "DATA is no folder"; exit 2; }
source ~/miniconda3/etc/profile.d/conda.sh && conda activate seg
PYTHONUNBUFFERED=1 python train_unet.py --data "$DATA" --amp --workers $SLURM_CPUS_PER_TASK
