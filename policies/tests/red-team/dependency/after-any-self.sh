#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

[ -f FINISHED ] || sbatch --dependency=afterany:$SLURM_JOB_ID after-any-self.sh
python train.py
