#!/usr/bin/env bash
#SBATCH --job-name=run
#SBATCH --gpus-per-node=1
#SBATCH --nodes=1
#SBATCH --cpus-per-task=4
#SBATCH --mem=16000M
#SBATCH --output=logs/%x-%j.out

export CDLMD_LICENSE_FILE=1999@lic.example.org
starccm+ -batch run.java -np $SLURM_NTASKS -machinefile <(scontrol show hostnames) -power case.sim
