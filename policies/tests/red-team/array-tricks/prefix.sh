#!/bin/bash
#SBATCH --arr=1-64
#SBATCH --mem=4G
python t.py
