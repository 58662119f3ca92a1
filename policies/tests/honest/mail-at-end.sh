#!/bin/bash
#SBATCH --mail-type=END,FAIL --mail-user=ada@example.org
#SBATCH --mem=4G
./run.x && echo "job $SLURM_JOB_ID finished" | mail -s "finished" ada@example.org
