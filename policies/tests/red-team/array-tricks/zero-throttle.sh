#!/bin/bash
#SBATCH --array=0-20%0
#SBATCH --mem=4G
python t.py
