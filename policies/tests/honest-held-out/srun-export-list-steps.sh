#!/bin/bash
#SBATCH --job-name=steps
#SBATCH --nodes=1
#SBATCH --ntasks=4
#SBATCH --gpus=2
#SBATCH --mem=24G
#SBATCH --time=03:00:00
#SBATCH --export=ALL

srun --export=ALL,OMP_NUM_THREADS=4,DATA_ROOT=/data -n 4 -l python prep.py
srun -n 2 --gpus=2 --gpus-per-task=1 --gpu-bind=none --unbuffered -o logs/step%s_%t.out python train.py --gpus 2 --accelerator gpu
SLURM_CPU_BIND=none srun -n 1 --gpus=1 --mem-per-gpu=8G -u python infer.py --device cuda --ngpus=1 --gpu
srun -n 1 --gres=none hostname
