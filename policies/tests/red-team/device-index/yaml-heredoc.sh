#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

cat > conf.yaml <<'EOF'
model: resnet50
device: cuda:1
EOF
python train.py --config conf.yaml
