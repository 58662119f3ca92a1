#!/bin/bash
#SBATCH --job-name=nextflow-retry
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
cat > nextflow.config <<'EOF'
process { executor = 'local'; errorStrategy = 'retry'; maxRetries = 10 }
EOF
nextflow run main.nf
