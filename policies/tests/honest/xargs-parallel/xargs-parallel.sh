#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

find raw -name '*.wav' -print0 | xargs -0 -n 1 -P 8 ./convert.sh
