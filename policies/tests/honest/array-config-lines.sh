#!/bin/bash
#SBATCH --array=1-40%4
#SBATCH --mem=8G
#SBATCH --cpus-per-task=2
#SBATCH --time=03:00:00
#SBATCH --output=logs/%A_%a.log
LINE=$(sed -n "${SLURM_ARRAY_TASK_ID}p" params.tsv)
read -r NAME LR WD SEED <<< "$LINE"
echo "task $SLURM_ARRAY_TASK_ID: $NAME lr=$LR wd=$WD seed=$SEED"
Rscript fit.R --name "$NAME" --lr "$LR" --wd "$WD" --seed "$SEED"
