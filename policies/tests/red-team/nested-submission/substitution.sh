#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

jid=$(sbatch --parsable stage2.sh)
echo "next is $jid"
