#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
python - <<'EOF' || exit 1
import sys
sys.exit(0 if sys.version_info >= (3, 10) else 1)
EOF
python train.py
