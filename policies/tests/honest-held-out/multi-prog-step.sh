#!/bin/bash
#SBATCH --job-name=coupled
#SBATCH --ntasks=16
#SBATCH --nodes=1
#SBATCH --mem=16G
#SBATCH --time=6:00:00

cat > mp.conf <<EOF
0-7    ./ocean.x  -n namelist_oce
8-14   ./atmos.x  -n namelist_atm
15     ./coupler.x %t %o
EOF
srun --multi-prog --label --kill-on-bad-exit=1 mp.conf > coupled.$SLURM_JOB_ID.log 2>&1
