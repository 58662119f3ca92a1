#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

q() { local tool=$1; shift; "$tool" "$@"; }
q sbatch --mem=4G next.sh
