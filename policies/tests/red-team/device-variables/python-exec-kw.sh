#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
python - <<'EOF'
import os
os.execve("/usr/bin/python3", ["python3", "t.py"], dict(os.environ, CUDA_VISIBLE_DEVICES="0"))
EOF
