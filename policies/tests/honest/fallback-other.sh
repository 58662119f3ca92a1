#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

pigz -p 8 big.tar || gzip big.tar
./fast_path || ./slow_path
