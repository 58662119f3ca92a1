#!/bin/bash
#SBATCH --job-name=indirect-command
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
read -r TOOL_1 < tool.txt
which_one=TOOL_1
${!which_one} --input data
