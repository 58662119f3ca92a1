#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

sed "s/@N@/4/" template.sh.in > run_now.sh
chmod +x run_now.sh
./run_now.sh
