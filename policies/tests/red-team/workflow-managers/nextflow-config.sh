#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

cat > run.config <<'EOF'
process.executor = 'slurm'
EOF
nextflow run main.nf -c run.config
