#!/bin/bash
#SBATCH --job-name=opt-freq
#SBATCH --nodes=1 --ntasks=1 --cpus-per-task=16
#SBATCH --mem=16G
#SBATCH --time=23:00:00

module load gaussian/g16
export GAUSS_SCRDIR=/scratch/$USER/g16.$SLURM_JOB_ID
export GAUSS_PDEF=$SLURM_CPUS_PER_TASK
export GAUSS_MDEF=$(( SLURM_MEM_PER_NODE * 85 / 100 ))MB
mkdir -p $GAUSS_SCRDIR
trap "rm -rf $GAUSS_SCRDIR" EXIT INT TERM

for f in *.com; do
  b=${f%.com}
  [ -e $b.log ] && grep -q "Normal termination" $b.log && continue
  echo "`date` running $b"
  g16 < $f > $b.log
  formchk $b.chk $b.fchk
done

grep -H "SCF Done" *.log | awk '{printf "%-30s %16.8f\n", $1, $5}'
