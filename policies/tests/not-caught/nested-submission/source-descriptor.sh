#!/bin/bash
#SBATCH --job-name=source-descriptor
#SBATCH --gpus=1
#SBATCH --mem=8G
#SBATCH --time=01:00:00
printf 'sbatch next.sh\n' > steps.txt
exec 5< steps.txt
. /dev/fd/5
python train.py
