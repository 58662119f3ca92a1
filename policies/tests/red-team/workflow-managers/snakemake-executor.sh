#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

snakemake --executor slurm --jobs 10 --default-resources mem_mb=4000
