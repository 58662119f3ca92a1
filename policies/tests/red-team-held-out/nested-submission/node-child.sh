#!/bin/bash
#SBATCH --job-name=node-child
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
node -e 'require("child_process").execSync("sbatch big.sh")'
