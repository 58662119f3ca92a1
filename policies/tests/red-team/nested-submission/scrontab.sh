#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

scrontab - <<EOF
0 4 * * * $HOME/nightly.sh
EOF
