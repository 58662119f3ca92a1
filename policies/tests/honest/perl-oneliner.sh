#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
perl -pe 's/\s+$/\n/' in.txt > out.txt
awk -F'\t' 'NR > 1 { sum += $3 } END { print sum / (NR - 1) }' out.txt
