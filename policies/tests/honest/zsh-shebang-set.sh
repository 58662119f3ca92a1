#!/bin/sh
#SBATCH --mem=4G
#SBATCH -t 15
set -eu
[ -d out ] || mkdir out
for i in 1 2 3; do ./a.out "$i" > "out/$i.txt"; done
