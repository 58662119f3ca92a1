#!/bin/bash
#SBATCH --job-name=hybrid
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --mem=10G
#SBATCH --distribution=block:cyclic
#SBATCH --time=03:00:00
#SBATCH --output=%x.%j

export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
export KMP_AFFINITY=compact,granularity=fine
export I_MPI_PMI_LIBRARY=/usr/lib64/libpmi2.so

cat > rank.sh <<'EOF'
#!/bin/bash
ulimit -c 0
echo "rank $SLURM_PROCID on $(hostname -s): $(taskset -cp $$ | sed 's/.*: //')"
exec "$@"
EOF
chmod +x rank.sh
srun --cpus-per-task=$SLURM_CPUS_PER_TASK --cpu-bind=verbose,cores ./rank.sh ./hybrid.x input.nml
