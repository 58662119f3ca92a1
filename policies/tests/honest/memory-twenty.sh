#!/bin/bash
#SBATCH --gres=gpu:1
#SBATCH --mem=20G
python sft.py
