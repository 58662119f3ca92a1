#!/bin/bash
#SBATCH --job-name=heredoc-variable
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
read -r -d '' body <<'EOF'
sbatch --gpus=8 big.sh
EOF
bash -c "$body"
