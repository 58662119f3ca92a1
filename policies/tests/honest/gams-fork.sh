#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

while read -r a b c; do
  gams model.gms --a=$a --b=$b --c=$c lo=2 o=out_${a}_${b}.lst
done <<< "1 2 3
4 5 6
7 8 9"
