#!/bin/bash
#SBATCH --mem=4G
#SBATCH packjob
#SBATCH --gpus=4
srun ./a
