#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

ssh -T login01 <<EOF
cd /home/ada/proj
sbatch next.sh
EOF
