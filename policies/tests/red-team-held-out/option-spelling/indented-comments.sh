#!/bin/bash
#SBATCH --nodes=1 --gpus=1 --time=02:00:00

	  # everything above is the request
	
#SBATCH --mem=90G --comment="--mem=16G"
python train.py
