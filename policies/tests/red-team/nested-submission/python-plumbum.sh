#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python -c 'from plumbum.cmd import sbatch; sbatch("next.sh")'
