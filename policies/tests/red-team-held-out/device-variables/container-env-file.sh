#!/bin/bash
#SBATCH --job-name=container-env-file
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > run.env <<'EOF'
OMP_NUM_THREADS=4
CUDA_VISIBLE_DEVICES=3
EOF
apptainer run --nv --env-file run.env images/torch.sif
