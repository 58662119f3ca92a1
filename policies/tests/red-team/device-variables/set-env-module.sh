#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
mkdir -p mods/gpu
cat > mods/gpu/one.lua <<'EOF'
setenv("CUDA_VISIBLE_DEVICES", "0")
EOF
module use $PWD/mods
module load gpu/one
python t.py
