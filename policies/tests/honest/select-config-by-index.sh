#!/bin/bash
#SBATCH --array=0-7%4
#SBATCH --mem=8G
mapfile -t CONFIGS < <(find configs -name '*.yaml' | sort)
CFG="${CONFIGS[$SLURM_ARRAY_TASK_ID]}"
python main.py --config "$CFG"
