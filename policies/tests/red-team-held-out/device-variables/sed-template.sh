#!/bin/bash
#SBATCH --job-name=sed-template
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > template.sh <<'EOF'
export @NAME@=1
python train.py
EOF
sed 's/@NAME@/CUDA_VISIBLE_DEVICES/' template.sh > filled.sh
bash filled.sh
