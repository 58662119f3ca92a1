#!/bin/bash
#SBATCH --job-name=snakemake-profile
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
mkdir -p profile
cat > profile/config.yaml <<'EOF'
executor: slurm
jobs: 100
EOF
snakemake --profile profile
