#!/bin/csh -f
#SBATCH --job-name=cesm_B1850
#SBATCH --nodes=1
#SBATCH --ntasks=32
#SBATCH --mem=16G
#SBATCH --time=12:00:00
#SBATCH --output=cesm.%j.log

limit stacksize unlimited
setenv OMP_NUM_THREADS 1
setenv CASE B1850.test
setenv CASEROOT $HOME/cases/$CASE

if ( ! -d $CASEROOT ) then
  echo "no case $CASEROOT"
  exit 1
endif

cd $CASEROOT
./xmlchange STOP_OPTION=nmonths,STOP_N=1,RESUBMIT=0
./preview_namelists
set t0 = `date +%s`
srun ./bld/cesm.exe >& run/cesm.log.$SLURM_JOB_ID
set t1 = `date +%s`
@ dt = $t1 - $t0
echo "took $dt seconds"
