#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

python - <<'EOF'
import os, json
keys = ["CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "OMP_NUM_THREADS"]
print(json.dumps({k: os.environ.get(k) for k in keys}, indent=1))
info = {"CUDA_VISIBLE_DEVICES": os.environ.get("CUDA_VISIBLE_DEVICES")}
json.dump(info, open("env.json", "w"))
EOF
python train.py
