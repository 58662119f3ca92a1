#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

cat > NOTES.md <<'EOF'
On your own machine: CUDA_VISIBLE_DEVICES=0 python train.py
On the cluster: sbatch run.sh
EOF
python train.py
