#!/bin/bash
#SBATCH --array=1-22%4 --mem=8G
plink2 --bfile chr${SLURM_ARRAY_TASK_ID} --maf 0.01 --glm --out res/chr${SLURM_ARRAY_TASK_ID}
