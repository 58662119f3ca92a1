#!/bin/bash
#SBATCH --job-name=supervisor-conf
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > sup.conf <<'EOF'
[supervisord]
nodaemon=true
[program:work]
command=python train.py --resume
autorestart=true
EOF
supervisord -c sup.conf
