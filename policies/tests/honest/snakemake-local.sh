#!/bin/bash
#SBATCH -c 16 --mem=16G -t 20:00:00
source activate snake
snakemake --cores $SLURM_CPUS_PER_TASK --use-conda --rerun-incomplete --keep-going --printshellcmds all
snakemake --cores 1 --report report.html
