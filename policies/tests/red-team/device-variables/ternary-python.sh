#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

python - <<'EOF'
import os, sys
os.environ["CUDA_VISIBLE_DEVICES"] = "0" if len(sys.argv) < 2 else sys.argv[1]
EOF
