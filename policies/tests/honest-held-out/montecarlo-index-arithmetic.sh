#!/bin/bash
#SBATCH -a 0-59%4
#SBATCH -t 45
#SBATCH --mem 1500
#SBATCH -J mc2d
#SBATCH -o logs/%x.%a

let "i = SLURM_ARRAY_TASK_ID / 10"
let j=SLURM_ARRAY_TASK_ID%10
T=$(printf '%.3f' "$(echo "scale=6; 1.5 + 0.25*$i" | bc -l)")
H=$(awk "BEGIN {print 0.1 * $j}")
seed=$(( (i << 16) ^ (j * 7919) ^ 0x5bd1e995 ))
(( seed < 0 )) && seed=$(( -seed ))
echo "T=$T H=$H seed=$seed"
exec ./xy_model -T $T -H $H -s $seed -n 200000
