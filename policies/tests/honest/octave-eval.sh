#!/bin/bash
#SBATCH --mem=4G -t 30
octave --no-gui --eval "pkg load statistics; main(${SLURM_ARRAY_TASK_ID:-1})"
