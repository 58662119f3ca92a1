#!/bin/bash
#SBATCH --mem=16G -c 8
comsol batch -np $SLURM_CPUS_PER_TASK -inputfile model.mph -outputfile out_$SLURM_JOB_ID.mph -pname L,W -plist 1[mm],2[mm] -tmpdir $TMPDIR
