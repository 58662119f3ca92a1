#!/bin/bash
#SBATCH --mem=16G
python t.py
