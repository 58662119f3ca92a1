#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

for i in {1..3}
do
    python train.py
    status=$?
    if [ $status -ne 0 ]; then
        sleep 30
    else
        break
    fi
done
