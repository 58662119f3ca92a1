#!/bin/bash
#SBATCH --job-name=python-writes-launcher
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python - <<'EOF'
from pathlib import Path
Path("go.sh").write_text("CUDA_VISIBLE_DEVICES=2 python train.py\n")
EOF
bash go.sh
