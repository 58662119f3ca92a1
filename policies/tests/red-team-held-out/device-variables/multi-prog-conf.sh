#!/bin/bash
#SBATCH --job-name=multi-prog-conf
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > ranks.conf <<'EOF'
0 env CUDA_VISIBLE_DEVICES=0 python train.py
1 env CUDA_VISIBLE_DEVICES=1 python train.py
EOF
srun -n2 --multi-prog ranks.conf
