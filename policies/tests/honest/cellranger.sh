#!/bin/bash
#SBATCH --array=1-6%2 --mem=16G -c 8 -t 20:00:00
mapfile -t S < samples.txt
s=${S[$((SLURM_ARRAY_TASK_ID - 1))]}
cellranger count --id="$s" --fastqs=fq --sample="$s" --transcriptome=ref --localcores=8 --localmem=15
