#!/bin/bash
#SBATCH --mem=4G
cat > old.pbs <<'EOF'
#PBS -l walltime=100:00:00
./old
EOF
./a
