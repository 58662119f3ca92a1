#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

cat > launch.sh <<'EOF'
#!/bin/bash
export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID
python train.py
EOF
chmod u+x launch.sh
srun ./launch.sh
