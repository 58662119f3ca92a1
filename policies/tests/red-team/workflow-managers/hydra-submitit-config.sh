#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
cat > conf/launch.yaml <<'EOF'
defaults:
  - override hydra/launcher: submitit_slurm
EOF
python train.py --config-name launch -m
