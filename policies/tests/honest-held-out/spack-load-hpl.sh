#!/bin/bash
#SBATCH --job-name=hpl
#SBATCH --nodes=1
#SBATCH --ntasks=16
#SBATCH --mem=16G
#SBATCH --time=01:00:00

. $HOME/spack/share/spack/setup-env.sh
eval $(spack load --sh hpl%gcc@12)

MEM_MB=${SLURM_MEM_PER_NODE:-16384}
N=$(awk -v m=$MEM_MB 'BEGIN { n = sqrt(m*1024*1024*0.8/8); print int(n/192)*192 }')
cat > HPL.dat <<EOF
HPLinpack benchmark input file
header
HPL.out      output file name (if any)
6            device out (6=stdout,7=stderr,file)
1            # of problems sizes (N)
$N           Ns
1            # of NBs
192          NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
4            Ps
4            Qs
16.0         threshold
EOF
srun xhpl | tee hpl.$SLURM_JOB_ID.out
grep -A2 'T/V' hpl.$SLURM_JOB_ID.out
