#!/bin/bash
#SBATCH --mem=16G extra words here
python t.py
