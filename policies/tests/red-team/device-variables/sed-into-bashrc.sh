#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

echo "export CUDA_VISIBLE_DEVICES=1" >> $TMPDIR/rc
source $TMPDIR/rc
python t.py
