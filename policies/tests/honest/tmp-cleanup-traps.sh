#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
trap 'echo interrupted; exit 130' INT TERM
cp input.h5 "$TMP"
./filter "$TMP/input.h5" > filtered.txt
