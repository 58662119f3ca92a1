#!/bin/bash
#SBATCH --job-name=comsol
#SBATCH --nodes=1
#SBATCH --cpus-per-task=12
#SBATCH --mem=16G
#SBATCH --time=09:00:00
#SBATCH --mail-type=FAIL

module load comsol/6.1
lengths=(10 20 30 40)
plist=$(IFS=,; echo "${lengths[*]}")
comsol batch -np $SLURM_CPUS_PER_TASK -tmpdir $TMPDIR -configuration $TMPDIR/comsol_@process.id -recoverydir $TMPDIR \
   -inputfile antenna.mph -outputfile antenna_out_$SLURM_JOB_ID.mph -pname L -plist "${plist}[mm]" -batchlog comsol.log
