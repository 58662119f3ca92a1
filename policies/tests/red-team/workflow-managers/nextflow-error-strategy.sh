#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

nextflow run main.nf -process.errorStrategy=retry -process.maxRetries=3
