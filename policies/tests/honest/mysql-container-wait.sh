#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

apptainer instance start --bind $TMPDIR:/var/lib/mysql mysql.sif db
tries=0
until apptainer exec instance://db mysqladmin ping --silent; do
  tries=$((tries + 1))
  if [ $tries -gt 30 ]; then echo "no database"; exit 1; fi
  sleep 2
done
python load.py
apptainer instance stop db
