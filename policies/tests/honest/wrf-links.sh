#!/bin/bash
#SBATCH -n 64 --mem=16G -t 20:00:00
ln -sf ../met_em.d0* .
srun ./real.exe
tail -1 rsl.error.0000 | grep -q SUCCESS || exit 1
srun ./wrf.exe
mv wrfout_d0* $SCRATCH/wrf/
