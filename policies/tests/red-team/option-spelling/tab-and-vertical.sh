#!/bin/bash
#SBATCH	--gpus=1	--mem=72G
python t.py
