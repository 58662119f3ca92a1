#!/bin/bash
#SBATCH --gpus=1
#SBATCH '--mem=96G'
python t.py
