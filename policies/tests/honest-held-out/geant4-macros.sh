#!/bin/bash
#SBATCH --job-name=g4
#SBATCH --array=1-100%4
#SBATCH --mem=2G
#SBATCH --time=05:00:00
#SBATCH -o /dev/null

source /cvmfs/sft.cern.ch/lcg/views/LCG_104/x86_64-el9-gcc13-opt/setup.sh
source $G4INSTALL/bin/geant4.sh
TAG=$(printf '%04d' $SLURM_ARRAY_TASK_ID)
sed -e "s/__SEED__/$((SLURM_ARRAY_JOB_ID + SLURM_ARRAY_TASK_ID))/g" -e "s#__OUT__#out/run_$TAG.root#" run.mac.in > mac/run_$TAG.mac
exec > >(tee -a log/run_$TAG.log) 2>&1
./exampleB4c -m mac/run_$TAG.mac -t 1
root -l -b -q "check.C(\"out/run_$TAG.root\")"
if [ "$SLURM_ARRAY_TASK_ID" -eq "$SLURM_ARRAY_TASK_MAX" ]; then hadd -f out/all.root out/run_*.root; fi
