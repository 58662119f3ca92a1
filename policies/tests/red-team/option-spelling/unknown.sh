#!/bin/bash
#SBATCH --gpu-count=4
#SBATCH --mem=16G
python t.py
