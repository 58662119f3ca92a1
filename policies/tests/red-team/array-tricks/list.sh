#!/bin/bash
#SBATCH -a 1,3,5,7,9
#SBATCH --mem=4G
python t.py
