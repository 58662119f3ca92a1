#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

singularity exec --nv --env "OMP_NUM_THREADS=4,CUDA_VISIBLE_DEVICES=0" tf.sif python t.py
