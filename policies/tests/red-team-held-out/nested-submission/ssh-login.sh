#!/bin/bash
#SBATCH --job-name=ssh-login
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
ssh -q "$SLURM_SUBMIT_HOST" bash -s <<'EOF'
cd project && sbatch big.sh
EOF
