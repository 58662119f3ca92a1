#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

declare -x NVIDIA_VISIBLE_DEVICES="2,3"
apptainer exec --nv pytorch.sif python run.py
