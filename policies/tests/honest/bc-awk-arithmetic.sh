#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

dt=$(echo "scale=6; 1/$N_STEPS" | bc -l)
beta=$(awk -v t=300 'BEGIN { printf "%.5f", 1/(8.617e-5*t) }')
sed -e "s/__DT__/$dt/" -e "s/__BETA__/$beta/" input.tmpl > input.dat
./md < input.dat > md.out
