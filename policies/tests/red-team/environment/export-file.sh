#!/bin/bash
#SBATCH --export-file=/home/ada/env.bin
python t.py
