#!/bin/bash
#SBATCH -G12 --mem-per-gpu=8G
python t.py
