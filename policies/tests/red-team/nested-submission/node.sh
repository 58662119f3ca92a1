#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

node -e 'require("child_process").execSync("sbatch next.sh")'
