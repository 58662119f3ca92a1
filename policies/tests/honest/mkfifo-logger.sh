#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

mkfifo $TMPDIR/p
tee log.txt < $TMPDIR/p &
./solver > $TMPDIR/p 2>&1
rm $TMPDIR/p
