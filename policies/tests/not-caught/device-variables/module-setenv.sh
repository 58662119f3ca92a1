#!/bin/bash
#SBATCH --job-name=module-setenv
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mkdir -p mods
cat > mods/gpu <<'EOF'
#%Module
setenv CUDA_VISIBLE_DEVICES 1
EOF
module use "$PWD/mods"
module load gpu
python train.py
