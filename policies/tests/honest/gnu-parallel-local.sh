#!/bin/bash
#SBATCH -c 16 --mem=16G
export OMP_NUM_THREADS=1
ls data/*.csv | parallel -j $SLURM_CPUS_PER_TASK --joblog parallel.log --resume 'python clean.py {} > clean/{/.}.csv'
