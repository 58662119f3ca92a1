#!/bin/bash
#SBATCH --job-name=sas_claims
#SBATCH --mem=10g
#SBATCH --time=02:30:00
#SBATCH --mail-type=NONE

module load sas/9.4
for yr in {2015..2019}
do
  sas -nodms -noterminal -memsize 8G -work ${TMPDIR} -sysparm "$yr" -log logs/claims_$yr.log -print out/claims_$yr.lst claims.sas
done
grep -l '^ERROR' logs/claims_*.log | mail -s "SAS job $SLURM_JOB_ID finished" $USER
