#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

source /opt/amber22/amber.sh
pmemd.cuda -O -i min.in -o min.out -p sys.prmtop -c sys.inpcrd -r min.rst
pmemd.cuda -O -i prod.in -o prod.out -p sys.prmtop -c min.rst -r prod.rst -x prod.nc
