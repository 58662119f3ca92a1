#!/bin/bash
#SBATCH --job-name=simR
#SBATCH --array=1-200%4
#SBATCH --mem=4G
#SBATCH --time=00:40:00
#SBATCH --output=/dev/null
#SBATCH --error=logs/sim_%A_%a.err

module load R/4.3.1
export R_LIBS_USER=$HOME/R/4.3
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

Rscript --vanilla -e 'renv::restore(prompt = FALSE)' > /dev/null
Rscript --vanilla R/simulate.R \
   --n "$(awk -v i="$SLURM_ARRAY_TASK_ID" 'NR==i+1 {print $1}' grid.txt)" \
   --rho "$(awk -v i="$SLURM_ARRAY_TASK_ID" 'NR==i+1 {print $2}' grid.txt)" \
   --seed $((1000 + SLURM_ARRAY_TASK_ID)) \
   --out "out/sim_${SLURM_ARRAY_TASK_ID}.rds"
