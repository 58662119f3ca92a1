#!/bin/bash
#SBATCH --job-name=fluent-elbow
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --mem=14G
#SBATCH --time=05:00:00
#SBATCH --licenses=ansys:16
#SBATCH --output=fluent.%j.out

module load ansys/2023R1

HOSTS=hosts.$SLURM_JOB_ID
srun hostname -s | sort > $HOSTS

cat > run.jou <<EOF
/file/set-tui-version "23.1"
/file/read-case-data elbow.cas.h5
/solve/iterate 500
/file/write-case-data elbow-out.cas.h5 yes
/exit yes
EOF

fluent 3ddp -g -t$SLURM_NTASKS -cnf=$HOSTS -mpi=intel -pinfiniband -ssh -i run.jou > fluent.log 2>&1
status=$?
rm -f $HOSTS cleanup-fluent-*.sh
exit $status
