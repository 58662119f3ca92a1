#!/bin/bash
#SBATCH --job-name=yaml-heredoc
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > config.yaml <<'EOF'
trainer:
  epochs: 10
  device: "cuda:2"
EOF
python train.py --config config.yaml
