#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
singularity exec --cleanenv --nv -B $SCRATCH tools.sif bash -c "cd /work && python predict.py --in $SCRATCH/in --out $SCRATCH/out"
