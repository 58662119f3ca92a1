#!/bin/bash
#SBATCH --dependency=afterok:123456
#SBATCH --mem=4G
python post.py
