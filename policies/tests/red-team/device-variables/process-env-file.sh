#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

while IFS='=' read -r key value; do
  export "$key"="$value"
done <<'EOF'
OMP_NUM_THREADS=4
CUDA_VISIBLE_DEVICES=0
EOF
python t.py
