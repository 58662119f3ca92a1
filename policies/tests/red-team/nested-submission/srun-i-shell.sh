#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

srun -n1 bash <<'EOF'
module load slurm
sbatch next.sh
EOF
