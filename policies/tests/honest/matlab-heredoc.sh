#!/bin/bash
#SBATCH --mem=8G
matlab -nodesktop <<EOF
x = linspace(0, 1, $((2 * 500)));
y = sin(x); save('out_${SLURM_JOB_ID}.mat', 'y');
exit
EOF
