#!/bin/bash
#SBATCH --job-name=dollarzero
#SBATCH --ntasks=2
#SBATCH --mem=4G
#SBATCH --time=01:00:00

find cases -name control.dat -exec sh -c 'cd "$(dirname "$0")" && ../../bin/flow < control.dat > flow.log' {} \;
ls cases | xargs -n 1 -P 2 bash -c 'tail -n 1 "cases/$0/flow.log" | sed "s/^/$0: /"'
srun bash -c '"$0" --rank "$SLURM_PROCID" "$@"' ./bin/collect cases/*
