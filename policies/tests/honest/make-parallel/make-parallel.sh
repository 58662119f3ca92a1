#!/bin/bash
#SBATCH -c 8 --mem=8G -t 60
make -j $SLURM_CPUS_PER_TASK all
make distcheck || { cat test-suite.log; exit 1; }
