#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

snakemake --jobs 20 --cluster "sbatch --mem={resources.mem_mb} -t 60"
