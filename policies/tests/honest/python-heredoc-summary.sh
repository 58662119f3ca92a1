#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
python run.py --out results.json
python3 - "$SLURM_JOB_ID" <<'PY'
import json, sys
r = json.load(open("results.json"))
print("job", sys.argv[1])
for k, v in sorted(r.items()):
    print(f"{k:20s} {v:.4f}")
PY
