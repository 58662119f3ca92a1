#!/bin/bash
#SBATCH --nodes=1 --time=02:00:00
#SBATCH --gres=none
#SBATCH --mem=1T
python prepare.py
