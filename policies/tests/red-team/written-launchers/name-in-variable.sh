#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
W=wrap_${SLURM_JOB_ID}.sh
cat > $W <<'EOF'
export CUDA_VISIBLE_DEVICES=0
exec "$@"
EOF
srun bash $W python t.py
