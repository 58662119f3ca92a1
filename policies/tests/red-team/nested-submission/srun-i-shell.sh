#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
srun -n1 bash <<'EOF'
module load slurm
sbatch next.sh
EOF
