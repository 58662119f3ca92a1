#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

OUT=plots
python <<EOF
import pathlib
pathlib.Path("${OUT}").mkdir(exist_ok=True)
print("job ${SLURM_JOB_ID} writes to ${OUT}")
EOF
