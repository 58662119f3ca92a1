#!/bin/bash
#SBATCH --job-name=process-substitution-script
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
bash <(cat <<'EOF'
sbatch --gpus=8 big.sh
EOF
)
