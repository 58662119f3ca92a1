#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=40G
python sft.py
