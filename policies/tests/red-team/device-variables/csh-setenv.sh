#!/bin/tcsh
#SBATCH --gpus=1
#SBATCH --mem=16G
setenv CUDA_VISIBLE_DEVICES 0
python t.py
