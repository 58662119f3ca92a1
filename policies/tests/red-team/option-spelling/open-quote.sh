#!/bin/bash
#SBATCH --job-name="train
#SBATCH --mem=16G
python t.py
