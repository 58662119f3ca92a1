#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

exec 3> later.sh
echo 'sbatch more.sh' >&3
exec 3>&-
bash later.sh
