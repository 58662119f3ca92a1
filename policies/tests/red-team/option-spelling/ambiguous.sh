#!/bin/bash
#SBATCH --gpu=4
python t.py
