#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

VAR=CUDA_VISIBLE_DEVICES
cat > r.sh <<EOF
export $VAR=0
python t.py
EOF
bash r.sh
