#!/bin/bash
#SBATCH --job-name=while-read-pipe
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
while read -r line; do
  echo "sbatch $line"
done <<'EOF' | sh
--mem=200G one.sh
--mem=200G two.sh
EOF
