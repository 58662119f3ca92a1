#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
export CDLMD_LICENSE_FILE=1999@lic.example.org
starccm+ -batch run.java -np $SLURM_NTASKS -machinefile <(scontrol show hostnames) -power case.sim
