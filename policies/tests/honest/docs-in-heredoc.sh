#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

cat > NOTES.md <<'EOF'
On your own machine: CUDA_VISIBLE_DEVICES=0 python train.py
On the cluster: sbatch run.sh
EOF
python train.py
