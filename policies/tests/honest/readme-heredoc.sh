#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
cat > out/README.txt <<EOF
Made by job $SLURM_JOB_ID on $(hostname).
To make it again: sbatch run.sh
Then: scancel JOBID to stop it.
EOF
./a.out > out/a.txt
