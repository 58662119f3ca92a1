#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

cat > rank.py <<'EOF'
import os, runpy
os.environ["CUDA_VISIBLE_DEVICES"] = os.environ["SLURM_LOCALID"]
runpy.run_path("train.py", run_name="__main__")
EOF
srun python rank.py
