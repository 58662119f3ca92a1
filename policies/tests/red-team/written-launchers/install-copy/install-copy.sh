#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
cp tools/prep.sh /tmp/prep2.sh
bash /tmp/prep2.sh
