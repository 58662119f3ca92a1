#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

cwl-exec -c slurm wf.cwl
toil-cwl-runner --batchSystem=slurm wf.cwl in.yml
