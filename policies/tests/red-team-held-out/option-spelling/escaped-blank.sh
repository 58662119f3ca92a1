#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00 \--m\em=\9\0G
python train.py
