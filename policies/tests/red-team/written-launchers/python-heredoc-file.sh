#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

cat <<'EOF' > probe.py
import torch
torch.cuda.set_device(1)
EOF
python probe.py
