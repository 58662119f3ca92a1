#!/bin/bash
#SBATCH --mem=8G
wolframscript -file solve.wls $SLURM_CPUS_PER_TASK
