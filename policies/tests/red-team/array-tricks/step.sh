#!/bin/bash
#SBATCH --array=0-100:10
#SBATCH --mem=4G
python t.py
