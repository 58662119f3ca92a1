#!/bin/bash
#SBATCH --job-name=mapfile-command
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mapfile -t words <<'EOF'
sbatch
--gpus=8
big.sh
EOF
"${words[@]}"
