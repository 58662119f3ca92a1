#!/bin/bash
#SBATCH --array=1-500%50
#SBATCH --mem=4G
python t.py
