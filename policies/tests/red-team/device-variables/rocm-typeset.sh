#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

typeset -x ROCR_VISIBLE_DEVICES=1
./hip_app input.dat
