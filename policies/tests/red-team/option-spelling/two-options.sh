#!/bin/bash
#SBATCH --job-name=a --gpus=1 --mem=90G --time=10
python t.py
