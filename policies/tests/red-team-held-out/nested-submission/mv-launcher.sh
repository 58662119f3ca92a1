#!/bin/bash
#SBATCH --job-name=mv-launcher
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > notes.txt <<'EOF'
sbatch big.sh
EOF
cp notes.txt step.sh
bash step.sh
