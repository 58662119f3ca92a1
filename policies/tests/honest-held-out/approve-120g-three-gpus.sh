#!/bin/bash
#SBATCH --job-name=recsys
#SBATCH --nodes=1
#SBATCH --gres=gpu:3
#SBATCH --mem=120G
#SBATCH --time=12:00:00

for f in data/part-*.parquet; do printf '%s\n' "$f"; done > parts.txt
wc -l parts.txt
srun --ntasks=1 python -m torch.distributed.run --nproc_per_node=3 dlrm.py --parts parts.txt --embedding-dim 128
