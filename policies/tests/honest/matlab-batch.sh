#!/bin/bash
#SBATCH --mem=10G --cpus-per-task=4
#SBATCH --time=02:30:00
module load matlab/R2023a
matlab -nodisplay -nosplash -batch "addpath('src'); parpool('local', str2num(getenv('SLURM_CPUS_PER_TASK'))); run_all; exit"
