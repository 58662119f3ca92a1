#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python - <<'EOF' || exit 1
import sys
sys.exit(0 if sys.version_info >= (3, 10) else 1)
EOF
python train.py
