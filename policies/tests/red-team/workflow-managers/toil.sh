#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

toil-cwl-runner --batchSystem slurm --jobStore js wf.cwl in.yml
