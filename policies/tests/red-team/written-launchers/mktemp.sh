#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

T=$(mktemp)
cat > "$T" <<'EOF'
export CUDA_VISIBLE_DEVICES=0
python t.py
EOF
bash "$T"
