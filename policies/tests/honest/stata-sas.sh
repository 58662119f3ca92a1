#!/bin/bash
#SBATCH --mem=8G
module load stata/17
stata-mp -b do main.do
grep -q "^r([0-9]" main.log && exit 1
exit 0
